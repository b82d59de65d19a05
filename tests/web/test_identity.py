"""Ids of commands: the same delivery twice is one, two deliveries are two."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pytest

from memory_core.clock import FakeClock
from memory_core.domain.event import EventKind, HookEvent, Speaker
from memory_core.errors import Invalid
from memory_core.ids import IdSource, id_text
from web import identity

EventFactory = Callable[..., HookEvent]


@pytest.fixture
def event_factory() -> EventFactory:
    def make(**overrides: Any) -> HookEvent:
        values: dict[str, Any] = {
            "client": "claude-code",
            "source_event": "UserPromptSubmit",
            "kind": EventKind.USER_PROMPT,
            "session_key": "s1",
            "speaker": Speaker.USER,
            "body": "continue",
        }
        return HookEvent(**{**values, **overrides})

    return make


@pytest.fixture
def ids() -> IdSource:
    return IdSource(FakeClock())


def test_memoryds_own_key_is_the_id_itself(ids: IdSource) -> None:
    own = ids.new()
    assert identity.of_client_key(id_text(own)) == identity.CommandId(value=own, is_foreign=False)


def test_another_clients_key_is_foreign_whatever_its_shape() -> None:
    assert identity.of_client_key(uuid.uuid4().hex).is_foreign
    assert identity.of_client_key("my-key_1").is_foreign
    assert identity.of_client_key("my-key_1") == identity.of_client_key("my-key_1")
    assert identity.of_client_key("my-key_1") != identity.of_client_key("my-key_2")


@pytest.mark.parametrize("key", ["", "a b", "a" * 65, "ü", "a\n", "../x"])
def test_a_key_of_another_shape_is_refused(key: str) -> None:
    with pytest.raises(Invalid, match="ingest_key"):
        identity.of_client_key(key)


def test_a_vendors_unique_id_makes_the_id_with_session_and_event(
    event_factory: EventFactory, ids: IdSource
) -> None:
    first = identity.of_event(event_factory(unique_id="tu_01"), b"x", ids)
    assert first == identity.of_event(event_factory(unique_id="tu_01"), b"x", ids)
    for other in (
        {"unique_id": "tu_02"},
        {"session_key": "s2"},
        {"source_event": "PreToolUse"},
        {"agent_id": "a"},
    ):
        assert first != identity.of_event(event_factory(**{"unique_id": "tu_01"} | other), b"x", ids)


def test_the_vendors_own_time_with_the_content_makes_the_id(
    event_factory: EventFactory, ids: IdSource
) -> None:
    first = identity.of_event(event_factory(occurred_at=5), b"x", ids)
    assert first == identity.of_event(event_factory(occurred_at=5), b"x", ids)
    assert first != identity.of_event(event_factory(occurred_at=6), b"x", ids)
    assert first != identity.of_event(event_factory(occurred_at=5), b"y", ids)


def test_content_alone_never_makes_an_id(event_factory: EventFactory, ids: IdSource) -> None:
    one, two = (identity.of_event(event_factory(), b"same", ids) for _ in range(2))
    assert one != two
    assert not one.is_foreign


def test_parts_of_a_key_cannot_be_shifted_between_fields(event_factory: EventFactory, ids: IdSource) -> None:
    one = identity.of_event(event_factory(session_key="ab", unique_id="c"), b"", ids)
    two = identity.of_event(event_factory(session_key="a", unique_id="bc"), b"", ids)
    assert one != two


def test_the_body_hash_needs_the_key_and_ignores_spelling() -> None:
    one = identity.canonical({"a": 1})
    assert identity.body_hash(b"k" * 32, one) == identity.body_hash(b"k" * 32, identity.canonical({"a": 1}))
    assert identity.body_hash(b"k" * 32, one) != identity.body_hash(b"j" * 32, one)
    assert len(identity.body_hash(b"k" * 32, one)) == 16


def test_commands_of_one_keyed_request_have_their_own_ids() -> None:
    first = identity.of_client_key("request-1")
    assert identity.of_part(first, 0) == first
    assert len({identity.of_part(first, n).value for n in range(5)}) == 5
