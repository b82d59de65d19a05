"""A real writer on a real full disk: it waits, alive, loses nothing and goes on by itself when there is room."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from memory_core.config import Settings
from tests.stack.conftest import wait_until
from tests.writer.engines import envelope
from workers import data_dir, heartbeat
from workers.broker import broker_url

pytestmark = pytest.mark.stack

MIB = 1024 * 1024


@pytest.fixture
def small(tmp_path: Path, settings: Settings, start_broker):
    """A data directory on a file system of 64 MiB; its broker lies elsewhere."""
    where = tmp_path / "disk"
    where.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(where)], capture_output=True
    )
    if mounted.returncode:
        pytest.skip("needs the right to mount a small file system")
    start_broker(settings)
    made = replace(
        settings, data_dir=where / "data", broker_url=broker_url(settings), free_disk_min_bytes=1 * MIB
    )
    data_dir.prepare(made)
    yield made
    subprocess.run(["umount", "-l", str(where)], check=True)


def fill(settings: Settings) -> Path:
    filler = settings.data_dir.parent / "filler"
    with filler.open("wb", buffering=0) as file:
        for size in (MIB, 4096, 1):
            try:
                while file.write(b"\0" * size) == size:
                    pass
            except OSError:
                continue
    return filler


def test_a_writer_that_meets_a_full_disk_at_its_start_waits_alive(small, start_writer):
    filler = fill(small)
    writer = start_writer(small, lives=False)

    def beats() -> bool:
        assert writer.process.poll() is None
        beat = heartbeat.read(heartbeat.heartbeat_file(small.run_dir, "writer"))
        return beat is not None and beat.pid == writer.process.pid and not beat.ready

    log = small.log_dir / "writer.log"
    filler.write_bytes(
        filler.read_bytes()[: -64 * 1024]
    )  # room for a heartbeat and a log line, not for a database
    wait_until(beats)
    wait_until(lambda: log.exists() and "cannot start yet" in log.read_text())

    filler.unlink()
    wait_until(writer._is_ready)
    writer.append(envelope("a"))
    writer.drained()
    assert writer.notes() == ["a"]


def test_a_disk_that_fills_under_load_stops_the_drain_and_loses_nothing(small, start_writer):
    writer = start_writer(small)
    writer.append(*(envelope(f"{n}" + "x" * 4_000, key=str(n)) for n in range(50)))
    writer.drained()
    filler = fill(small)

    sent = [envelope(f"{n}" + "y" * 20_000, key=f"y{n}") for n in range(400)]
    writer.append(*sent)
    wait_until(lambda: writer.metrics()["is_stopped"])
    assert writer.waiting() > 0
    assert writer.process.poll() is None

    filler.unlink()
    writer.drained(60)

    texts = writer.notes()
    assert [len(text) > 4_500 for text in texts] == [False] * 50 + [True] * 400
    assert len(set(texts)) == 450
    assert writer.rows("SELECT count(*) FROM dead_letters")[0][0] == 0
    assert writer.rows("PRAGMA integrity_check")[0][0] == "ok"
