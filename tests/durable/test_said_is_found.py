"""What was said in a durable session is found as what hooks told is: with its session, event and speaker, in its scope, and no
longer than the session is there."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory_core import limits
from memory_core.commands.durable_deletion import DeleteSession, DropDeleted
from memory_core.commands.durable_said import keep_next
from memory_core.commands.durable_turns import TurnEvent
from memory_core.domain import recalled
from memory_core.recall.query import parse
from memory_core.store import lexical, searching
from tests.durable.agent import Agent, ok
from tests.durable.directly import Holder, started, stored
from tests.durable.working import HERE, Client, message, said
from tests.factories import Store
from tests.jobs.embedding_model import A, Maker
from tests.vectors.asking import asking
from tests.web.house import House

ALPHA = HERE | {"inode": "77", "path": "/srv/alpha"}


def answered(text: str) -> dict[str, Any]:
    return {"kind": "assistant_message", "payload": message(text, "assistant")}


def found(house: House, text: str, **more: Any) -> list[dict[str, Any]]:
    asked = {"query": text, "project": "repo", "workspace": "default", **more}
    answer = house.post("/api/v1/tools/memory_query", asked)
    assert answer.status_code == 200, answer.json
    return answer.json["hits"]


@pytest.fixture
def session(house: House) -> Client:
    client = Client(house)
    client.claim()
    return client


def test_a_message_is_found_with_its_session_its_event_and_who_said_it(house: House, session: Client):
    session.append(said("Where does the quokka live?"), answered("On an island, the quokka does."))

    hits = found(house, "quokka")

    assert [(hit["kind"], hit["session_id"], hit["speaker"]) for hit in hits] == [
        ("turn", session.id, "user"),
        ("turn", session.id, "agent"),
    ]
    events = house.get(f"{session.root}/events").get_json()
    assert {hit["event_id"] for hit in hits} == {event["id"] for event in events}
    shown = house.get(f"/ui/sessions/{session.id}").text
    assert "Where does the quokka live?" in shown
    assert "memoryd sessions export" in shown


def test_only_messages_are_turns_and_each_once(house: House, session: Client):
    call = message("I look, quokka.", "assistant") | {
        "tool_calls": [{"id": "01890000-0000-7000-8000-000000000000", "name": "grep", "arguments": {}}]
    }
    session.append(
        {"kind": "system", "payload": message("quokka rules", "system")},
        said("quokka?"),
        {"kind": "tool_call", "payload": call},
        {"kind": "tool_result", "payload": message("quokka found", "tool")},
        {"kind": "audit", "payload": {"quokka": 1}},
        answered(""),
        {"kind": "assistant_message", "payload": ["quokka", None]},
    )
    session.append(said("And the wombat?"))

    turns = house.rows("SELECT speaker, body, kind, source FROM observations ORDER BY seq")

    assert [(row["speaker"], row["body"]) for row in turns] == [
        ("user", "quokka?"),
        ("agent", "I look, quokka."),
        ("user", "And the wombat?"),
    ]
    assert {(row["kind"], row["source"]) for row in turns} == {
        ("user-prompt", "durable"),
        ("stop", "durable"),
    }
    assert house.rows("SELECT observation_count FROM sessions") == [{"observation_count": 3}]


def test_what_an_agent_writes_by_its_journal_is_found(agent: Agent):
    ok(agent.begin())
    ok(agent.end("The quokka tests pass."))

    hit, *_ = found(agent.house, "quokka")

    assert (hit["speaker"], hit["session_id"]) == ("agent", agent.id)


def test_a_staged_turn_is_found_when_it_is_published_and_not_before(house: House, session: Client):
    body: dict[str, Any] = {"directory": HERE, "expected_last_sequence": 0, "turn_size": 2}
    events = [said("the quokka"), answered("is staged")]
    body["turn_id"] = session.post("turns/staged", body | {"first_index": 0, "events": events}).get_json()[
        "turn_id"
    ]
    assert found(house, "quokka staged") == []

    assert session.post("turns/staged/publish", body).status_code == 200

    assert len(found(house, "quokka staged")) == 2


def test_what_one_command_has_no_room_for_is_made_later(
    house: House, session: Client, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(limits, "SAID_SLICE_EVENTS", 3)
    session.append(*(said(f"wombat {number}") for number in range(8)))
    assert len(found(house, "wombat")) == 3

    while house.engine.originate(keep_next):
        pass

    assert len(found(house, "wombat", limit=20)) == 8


def test_a_secret_and_what_was_recalled_are_in_no_turn(house: House, session: Client):
    secret = "ghp_" + "".join("aB3xK9mQ7t"[number * 7 % 10] for number in range(36))
    session.append(said(f"quokka {secret} {recalled.fence('wombat lore', 'a page')}"))

    (row,) = house.rows("SELECT body, title FROM observations")

    assert secret not in str(row)
    assert "wombat" not in row["body"]
    assert row["body"].startswith("quokka [REDACTED")
    assert found(house, "wombat") == []


def test_nothing_is_found_from_another_project_or_by_another_person(house: House, session: Client):
    session.append(said("the quokka of the repository"))
    other = Client(house, directory=ALPHA)
    other.claim()
    other.append(said("the quokka of alpha"))

    assert [hit["session_id"] for hit in found(house, "quokka")] == [session.id]
    assert {
        hit["session_id"] for hit in found(house, "quokka", project=None, workspace=None, everywhere=True)
    } == {
        session.id,
        other.id,
    }
    token = house.add_token("read", "bob")
    answer = house.post(
        "/api/v1/tools/memory_query", {"query": "quokka", "everywhere": True}, Authorization=f"Bearer {token}"
    )
    assert answer.json["hits"] == []


def test_sessions_that_were_written_before_there_were_turns_of_them_are_found_too(store: Store):
    holder = held(store)
    holder.append(spoken("user", "the quokka"), spoken("assistant", "yes"))
    store.connection.execute("DELETE FROM observations")
    store.connection.execute("UPDATE durable_sessions SET turns_through = 0")

    with store.transaction() as tx:
        while keep_next(tx):
            pass

    assert bodies(store) == ["the quokka", "yes"]
    assert [row["recorded_at"] for row in store.all("SELECT recorded_at FROM observations")] == [
        event.created_at for event in stored(store, holder.session)
    ]


def test_an_event_whose_id_another_observation_has_takes_nothing_with_it(store: Store):
    holder = held(store)
    holder.append(spoken("user", "mine"))
    store.connection.execute("UPDATE durable_sessions SET turns_through = 0")
    before = store.all("SELECT * FROM observations")

    with store.transaction() as tx:
        assert keep_next(tx) == 1

    assert store.all("SELECT * FROM observations") == before
    assert store.all("SELECT observation_count AS n FROM sessions") == [{"n": 1}]


@pytest.mark.parametrize("everywhere", [False, True])
def test_from_the_moment_of_its_deletion_nothing_is_found_by_words_or_meaning(
    store: Store, monkeypatch: pytest.MonkeyPatch, everywhere: bool
):
    holder = held(store)
    holder.append(*(spoken("user", f"quokka {number}") for number in range(6)))
    kept = Holder(store, started(store))
    kept.claim()
    kept.append(spoken("user", "quokka stays"))
    maker = Maker(store)
    maker.bind(A)
    maker.all()
    monkeypatch.setattr(limits, "DELETED_ROWS_PER_SLICE", 1)
    store.connection.execute("UPDATE durable_sessions SET lease_until = NULL, lease_hash = NULL")

    assert store.apply(DeleteSession(session=holder.session), token_scope="write")["left"] is True

    assert len(store.all("SELECT 1 FROM observations")) == 7
    project = store.all("SELECT number FROM projects")[0]["number"]
    projects = None if everywhere else [project]
    match = parse("quokka").strict
    with store.transaction() as tx:
        lexically = lexical.turns_with(tx, match, projects, owner="ada", limit=50)
        raw = searching.observation_hits(tx, match, projects, owner="ada", limit=50)
    assert set(lexically.values()) == {kept.session}
    assert [row["session_id"] for row in raw] == [kept.session]
    with asking(store) as ask:
        near = ask("quokka 1", *([] if everywhere else ["repo"]), limit=1)
    assert [one.number for one in near] == list(lexically)


def test_a_deleted_session_leaves_no_turn_and_no_vector(store: Store):
    holder = held(store)
    holder.append(spoken("user", "quokka"))
    maker = Maker(store)
    maker.bind(A)
    maker.all()
    assert len(store.all("SELECT 1 FROM vector_units")) == 1
    store.connection.execute("UPDATE durable_sessions SET lease_until = NULL, lease_hash = NULL")

    answer = store.apply(DeleteSession(session=holder.session), token_scope="write")
    while answer["left"]:
        answer = store.apply(DropDeleted(session=holder.session), token_scope="write")

    for table in ("observations", "vector_units", "sessions"):
        assert store.all(f"SELECT 1 FROM {table}") == []
    assert store.all("SELECT rowid FROM observations_fts WHERE observations_fts MATCH 'quokka'") == []


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    turns=st.lists(
        st.lists(st.sampled_from(["user", "assistant", "audit", "blank"]), min_size=1, max_size=7),
        min_size=1,
        max_size=4,
    ),
    slice_events=st.integers(1, 4),
    slice_bytes=st.integers(1, 600),
)
def test_however_it_is_sliced_every_message_is_one_turn_in_its_order(
    store: Store, turns: list[list[str]], slice_events: int, slice_bytes: int
):
    holder, wanted = held(store), list[str]()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "SAID_SLICE_EVENTS", slice_events)
        patch.setattr(limits, "SAID_SLICE_BYTES", slice_bytes)
        for number, kinds in enumerate(turns):
            events = [_event(kind, f"{kind} {number}.{index}") for index, kind in enumerate(kinds)]
            holder.append(*events)
            wanted += [
                f"{kind} {number}.{index}"
                for index, kind in enumerate(kinds)
                if kind in ("user", "assistant")
            ]
        with store.transaction() as tx:
            while keep_next(tx):
                pass

    assert bodies(store, holder.session) == wanted


def held(store: Store) -> Holder:
    holder = Holder(store, started(store))
    holder.claim()
    return holder


def spoken(role: str, text: str) -> TurnEvent:
    return TurnEvent(kind=f"{role}_message", payload=message(text, role))


def bodies(store: Store, session: bytes | None = None) -> list[str]:
    rows = store.all("SELECT session_id, body FROM observations ORDER BY seq")
    return [row["body"] for row in rows if session in (None, row["session_id"])]


def _event(kind: str, text: str) -> TurnEvent:
    if kind == "audit":
        return TurnEvent(kind="audit", payload={"text": text})
    return spoken("user", "  ") if kind == "blank" else spoken(kind, text)
