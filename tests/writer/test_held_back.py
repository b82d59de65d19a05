"""What the events of a batch share, written once: with its failures, its refusals and its repeats."""

from __future__ import annotations

from typing import Any

import pytest

from memory_core.clock import FakeClock
from memory_core.commands import CommandKind
from memory_core.commands.capture import RecordObservation
from memory_core.domain.capture import capped
from memory_core.domain.command import Envelope, Refusal
from memory_core.errors import CoreError
from memory_core.ids import session_id_from
from memory_core.store import command_ids, letters, sessions
from memory_core.store.transaction import Transaction
from tests.factories import envelope as on_its_way
from tests.factories import event
from tests.writer.engines import Note, envelope, new_engine, registered
from workers.writer.engine import Engine
from workers.writer.report import Fate

SESSION = session_id_from(event().session_key)


@pytest.fixture
def engine(tmp_path):
    with registered():
        yield new_engine(tmp_path, pause=lambda _seconds: None)


def told(text: str, **more: Any) -> Envelope:
    """One event on its way, under an id of its own."""
    recorded_at = FakeClock().now_us()
    body = RecordObservation(event=capped(event(body=text)), source="claude-code/user")
    return on_its_way(body, principal="owner", recorded_at=recorded_at, **more)


def fates(report) -> list[Fate]:
    return [outcome.fate for outcome in report.outcomes]


def stored(engine: Engine) -> tuple[list[str], int]:
    """The texts that were stored, and how many the session counts."""
    raw = engine.connection.raw
    texts = [row[0] for row in raw.execute("SELECT body FROM observations ORDER BY seq")]
    counted = raw.execute("SELECT coalesce(sum(observation_count), 0) FROM sessions").fetchone()[0]
    return texts, counted


def found(engine: Engine, word: str) -> int:
    asked = "SELECT count(*) FROM observations_fts WHERE observations_fts MATCH ?"
    return engine.connection.raw.execute(asked, (word,)).fetchone()[0]


def test_events_of_one_batch_are_counted_stored_and_indexed(engine: Engine):
    report = engine.apply_batch([told("first"), told("second"), told("third")])

    assert fates(report) == [Fate.COMMITTED] * 3
    assert stored(engine) == (["first", "second", "third"], 3)
    assert found(engine, "second") == 1


@pytest.mark.parametrize("mode", ["raise", "raise-late"])
def test_a_command_that_fails_in_a_batch_costs_its_events_nothing_and_doubles_none(engine: Engine, mode: str):
    report = engine.apply_batch([told("first"), told("second"), envelope("poison", mode), told("third")])

    assert report.was_careful
    assert fates(report) == [Fate.COMMITTED, Fate.COMMITTED, Fate.DEAD, Fate.COMMITTED]
    assert stored(engine) == (["first", "second", "third"], 3)
    assert found(engine, "second") == 1


def test_an_event_that_fails_after_it_changed_its_session_leaves_no_trace(engine: Engine, monkeypatch):
    def broken(tx: Transaction, session_id: bytes, **changes: Any) -> None:
        count_event(tx, session_id, **changes)
        if changes["title"] == "poison":
            raise RuntimeError("a bug behind the change")

    count_event = sessions.count_event
    monkeypatch.setattr(sessions, "count_event", broken)

    report = engine.apply_batch([told("first"), told("poison"), told("third")])

    assert fates(report) == [Fate.COMMITTED, Fate.DEAD, Fate.COMMITTED]
    assert stored(engine) == (["first", "third"], 2)
    assert [letter.reason for letter in engine.read(letters.dead)] == ["exception"]


def test_a_refusal_is_not_blamed_for_what_the_events_before_it_wrote(engine: Engine):
    def ask_and_refuse(_note: Note, tx: Transaction) -> Refusal:
        row = sessions.one(tx, SESSION)
        return Refusal(code="conflict", message=f"it has {row['observation_count'] if row else 0} events")

    with registered(CommandKind(name="test_ask", version=2, body=Note, apply=ask_and_refuse)):
        asks = envelope("a", name="test_ask", wants_reply=True)
        report = engine.apply_batch([told("first"), told("second"), asks, told("third")])

    row = engine.read(lambda tx: command_ids.lookup(tx, "owner", asks.id))
    assert not report.was_careful
    assert fates(report) == [Fate.COMMITTED, Fate.COMMITTED, Fate.REFUSED, Fate.COMMITTED]
    assert row["result"] == '{"code":"conflict","message":"it has 2 events"}'
    assert stored(engine) == (["first", "second", "third"], 3)


def test_a_repeat_within_its_batch_changes_nothing(engine: Engine):
    once, other = told("once"), told("other")

    report = engine.apply_batch([once, other, once, told("last"), other])

    assert fates(report) == [
        Fate.COMMITTED,
        Fate.COMMITTED,
        Fate.DUPLICATE,
        Fate.COMMITTED,
        Fate.DUPLICATE,
    ]
    assert stored(engine) == (["once", "other", "last"], 3)


def test_a_whole_batch_that_comes_again_changes_nothing(engine: Engine):
    batch = [told(f"event {number}") for number in range(30)]
    engine.apply_batch(batch[:20])

    report = engine.apply_batch(batch)

    assert fates(report) == [Fate.DUPLICATE] * 20 + [Fate.COMMITTED] * 10
    assert stored(engine) == ([f"event {number}" for number in range(30)], 30)


def test_an_id_is_looked_for_among_those_of_its_principal_only(engine: Engine):
    mine, theirs = envelope("a", key="one"), envelope("b", key="one", principal="another")
    engine.apply_batch([mine])

    assert fates(engine.apply_batch([theirs, mine, theirs])) == [
        Fate.COMMITTED,
        Fate.DUPLICATE,
        Fate.DUPLICATE,
    ]


def test_what_was_held_back_and_cannot_be_written_is_retried_one_by_one(engine: Engine):
    def insert_twice(note: Note, tx: Transaction) -> None:
        """Holds back a row that the database refuses, and swallows what is said of it."""
        if note.text == "bad":
            sent = envelope("taken")
            for _ in range(2):
                command_ids.record(tx, sent, command_ids.COMMITTED, None)
            try:
                sessions.one(tx, SESSION)
            except CoreError:
                return

    with registered(CommandKind(name="test_twice", version=2, body=Note, apply=insert_twice)):
        report = engine.apply_batch([told("first"), envelope("bad", name="test_twice"), told("second")])

    assert report.was_careful
    assert fates(report) == [Fate.COMMITTED, Fate.DEAD, Fate.COMMITTED]
    assert stored(engine) == (["first", "second"], 2)


def test_a_disk_that_fills_under_what_was_held_back_stops_the_batch_whatever_the_command_at_hand_makes_of_it(
    engine: Engine,
):
    def ask_and_refuse(_note: Note, tx: Transaction) -> Refusal | None:
        try:
            sessions.one(tx, SESSION)
        except CoreError as error:
            return Refusal.of(error)
        return None

    pages = engine.connection.raw.execute("PRAGMA page_count").fetchone()[0]
    engine.connection.raw.execute(f"PRAGMA max_page_count = {pages + 20}")
    events = [told(f"{number} " + "x" * 10_000) for number in range(20)]
    with registered(CommandKind(name="test_ask", version=2, body=Note, apply=ask_and_refuse)):
        asks = envelope("a", name="test_ask")
        stopped = engine.apply_batch([*events, asks])
        engine.connection.raw.execute("PRAGMA max_page_count = 1000000")
        again = engine.apply_batch([*events, asks])

    assert (stopped.outcomes, stopped.was_careful) == ([], False)
    assert stopped.stopped is not None
    assert fates(again) == [Fate.COMMITTED] * 21
    assert stored(engine)[1] == 20
