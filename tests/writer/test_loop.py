"""The loop between stream and database: order of steps, what waits, what comes again."""

from __future__ import annotations

import threading

import pytest

from memory_core.clock import FakeClock
from memory_core.errors import NotAlone, Unavailable
from tests.writer.engines import envelope, new_engine, notes, registered
from workers.queue.reader import Entry
from workers.writer.duties import Duties, Duty
from workers.writer.loop import WriterLoop
from workers.writer.metrics import Metrics
from workers.writer.room import Ballast, Room


@pytest.fixture(autouse=True)
def note_command():
    with registered():
        yield


class FakeStream:
    """The broker's side: a list, and a log of what was asked of it."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.log: list[str] = []
        self.fails: dict[str, Exception] = {}
        #: How long each read would have waited, milliseconds.
        self.waits: list[int] = []
        self._at = 0
        self._number = 0

    def append(self, *envelopes, raw: bytes = b"") -> None:
        for one in envelopes or [None]:
            self._number += 1
            name = f"{self._number}-0".encode()
            self.entries.append(Entry(stream_id=name, size=1, envelope=one, raw=raw))

    def _do(self, what: str) -> None:
        self.log.append(what)
        if what.split(":", maxsplit=1)[0] in self.fails:
            raise self.fails[what.split(":", maxsplit=1)[0]]

    def claim(self) -> None:
        self._do("claim")

    def read(self, count: int, block_ms: int) -> list[Entry]:
        self._do("read")
        self.waits.append(block_ms)
        found = self.entries[self._at : self._at + count]
        self._at += len(found)
        return found

    def forget_tail(self) -> None:
        self._do("forget")
        self._at = 0

    def delete(self, entries) -> None:
        self._do(f"delete:{len(entries)}")
        gone = {entry.stream_id for entry in entries}
        self.entries = [entry for entry in self.entries if entry.stream_id not in gone]
        self._at -= len(gone)

    def publish(self, ids) -> None:
        self._do(f"publish:{len(ids)}")

    def ring(self, queues) -> None:
        self._do(f"ring:{','.join(sorted(queues))}")

    def tidy(self) -> None:
        self._do("tidy")


class FakeFiles:
    def __init__(self, log: list[str]) -> None:
        self._log = log

    def install(self, *, promised: bool) -> None:
        self._log.append(f"files:{promised}")


class FakeOutside:
    def __init__(self, patience_ms: int | None = None, findings: int = 0) -> None:
        self.patience_ms = patience_ms
        self.findings = findings
        #: Of each step, whether no commands came.
        self.quiet: list[bool] = []

    def step(self, report, *, is_quiet: bool) -> bool:
        self.quiet.append(is_quiet)
        self.findings -= 1
        return self.findings >= 0


class Setting:
    def __init__(self, tmp_path, duties=(), outside=None) -> None:
        self.clock = FakeClock()
        self.engine = new_engine(tmp_path, self.clock, pause=lambda _seconds: None)
        self.stream = FakeStream()
        self.stopping = threading.Event()
        self.loop = WriterLoop(
            engine=self.engine,
            queue=self.stream,
            room=Room(
                self.engine.connection, Ballast(tmp_path / "ballast", size_bytes=4096, reserve_bytes=0)
            ),
            duties=Duties(self.engine, self.clock, duties),
            files=FakeFiles(self.stream.log),
            metrics=Metrics(tmp_path / "metrics.json", self.clock, epoch=1),
            clock=self.clock,
            beat=lambda _busy: None,
            stopping=self.stopping,
            outside=outside,
        )

    def step(self, block_ms: int = 0) -> float:
        return self.loop._step(block_ms)


@pytest.fixture
def setting(tmp_path) -> Setting:
    return Setting(tmp_path)


def test_the_answer_comes_after_the_commit_then_the_entries_go_then_the_files_come(setting):
    setting.stream.append(envelope("a"), envelope("b"))

    setting.step()

    log = setting.stream.log
    assert log.index("publish:2") < log.index("delete:2") < log.index("files:False")
    assert setting.stream.entries == []
    assert notes(setting.engine) == ["a", "b"]


def test_what_could_not_be_deleted_comes_again_and_changes_nothing(setting):
    setting.stream.append(envelope("a"))
    setting.stream.fails["delete"] = Unavailable("away")

    assert setting.step() > 0
    del setting.stream.fails["delete"]
    setting.step()

    assert notes(setting.engine) == ["a"]
    assert setting.stream.entries == []
    assert setting.stream.log.count("claim") == 2


def test_a_writer_that_is_not_alone_ends_and_installs_no_files(setting):
    setting.stream.append(envelope("a"))
    setting.stream.fails["delete"] = NotAlone()

    with pytest.raises(NotAlone):
        setting.step()

    assert not any(entry.startswith("files") for entry in setting.stream.log)


def test_an_unreadable_entry_is_set_aside_in_its_turn(setting):
    setting.stream.append(envelope("a"))
    setting.stream.append(raw=b"junk")
    setting.stream.append(envelope("b"))

    for _ in range(3):
        setting.step()

    assert notes(setting.engine) == ["a", "b"]
    assert setting.stream.entries == []


def test_a_full_disk_leaves_the_queue_as_it_was(setting):
    raw = setting.engine.connection.raw
    pages = raw.execute("PRAGMA page_count").fetchone()[0]
    raw.execute(f"PRAGMA max_page_count = {pages + 5}")
    setting.stream.append(envelope("a"), envelope("x" * 200_000, key="big"), envelope("b"))

    assert setting.step() > 0
    assert [entry.stream_id for entry in setting.stream.entries] == [b"1-0", b"2-0", b"3-0"]
    assert not any(entry.startswith("delete") for entry in setting.stream.log)

    raw.execute("PRAGMA max_page_count = 1000000")
    setting.step()
    assert [len(note) for note in notes(setting.engine)] == [1, 200_000, 1]
    assert setting.stream.entries == []


def test_after_a_death_the_marked_batch_is_applied_one_by_one_and_no_more_than_that(tmp_path):
    new_engine(tmp_path).mark.batch("2-0")
    (tmp_path / "memory.sqlite").unlink()
    setting = Setting(tmp_path)
    setting.stream.append(*(envelope(str(n)) for n in range(4)))
    careful: list[tuple[int, bool]] = []
    apply_batch = setting.engine.apply_batch

    def watched(envelopes, **more):
        careful.append((len(envelopes), more["careful"]))
        return apply_batch(envelopes, **more)

    setting.engine.apply_batch = watched
    setting.step()
    setting.step()

    assert careful == [(2, True), (2, False)]
    assert notes(setting.engine) == ["0", "1", "2", "3"]


def test_duties_run_also_under_load_and_one_that_fails_stops_nothing(tmp_path):
    ran: list[str] = []

    def fails(_tx) -> int:
        ran.append("fails")
        raise RuntimeError

    def works(_tx) -> int:
        ran.append("works")
        return 1

    setting = Setting(
        tmp_path,
        [Duty(name="a", work=fails, every_seconds=1.0), Duty(name="b", work=works, every_seconds=1.0)],
    )
    setting.stream.append(envelope("a"))
    setting.step()
    setting.clock.advance(2)
    setting.stream.append(envelope("b"))
    setting.step()

    assert ran == ["fails", "works"] * 2
    assert notes(setting.engine) == ["a", "b"]


def test_the_task_of_a_doorbell_says_what_it_applied(setting):
    setting.stream.append(envelope("a"), envelope("b"))

    assert setting.loop.drain(0.5) == {"applied": 2, "batches": 1}


def test_another_writer_found_by_the_task_ends_the_loop(setting):
    setting.stream.append(envelope("a"))
    setting.stream.fails["claim"] = NotAlone()

    with pytest.raises(NotAlone):
        setting.loop.drain(0.5)

    assert setting.stopping.is_set()
    with pytest.raises(NotAlone):
        setting.loop.run()


@pytest.mark.parametrize(("patience_ms", "waited"), [(None, 250), (10, 10), (0, 0)])
def test_the_writer_waits_for_commands_only_as_long_as_the_wiki_lets_it(
    tmp_path, patience_ms: int | None, waited: int
):
    outside = FakeOutside(patience_ms)
    setting = Setting(tmp_path, outside=outside)

    setting.step(250)

    assert (setting.stream.waits, len(outside.quiet)) == ([waited], 1)


def test_what_is_found_in_the_wiki_has_more_time_while_no_commands_come(tmp_path):
    outside = FakeOutside()
    setting = Setting(tmp_path, outside=outside)
    setting.stream.append(envelope("a"))

    setting.step()
    setting.step()

    assert outside.quiet == [False, True]


def test_a_writer_that_enters_what_was_found_in_the_wiki_is_not_idle(tmp_path):
    setting = Setting(tmp_path, outside=FakeOutside(findings=1))

    setting.step()
    assert "tidy" not in setting.stream.log
    setting.step()

    assert setting.stream.log.count("tidy") == 1
