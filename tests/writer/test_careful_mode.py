"""What happens to a batch in which something goes wrong."""

from __future__ import annotations

import json

import pytest

from memory_core import limits
from memory_core.clock import FakeClock
from memory_core.store import command_ids, letters
from tests.writer.engines import apply_note, envelope, new_engine, notes, registered
from workers.writer.duties import Duties
from workers.writer.engine import Stopping
from workers.writer.mark import MarkFile, Tries, key_of
from workers.writer.report import BatchReport, Fate


@pytest.fixture(autouse=True)
def note_command():
    with registered():
        yield


def fates(report) -> list[Fate]:
    return [outcome.fate for outcome in report.outcomes]


@pytest.mark.parametrize("mode", ["raise", "raise-late", "refuse-late"])
def test_a_poison_command_is_tried_three_times_and_then_dead_and_the_others_take_effect(tmp_path, mode):
    pauses: list[float] = []
    engine = new_engine(tmp_path, pause=pauses.append)

    report = engine.apply_batch([envelope("a"), envelope("x", mode), envelope("b")])

    assert report.was_careful
    assert fates(report) == [Fate.COMMITTED, Fate.DEAD, Fate.COMMITTED]
    assert notes(engine) == ["a", "b"]
    assert [pause for pause in pauses if pause] == [1.0, 5.0]
    (dead,) = engine.read(letters.dead)
    assert (dead.envelope, dead.reason, dead.attempts) == (
        envelope("x", mode),
        "exception",
        limits.CAREFUL_TRIES,
    )
    assert ("poison" if mode != "refuse-late" else "wrote before it refused") in dead.error


def test_nothing_overtakes_a_command_while_it_is_tried_again(tmp_path):
    seen: list[list[str]] = []
    engine = new_engine(tmp_path, pause=lambda _seconds: seen.append(notes(engine)))

    engine.apply_batch([envelope("a"), envelope("x", "raise"), envelope("b")])

    tries_of_x = seen[1:4]
    assert tries_of_x == [["a"]] * 3


def test_the_first_attempt_leaves_nothing_of_the_batch_behind(tmp_path):
    during: list[list[str]] = []

    def pause(_seconds: float) -> None:
        if not during:
            during.append(notes(engine))

    engine = new_engine(tmp_path, pause=pause)
    engine.apply_batch([envelope("a"), envelope("b"), envelope("x", "raise-late")])

    assert during == [[]]


def test_an_error_that_a_command_swallows_cannot_lose_the_commands_before_it(tmp_path):
    """SQLite rolls the transaction back when the disk is full; what ran on would run outside of any."""
    engine = new_engine(tmp_path)
    pages = engine.connection.raw.execute("PRAGMA page_count").fetchone()[0]
    engine.connection.raw.execute(f"PRAGMA max_page_count = {pages + 50}")

    report = engine.apply_batch([envelope("a"), envelope("x", "swallow"), envelope("b")])

    assert Fate.COMMITTED in fates(report)
    assert notes(engine) == ["a", "b"]
    assert engine.connection.in_transaction is False


def test_a_dead_command_stays_dead_when_it_is_sent_again(tmp_path):
    engine = new_engine(tmp_path)
    poison = envelope("x", "raise", wants_reply=True)
    engine.apply_batch([poison])

    assert fates(engine.apply_batch([poison])) == [Fate.DUPLICATE]
    row = engine.read(lambda tx: command_ids.lookup(tx, "owner", poison.id))
    assert row["status"] == "dead"
    assert json.loads(row["result"])["code"] == "dead"


def test_tries_are_counted_over_a_restart(tmp_path):
    def stop_at_the_long_pause(seconds: float) -> None:
        if seconds >= 5:
            raise Stopping

    engine = new_engine(tmp_path, pause=stop_at_the_long_pause)
    poison = envelope("x", "raise")
    report = engine.apply_batch([poison], until="1-1")
    assert report.interrupted
    assert report.outcomes == []

    engine.mark = MarkFile(tmp_path / "writer.inprogress")
    engine._pause = lambda _seconds: None
    again = engine.apply_batch([poison], until="1-1", careful=True)

    assert engine.mark.last.until == "1-1"
    assert fates(again) == [Fate.DEAD]
    assert engine.read(letters.dead)[0].attempts == limits.CAREFUL_TRIES


def die_under(path, one, times: int, *, hung: bool = False) -> MarkFile:
    """The mark as it is after the writer died `times` times while it applied `one`."""
    for _ in range(times):
        mark = MarkFile(path, hung_pid=None)
        left = mark.last.tries or Tries(key=key_of(one))
        mark.single(
            Tries(
                key=left.key,
                exceptions=left.exceptions,
                deaths=left.deaths,
                hangs=left.hangs,
                is_under_way=True,
            )
        )
        pid = mark.last.pid
        mark.close()
        mark = MarkFile(path, hung_pid=pid if hung else None)
    return mark


def test_what_died_each_time_waits_until_nothing_else_does_and_a_storm_of_kills_condemns_nobody(tmp_path):
    engine = new_engine(tmp_path)
    innocent = envelope("x")
    engine.mark = die_under(tmp_path / "writer.inprogress", innocent, 3)

    report = engine.apply_batch([innocent, envelope("b")], careful=True)
    assert fates(report) == [Fate.PARKED, Fate.COMMITTED]

    duties = Duties(engine, FakeClock(), ())
    duties.retry_parked(BatchReport(), is_idle=False)
    assert notes(engine) == ["b"]
    duties.retry_parked(BatchReport(), is_idle=True)
    assert notes(engine) == ["b", "x"]
    assert engine.read(letters.counts) == {"dead": 0, "parked": 0}


def test_what_dies_at_its_last_chance_is_dead(tmp_path):
    engine = new_engine(tmp_path)
    killer = envelope("x")
    engine.mark = die_under(tmp_path / "writer.inprogress", killer, 3)
    engine.apply_batch([killer], careful=True)

    engine.mark.single(Tries(key=key_of(killer), deaths=3, is_under_way=True))
    engine.mark = MarkFile(tmp_path / "writer.inprogress")
    Duties(engine, FakeClock(), ()).at_start(BatchReport())

    assert [letter.reason for letter in engine.read(letters.dead)] == ["death"]
    assert engine.read(letters.parked) == []
    assert notes(engine) == []


def test_kills_for_hanging_count_like_failures(tmp_path):
    engine = new_engine(tmp_path)
    hanging = envelope("x")
    engine.mark = die_under(tmp_path / "writer.inprogress", hanging, 3, hung=True)

    report = engine.apply_batch([hanging], careful=True)

    assert fates(report) == [Fate.DEAD]
    assert [letter.reason for letter in engine.read(letters.dead)] == ["hang"]


def test_a_mark_of_an_idle_writer_accuses_nobody(tmp_path):
    engine = new_engine(tmp_path)
    engine.apply_batch([envelope("a")], until="5-0", careful=True)

    left = MarkFile(tmp_path / "writer.inprogress").last

    assert left.tries is None


def test_a_dead_letter_is_applied_as_new_when_it_is_retried(tmp_path):
    engine = new_engine(tmp_path)
    from memory_core.commands import letters as letter_commands
    from memory_core.ids import id_text

    broken = {"mode": "raise"}

    def apply(note, tx):
        if broken["mode"] == "raise":
            raise RuntimeError("a bug of this release")
        return apply_note(note, tx)

    from tests.writer.engines import NOTE

    with registered(type(NOTE)(name="test_later", version=2, body=NOTE.body, apply=apply)):
        letter = envelope("x", name="test_later")
        engine.apply_batch([letter])
        broken["mode"] = "fixed"

        def retry(tx):
            tx.envelope = envelope("r", token_scope="admin")
            return letter_commands.retry(letter_commands.RetryDeadLetter(letter=id_text(letter.id)), tx)

        answer = engine.originate(retry)
        Duties(engine, FakeClock(), ()).retry_parked(BatchReport(), is_idle=False)

    assert answer["status"] == "retrying"
    assert notes(engine) == ["x"]
    assert engine.read(letters.counts) == {"dead": 0, "parked": 0}
    assert fates(engine.apply_batch([letter])) == [Fate.DUPLICATE]
