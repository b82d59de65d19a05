"""Somebody sets the clock of a running server, an hour ahead and back: no lease runs out by it, and no slot is staged twice.

The wall clock of every process of the stack is set by libfaketime; their monotonic clocks go on, as on a machine whose clock is set.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memory_core.clock import MICROSECONDS
from tests.pool.conftest import ROOT
from tests.pool.whole_stack import Stack, whole_stack
from tests.stack.conftest import wait_until
from workers import data_dir, heartbeat

pytestmark = pytest.mark.stack

HOUR = 3600
#: Leases last as long as in the product: a renewal would repair one that a step endangers.
_QUICK = "JOB_START_GRACE_SECONDS=0,POOL_LOOK_SECONDS=0.5"
_JOBS = "SELECT lower(hex(id)) FROM jobs WHERE kind = 'idle_sessions'"
_SLOTS = "SELECT slot, lower(hex(job_id)) FROM schedule_slots WHERE kind = 'idle_sessions' ORDER BY slot"


def _library() -> Path | None:
    return next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)


class WallClock:
    """The wall clock of everything that was started with `environ`, ahead of the machine's by `seconds`."""

    def __init__(self, home: Path, library: Path) -> None:
        self._file = home / "clock"
        self.set(0)
        self.environ = {
            "LD_PRELOAD": str(library),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            # The times of files on the disk stay what they are.
            "NO_FAKE_STAT": "1",
            "MEMORYD_TEST_MUTANT": "job_kinds,quick_jobs,quick_pool,sleep_by_select",
            "MEMORYD_SCHEDULES__IDLE_SESSIONS": "every 2s",
            "PROBE_RUN_SECONDS": "150",
        }

    def set(self, seconds: int) -> None:
        aside = self._file.with_suffix(".new")
        aside.write_text(f"{seconds:+d}\n")
        aside.replace(self._file)


@pytest.fixture
def clock(tmp_path: Path) -> WallClock:
    library = _library()
    if library is None:
        assert not os.environ.get("CI"), "libfaketime must be installed where this runs for good"
        pytest.skip("libfaketime is not installed")
    return WallClock(tmp_path, library)


@pytest.fixture
def stack(tmp_path: Path, clock: WallClock) -> Iterator[Stack]:
    with whole_stack(tmp_path, quick=_QUICK, environ=clock.environ) as made:
        yield made


@pytest.fixture
def second_beat(stack: Stack, clock: WallClock, tmp_path: Path) -> Iterator[None]:
    """One more beat of the same install, beside that of the stack."""
    settings = stack.settings
    own = type(settings)(data_dir=settings.data_dir, state_dir=str(tmp_path / "beat"))
    data_dir.prepare_scratch(own)
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "workers.beat"],
        env={**os.environ, **settings.environment(), **own.environment(), **clock.environ}
        | {"PYTHONPATH": f"{ROOT / 'tests/mutants/loader'}:{ROOT}", "PYTHONDONTWRITEBYTECODE": "1"},
    )
    file = heartbeat.heartbeat_file(own.run_dir, "beat")
    wait_until(lambda: (beat := heartbeat.read(file)) is not None and beat.pid == process.pid)
    yield
    process.kill()
    process.wait()


def _said(stack: Stack, action: str) -> list[dict[str, Any]]:
    lines = (stack.settings.log_dir / "writer.log").read_text().splitlines()
    return [record for record in map(json.loads, lines) if record.get("action") == action]


def _seconds(slot: str) -> float:
    return datetime.fromisoformat(slot).timestamp()


def _slots(stack: Stack) -> list[float]:
    return [_seconds(slot) for slot, _ in stack.rows(_SLOTS)]


def _wait_for_slots(stack: Stack, *, ahead: int) -> None:
    """Until the writer staged two more by its clock: it made several turns of its duties after whatever was done before."""
    begun = datetime.now(UTC).timestamp() + ahead
    wait_until(lambda: sum(begun < slot < begun + 600 for slot in _slots(stack)) >= 2)


@pytest.mark.usefixtures("second_beat")
def test_a_clock_that_is_set_ends_no_lease_and_makes_no_slot_twice(
    stack: Stack, clock: WallClock, tmp_path: Path
):
    go = tmp_path / "go"
    (subject,) = stack.enqueue("wait for a file", str(go))
    stack.wait_running(subject)
    _wait_for_slots(stack, ahead=0)
    before = datetime.now(UTC).timestamp()

    clock.set(HOUR)
    wait_until(lambda: len(_said(stack, "clock_stepped")) == 1)
    # One of two beats stands still: what is due is the writer's to know.
    os.kill(stack.tree.pids["beat"], signal.SIGSTOP)
    _wait_for_slots(stack, ahead=HOUR)
    assert (stack.column(subject, "state"), stack.column(subject, "claims")) == ("running", 1)
    assert stack.column(subject, "lease_until") > (before + HOUR) * MICROSECONDS
    os.kill(stack.tree.pids["beat"], signal.SIGCONT)

    clock.set(0)
    wait_until(lambda: len(_said(stack, "clock_stepped")) == 2)
    _wait_for_slots(stack, ahead=0)
    assert stack.column(subject, "lease_until") < (before + HOUR) * MICROSECONDS
    go.touch()

    stack.wait_completed([subject])
    assert [stack.column(subject, name) for name in ("claims", "failures", "deaths")] == [1, 0, 0]
    assert _said(stack, "lease_expired") == []
    assert [round(said["seconds"] / HOUR) for said in _said(stack, "clock_stepped")] == [1, -1]
    # Of the hour that was passed over nothing was made up for, and every job is that of a slot of its own.
    assert [slot for slot in _slots(stack) if before + 600 < slot < before + HOUR - 600] == []
    named = [job for _, job in stack.rows(_SLOTS) if job]
    assert {job for (job,) in stack.rows(_JOBS)} == set(named)
    assert all(stack.tree.pids[name] for name in ("writer", "pool", "web", "beat"))
    assert {record["child"] for record in stack.tree.logged("child_ended")} == set()
