"""Events outside the closed set carry a namespace that is checked."""

from __future__ import annotations

from typing import Any

import pytest

from memory_core import limits
from memory_core.domain.event import EventKind, HookEvent, Speaker
from memory_core.domain.extension import extended
from memory_core.errors import Invalid


def event(kind: EventKind = EventKind.OTHER, **changes: Any) -> HookEvent:
    given = {
        "client": "claude-code",
        "source_event": "deployed",
        "session_key": "s",
        "speaker": Speaker.SYSTEM,
        **changes,
    }
    return HookEvent(kind=kind, **given)


def test_an_unknown_event_names_itself_and_brings_its_texts():
    kept = extended(event(), {"subject": "v2 is out", "details": "on all hosts"}, {"extension": "ci.acme:1"})

    assert (kept.extension, kept.source_event) == ("ci.acme:1", "deployed")
    assert (kept.title, kept.body) == ("v2 is out", "on all hosts")


def test_a_name_of_its_own_goes_before_the_clients():
    kept = extended(event(), {}, {"extension": "ci", "source_event": "rolled-back"})
    assert kept.source_event == "rolled-back"


def test_a_known_event_keeps_its_own_texts():
    prompt = event(EventKind.USER_PROMPT, title="said", body="said")
    kept = extended(prompt, {"title": "other", "body": "other"}, {"extension": "ci"})

    assert (kept.title, kept.body, kept.extension) == ("said", "said", "ci")


@pytest.mark.parametrize("namespace", ["a b", "ä", "x" * (limits.EXTENSION_MAX_CHARS + 1), "a/b", "a\n"])
def test_a_namespace_of_other_characters_is_refused(namespace: str):
    with pytest.raises(Invalid, match="extension"):
        extended(event(), {}, {"extension": namespace})


def test_a_name_that_is_too_long_is_refused_not_cut():
    with pytest.raises(Invalid, match="source_event"):
        extended(event(), {}, {"extension": "ci", "source_event": "x" * 129})


def test_without_a_namespace_nothing_changes():
    plain = event()
    assert extended(plain, {"title": "x"}, {"source_event": "y"}) is plain
