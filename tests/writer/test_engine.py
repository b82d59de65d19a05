"""The engine's promises about one batch."""

from __future__ import annotations

import pytest

from memory_core.clock import FakeClock
from memory_core.errors import NotAlone
from memory_core.store import command_ids, letters
from tests.writer.engines import NOTE, envelope, new_engine, notes, registered
from workers.writer.report import Fate


@pytest.fixture(autouse=True)
def note_command():
    with registered():
        yield


def fates(report) -> list[Fate]:
    return [outcome.fate for outcome in report.outcomes]


def test_commands_take_effect_in_their_order(tmp_path):
    engine = new_engine(tmp_path)

    report = engine.apply_batch([envelope("a"), envelope("b"), envelope("c")])

    assert fates(report) == [Fate.COMMITTED] * 3
    assert notes(engine) == ["a", "b", "c"]
    assert report.commit_seconds >= 0


def test_a_second_delivery_changes_nothing(tmp_path):
    engine = new_engine(tmp_path)
    engine.apply_batch([envelope("a")])

    report = engine.apply_batch([envelope("a"), envelope("b"), envelope("b")])

    assert fates(report) == [Fate.DUPLICATE, Fate.COMMITTED, Fate.DUPLICATE]
    assert notes(engine) == ["a", "b"]


def test_the_same_id_of_two_principals_is_two_commands(tmp_path):
    engine = new_engine(tmp_path)

    engine.apply_batch([envelope("a"), envelope("a", principal="another")])

    assert notes(engine) == ["a", "a"]


def test_the_same_id_with_another_body_is_refused(tmp_path):
    engine = new_engine(tmp_path)
    engine.apply_batch([envelope("a", key="one")])

    report = engine.apply_batch([envelope("b", key="one")])

    assert fates(report) == [Fate.MISMATCH]
    assert notes(engine) == ["a"]


def test_a_refusal_takes_no_effect_and_is_remembered(tmp_path):
    engine = new_engine(tmp_path)
    refused = envelope("a", "refuse", wants_reply=True)

    report = engine.apply_batch([refused, envelope("b")])

    row = engine.read(lambda tx: command_ids.lookup(tx, "owner", refused.id))
    assert fates(report) == [Fate.REFUSED, Fate.COMMITTED]
    assert row["status"] == "refused"
    assert row["result"] == '{"code":"conflict","message":"no"}'
    assert notes(engine) == ["b"]


def test_a_result_is_kept_for_those_who_wait_only(tmp_path):
    engine = new_engine(tmp_path)
    waits, hook = envelope("a", wants_reply=True), envelope("b")

    engine.apply_batch([waits, hook])

    results = [
        engine.read(lambda tx, e=e: command_ids.lookup(tx, "owner", e.id))["result"] for e in (waits, hook)
    ]
    assert results == ['{"text":"a"}', None]


def test_a_late_command_records_nothing_and_its_id_stays_free(tmp_path):
    clock = FakeClock()
    engine = new_engine(tmp_path, clock)
    late = envelope("a", not_after=clock.now_us() - 1)

    assert fates(engine.apply_batch([late])) == [Fate.LATE]
    assert engine.read(lambda tx: command_ids.lookup(tx, "owner", late.id)) is None

    again = envelope("a", not_after=clock.now_us() + 1_000_000)
    assert fates(engine.apply_batch([again])) == [Fate.COMMITTED]


@pytest.mark.parametrize("stranger", [{"name": "not_invented_yet"}, {"version": 99}])
def test_an_unknown_command_is_parked_and_nothing_waits_for_it(tmp_path, stranger):
    engine = new_engine(tmp_path)
    unknown = envelope("a", **stranger)

    report = engine.apply_batch([unknown, envelope("b"), unknown])

    parked = engine.read(letters.parked)
    assert fates(report) == [Fate.PARKED, Fate.COMMITTED, Fate.DUPLICATE]
    assert [letter.envelope for letter in parked] == [unknown]
    assert engine.read(lambda tx: command_ids.lookup(tx, "owner", unknown.id)) is None


def test_a_parked_command_takes_effect_once_it_is_known(tmp_path):
    engine = new_engine(tmp_path)
    unknown = envelope("a", name="test_note_of_tomorrow")
    engine.apply_batch([unknown, envelope("b")])

    tomorrow = type(NOTE)(name=unknown.name, version=2, body=NOTE.body, apply=NOTE.apply)
    with registered(tomorrow):
        report = engine.apply_parked(engine.read(letters.parked))

    assert fates(report) == [Fate.COMMITTED]
    assert notes(engine) == ["b", "a"]
    assert engine.read(letters.parked) == []


def test_a_body_of_the_last_release_is_understood(tmp_path):
    engine = new_engine(tmp_path)

    report = engine.apply_batch([envelope("x", version=1, body=b'{"t": "old"}')])

    assert fates(report) == [Fate.COMMITTED]
    assert notes(engine) == ["old"]


def test_a_body_that_cannot_be_read_is_a_dead_letter_at_once(tmp_path):
    engine = new_engine(tmp_path)

    report = engine.apply_batch([envelope("x", body=b'{"text": 7}'), envelope("b")])

    assert fates(report) == [Fate.DEAD, Fate.COMMITTED]
    assert [letter.reason for letter in engine.read(letters.dead)] == ["exception"]


def test_a_stale_epoch_writes_nothing(tmp_path):
    engine = new_engine(tmp_path)
    engine.connection.raw.execute("UPDATE install SET epoch = 2")

    with pytest.raises(NotAlone):
        engine.apply_batch([envelope("a")])

    assert notes(engine) == []


def test_a_batch_ends_when_its_time_is_up(tmp_path):
    class SlowClock(FakeClock):
        def monotonic(self) -> float:
            self.advance(0.02)
            return super().monotonic()

    engine = new_engine(tmp_path, SlowClock())

    report = engine.apply_batch([envelope(str(n)) for n in range(50)])

    assert 0 < len(report.outcomes) < 50
    assert notes(engine) == [str(n) for n in range(len(report.outcomes))]
