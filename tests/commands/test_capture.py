"""From a hook event to rows: sessions, observations, duplicates."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memory_core.commands import capture
from memory_core.commands.capture import RecordObservation
from memory_core.domain.capture import capped, twin_hash
from memory_core.domain.command import Refusal
from memory_core.domain.event import EventKind, HookEvent, Speaker
from memory_core.ids import session_id_from
from memory_core.store import observations, sessions
from tests.factories import Store, bash, database, ended, envelope, event, said, started, used_tool

A_MINUTE = 60


@pytest.fixture
def store(tmp_path: Path) -> Generator[Store]:
    made = database(tmp_path)
    yield made
    made.close()


def record(store: Store, what: HookEvent, source: str = "claude-code/user", **more: Any) -> Any:
    of_envelope = {key: more.pop(key) for key in ("principal", "recorded_at") if key in more}
    return store.apply(RecordObservation(event=capped(what), source=source, **more), **of_envelope)


def bodies(store: Store) -> list[str]:
    return [row["body"] for row in store.all("SELECT body FROM observations ORDER BY seq")]


def session(store: Store) -> dict[str, Any]:
    rows = store.all("SELECT * FROM sessions")
    assert len(rows) == 1
    return rows[0]


def test_one_event_makes_workspace_project_session_and_observation(store: Store):
    assert record(store, event(body="fix the build")) == {"duplicate": False}

    assert store.all("SELECT name FROM workspaces") == [{"name": "default"}]
    assert store.all("SELECT name FROM projects") == [{"name": "repo"}]
    assert bodies(store) == ["fix the build"]
    assert (session(store)["title"], session(store)["observation_count"]) == ("fix the build", 1)


@pytest.mark.parametrize("kind", list(EventKind))
def test_an_event_of_any_kind_may_be_the_first_of_its_session(store: Store, kind: EventKind):
    record(store, event(kind=kind, body="text"))

    assert session(store)["observation_count"] == 1


def test_a_tool_event_keeps_tool_command_paths_and_outcome_as_columns(store: Store):
    tool = replace(bash("pytest -q", call_id="tu_01"), paths=("/srv/repo/a.py", "/srv/repo/ü.py"))

    record(store, used_tool(tool))

    [row] = store.all("SELECT * FROM observations")
    assert (row["tool"], row["tool_family"], row["tool_call"]) == ("Bash", "non-file", "tu_01")
    assert (row["command"], row["outcome"], row["result"]) == ("pytest -q", "success", "3 passed")
    assert row["paths"] == '["/srv/repo/a.py", "/srv/repo/ü.py"]'
    assert (row["title"], row["body"]) == ("Bash: pytest -q", "")


def test_deliveries_doubled_by_several_hooks_are_stored_once_and_real_repeats_are_all_kept(store: Store):
    first = used_tool(bash("pytest -q", call_id="tu_01"), unique_id="tu_01")
    assert record(store, first)["duplicate"] is False
    for source in ("claude-code/project", "claude-code/plugin", "claude-code/user"):
        assert record(store, first, source)["duplicate"] is True
    store.clock.advance(40 * A_MINUTE)
    assert record(store, first)["duplicate"] is True
    record(store, used_tool(bash("pytest -q", call_id="tu_02"), unique_id="tu_02"))
    record(store, event(body="continue"))
    record(store, event(body="now fix the flaky test"))
    store.clock.advance(90)
    record(store, event(body="continue"))
    record(store, used_tool(bash("ls", "legacy field name")))

    assert bodies(store) == ["", "", "continue", "now fix the flaky test", "continue", ""]
    assert session(store)["observation_count"] == 6


def test_the_same_words_twice_from_one_source_are_two_prompts_even_within_a_second(store: Store):
    record(store, event(body="continue"))
    record(store, event(body="continue"))

    assert bodies(store) == ["continue", "continue"]


def test_two_sources_are_one_event_only_within_two_seconds(store: Store):
    record(store, event(body="continue"), "claude-code/user")
    store.clock.advance(1.9)
    assert record(store, event(body="continue"), "claude-code/plugin")["duplicate"] is True
    store.clock.advance(0.2)
    assert record(store, event(body="continue"), "claude-code/plugin")["duplicate"] is False


def test_twins_are_told_by_the_clients_time_when_a_spool_was_emptied_late(store: Store):
    at = store.clock.now_us()
    record(store, event(body="continue", occurred_at=at), "claude-code/user")
    store.clock.advance(A_MINUTE)

    late_twin = event(body="continue", occurred_at=at + 30_000)
    another = event(body="continue", occurred_at=at + 50_000_000)

    assert record(store, late_twin, "claude-code/plugin")["duplicate"] is True
    assert record(store, another, "claude-code/plugin")["duplicate"] is False


def test_twins_are_seen_when_the_clock_steps_back_between_them(store: Store):
    record(store, event(body="continue"), "claude-code/user")
    store.clock.advance(-1)

    assert record(store, event(body="continue"), "claude-code/plugin")["duplicate"] is True


def test_equal_words_in_another_session_are_no_twin(store: Store):
    record(store, event(body="continue"), "claude-code/user")

    assert record(store, event(body="continue", session_key="s2"), "claude-code/plugin")["duplicate"] is False


def test_a_clock_that_steps_back_changes_neither_order_nor_last_activity(store: Store):
    record(store, event(body="one"))
    latest = session(store)["last_event_at"]
    store.clock.advance(-3600)
    record(store, event(body="two"))

    assert bodies(store) == ["one", "two"]
    assert session(store)["last_event_at"] == latest


def test_a_clients_impossible_time_is_kept_but_not_believed(store: Store):
    far = store.clock.now_us() + 10 * 365 * 86_400 * 1_000_000
    record(store, event(occurred_at=far))

    assert session(store)["started_at"] == store.clock.now_us()
    assert store.all("SELECT occurred_at FROM observations") == [{"occurred_at": far}]


def test_a_subagents_events_stay_with_their_parent_and_neither_name_nor_end_it(store: Store):
    record(store, started())
    record(store, event(body="look through the tests", agent_id="a1", agent_type="explorer"))
    record(store, ended(agent_id="a1"))
    record(store, event(body="what did it find?"))

    assert session(store)["title"] == "what did it find?"
    assert session(store)["ended_at"] is None
    assert [r["agent_id"] for r in store.all("SELECT agent_id FROM observations ORDER BY seq")] == [
        None,
        "a1",
        "a1",
        None,
    ]


def test_another_principal_cannot_write_into_a_session(store: Store):
    record(store, event(), principal="ada")

    answer = record(store, event(body="mine now"), principal="eve")

    assert isinstance(answer, Refusal)
    assert answer.code == "forbidden"
    assert session(store)["observation_count"] == 1


def test_counters_tell_substance_from_boundaries(store: Store):
    record(store, started())
    record(store, event(kind=EventKind.NOTIFICATION, body="waiting", speaker=Speaker.SYSTEM))
    record(store, said(""))
    assert session(store)["substance_count"] == 0
    record(store, said("All tests pass."))

    assert (session(store)["observation_count"], session(store)["substance_count"]) == (4, 1)


def test_text_that_cannot_be_stored_as_it_is_does_not_stop_the_writer(store: Store):
    record(store, event(body="nul \x00 and all", session_key="k" * 5_000, cwd="/x" * 9_000))

    assert bodies(store) == ["nul � and all"]
    assert len(session(store)["vendor_key"]) == 512


def prompt(text: str, **more: Any) -> RecordObservation:
    return RecordObservation(event=capped(event(body=text, **more)), source="claude-code/user")


def test_an_event_costs_one_statement_beside_those_that_its_batch_shares(store: Store):
    record(store, event())
    seen: list[str] = []
    with store.transaction(envelope(prompt("one"), principal="ada")) as tx:
        capture.record(prompt("one"), tx)
        store.connection.set_trace_callback(seen.append)
        capture.record(prompt("two"), tx)
        capture.record(RecordObservation(event=capped(used_tool()), source="claude-code/user"), tx)
        asked = [text.split()[0] for text in seen]
        tx.write_held()
        store.connection.set_trace_callback(None)

    assert asked == ["SELECT", "SELECT"]
    assert sum(text.startswith("UPDATE sessions") for text in seen) == 1
    assert bodies(store) == ["Please add a retry to the uploader", "one", "two", ""]


def test_events_of_one_batch_add_up_in_their_sessions_row(store: Store):
    with store.transaction(envelope(prompt("first"), principal="ada")) as tx:
        for what in (started(), event(body="first"), event(body="second", session_key="s2"), said("done")):
            capture.record(RecordObservation(event=capped(what), source="claude-code/user"), tx)
        capture.record(prompt("third"), tx)

    rows = store.all(
        "SELECT title, observation_count, substance_count FROM sessions ORDER BY started_at, title"
    )
    assert [tuple(row.values()) for row in rows] == [("first", 4, 3), ("second", 1, 1)]
    assert bodies(store) == ["", "first", "second", "done", "third"]


def test_who_asks_within_the_batch_sees_what_it_held_back(store: Store):
    with store.transaction(envelope(prompt("one"), principal="ada")) as tx:
        capture.record(prompt("one"), tx)
        capture.record(prompt("two"), tx)
        session_id = session_id_from(event().session_key)
        row = sessions.one(tx, session_id)
        told = observations.of_session(tx, session_id)
        capture.record(prompt("three"), tx)

    assert row is not None
    assert row["observation_count"] == row["event_count"] == 2
    assert [one["body"] for one in told] == ["one", "two"]
    assert session(store)["observation_count"] == 3


def test_an_event_that_ends_its_session_counts_those_before_it_in_its_batch(store: Store):
    with store.transaction(envelope(prompt("one"), principal="ada")) as tx:
        for what in (event(body="one"), said("done"), ended(), said("late")):
            capture.record(RecordObservation(event=capped(what), source="claude-code/user"), tx)

    row = session(store)
    assert (row["observation_count"], row["finalised_count"]) == (4, 3)
    assert row["ended_at"] is not None
    assert row["refinalise_at"] is not None


def test_twins_are_seen_within_one_batch(store: Store):
    vendors = used_tool(bash("pytest -q", call_id="tu_01"), unique_id="tu_01")
    with store.transaction(envelope(prompt("one"), principal="ada")) as tx:
        answers = [
            capture.record(RecordObservation(event=capped(what), source=source), tx)
            for what, source in (
                (event(body="continue"), "claude-code/user"),
                (event(body="continue"), "claude-code/plugin"),
                (event(body="continue"), "claude-code/user"),
                (vendors, "claude-code/user"),
                (vendors, "claude-code/user"),
            )
        ]

    assert [answer["duplicate"] for answer in answers] == [False, True, False, False, True]
    assert bodies(store) == ["continue", "continue", ""]


def test_an_event_after_one_of_another_batch_finds_both_its_twins(store: Store):
    record(store, event(body="continue"), "claude-code/user")
    store.clock.advance(1.0)
    with store.transaction(envelope(prompt("one"), principal="ada", recorded_at=store.clock.now_us())) as tx:
        capture.record(prompt("continue"), tx)
        twins = observations.twins(
            tx, session_id_from(event().session_key), twin_hash(capped(event(body="continue")))
        )

    assert [twin["recorded_at"] for twin in twins] == [store.clock.now_us(), store.clock.now_us() - 1_000_000]


def turns_found(store: Store, words: str) -> list[str]:
    rows = store.all(
        "SELECT o.body FROM observations_fts f JOIN observations o ON o.seq = f.rowid WHERE observations_fts MATCH ?",
        f"(scope : t1) AND ({words})",
    )
    return [row["body"][:20] for row in rows]


def test_what_is_said_is_found_as_a_turn_and_what_a_tool_did_is_not(store: Store):
    record(store, event(body="the kiln is broken"))
    record(store, said("the kiln is mended"))
    record(store, used_tool(bash("ls kiln")))

    assert turns_found(store, "kiln") == ["the kiln is broken", "the kiln is mended"]
    assert store.all("SELECT count(*) AS n FROM observations_fts WHERE observations_fts MATCH 'kiln'") == [
        {"n": 3}
    ]


def test_a_turn_is_found_by_who_said_it_by_stems_and_by_parts_of_words(store: Store):
    record(store, event(body="we painted parseHttpBody in C++", speaker_name="Wanda"))
    record(store, event(body="陶芸の窯が壊れた"))

    for words in ("wanda", "painting", '"http body"', "cplusplus"):
        assert turns_found(store, words) == ["we painted parseHttp"], words
    assert turns_found(store, '"陶芸"') == ["陶芸の窯が壊れた"]


def test_the_beginning_of_a_turn_is_indexed_once(store: Store):
    record(store, event(title="the kiln is broken", body="the kiln is broken\nand cold"))
    record(store, event(title="weekly report", body="all is well"))

    assert store.all("SELECT title FROM observations_text ORDER BY seq") == [
        {"title": ""},
        {"title": " weekly report"},
    ]
