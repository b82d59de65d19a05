"""A disk that is full stops the writer: nothing is lost, nothing is counted, and it goes on when there is room."""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from memory_core.errors import NotAlone
from memory_core.store import letters
from tests.writer.engines import envelope, new_engine, notes, registered
from tests.writer.mutants import epoch_not_asserted, savepoints
from workers.writer.report import Fate
from workers.writer.room import Ballast, Room, State

MIB = 1024 * 1024


@pytest.fixture(autouse=True)
def note_command():
    with registered():
        yield


def limit_pages(engine, more: int) -> None:
    """Let the database grow by so many pages and no more: SQLite says FULL by itself then."""
    pages = engine.connection.raw.execute("PRAGMA page_count").fetchone()[0]
    engine.connection.raw.execute(f"PRAGMA max_page_count = {pages + more}")


def check_that_what_is_reported_is_there(engine) -> None:
    small = [envelope(f"s{n}") for n in range(5)]
    big = envelope("big" * 100_000, key="big")
    limit_pages(engine, 20)

    report = engine.apply_batch([*small, big, envelope("after")])

    committed = [o.envelope for o in report.outcomes if o.fate is Fate.COMMITTED]
    there = notes(engine)
    assert [e for e in small if e in committed] == [e for n, e in enumerate(small) if f"s{n}" in there]
    assert not any(o.fate is Fate.DEAD for o in report.outcomes)


def test_a_disk_that_fills_in_mid_batch_loses_nothing_that_was_reported(tmp_path):
    check_that_what_is_reported_is_there(new_engine(tmp_path))


def test_savepoints_would_lose_it(tmp_path, monkeypatch):
    savepoints.load(monkeypatch.setattr)

    with pytest.raises(AssertionError):
        check_that_what_is_reported_is_there(new_engine(tmp_path))


def check_that_a_stale_writer_writes_nothing(engine) -> None:
    engine.connection.raw.execute("UPDATE install SET epoch = epoch + 1")
    with suppress(NotAlone):
        engine.apply_batch([envelope("a")])
    assert notes(engine) == []


def test_a_writer_that_was_taken_over_writes_nothing(tmp_path):
    check_that_a_stale_writer_writes_nothing(new_engine(tmp_path))


def test_without_its_look_at_the_epoch_it_would_write(tmp_path, monkeypatch):
    epoch_not_asserted.load(monkeypatch.setattr)

    with pytest.raises(AssertionError):
        check_that_a_stale_writer_writes_nothing(new_engine(tmp_path))


def test_a_batch_that_a_full_disk_ends_says_how_far_it_came(tmp_path, caplog):
    engine = new_engine(tmp_path)
    limit_pages(engine, 20)

    report = engine.apply_batch([envelope("a"), envelope("b"), envelope("x" * 300_000, key="big")])

    assert report.stopped is not None
    [said] = [record for record in caplog.records if getattr(record, "action", "") == "batch_undone"]
    assert (said.applied, said.commands) == (2, 3)
    assert notes(engine) == []


def test_full_counts_no_try_and_the_batch_comes_again(tmp_path):
    engine = new_engine(tmp_path)
    limit_pages(engine, 5)
    batch = [envelope("a"), envelope("x" * 200_000, key="big")]

    report = engine.apply_batch(batch, until="1-0")
    assert report.stopped is not None
    assert report.outcomes == []
    assert engine.connection.in_transaction is False

    limit_pages(engine, 100_000)
    again = engine.apply_batch(batch, until="1-0")
    assert [o.fate for o in again.outcomes] == [Fate.COMMITTED] * 2
    assert engine.read(letters.counts) == {"dead": 0, "parked": 0}


@pytest.fixture
def small_disk(tmp_path: Path):
    """A file system of 24 MiB."""
    where = tmp_path / "disk"
    where.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(where)], capture_output=True
    )
    if mounted.returncode:
        pytest.skip("needs the right to mount a small file system")
    yield where
    subprocess.run(["umount", "-l", str(where)], check=True)


def fill(disk: Path) -> Path:
    filler = disk / "filler"
    with filler.open("wb") as file:
        try:
            while True:
                file.write(b"\0" * 65_536)
                file.flush()
        except OSError:
            pass
    return filler


def test_a_disk_that_is_really_full_stops_and_goes_on(small_disk):
    engine = new_engine(small_disk)
    ballast = Ballast(small_disk / "ballast", size_bytes=2 * MIB, reserve_bytes=0)
    ballast.ensure()
    room = Room(engine.connection, ballast)
    engine.apply_batch([envelope("a")])
    filler = fill(small_disk)

    batch = [envelope("b" * 3_000_000, key="b")]
    stopped = engine.apply_batch(batch).stopped
    assert stopped is not None
    room.stop(stopped)
    assert not (small_disk / "ballast").exists()

    filler.unlink()
    assert room.may_apply()
    assert room.state is State.RECOVERING
    assert room.batch_commands < 500
    assert [o.fate for o in engine.apply_batch(batch).outcomes] == [Fate.COMMITTED]
    room.after_batch()
    room.after_batch()
    assert room.state is State.RUNNING
    room.when_idle()
    assert (small_disk / "ballast").stat().st_size == 2 * MIB
    assert [len(note) for note in notes(engine)] == [1, 3_000_000]
    assert engine.connection.raw.execute("PRAGMA integrity_check").fetchone()[0] == "ok"


def test_ballast_is_not_made_where_room_is_short(tmp_path):
    free = os.statvfs(tmp_path).f_bavail * os.statvfs(tmp_path).f_frsize

    Ballast(tmp_path / "ballast", size_bytes=MIB, reserve_bytes=free).ensure()

    assert list(tmp_path.iterdir()) == []


def test_the_wal_stays_small_under_load(tmp_path):
    engine = new_engine(tmp_path)
    room = Room(engine.connection, Ballast(tmp_path / "ballast", size_bytes=4096, reserve_bytes=0))
    largest = 0
    for n in range(60):
        engine.apply_batch([envelope(f"{n}-{m}" + "x" * 8_000, key=f"{n}-{m}") for m in range(25)])
        room.after_batch()
        largest = max(largest, engine.connection.wal_bytes)

    assert largest < 8 * MIB
    room.when_idle()
    assert engine.connection.wal_bytes == 0
