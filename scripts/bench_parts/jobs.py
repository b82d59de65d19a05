"""Jobs: what the engine itself costs, seen by a job that does nothing, and whether projects take turns in a long queue."""

from __future__ import annotations

import statistics
import time
from collections import defaultdict
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from memory_core import config
from memory_core.clock import SystemClock
from memory_core.commands.job_control import RunSchedule
from scripts.bench_parts import verify
from scripts.bench_parts.commands import envelope
from scripts.bench_parts.figures import Result, at_most, quantile
from scripts.bench_parts.mcp_write import WRITES_PER_SECOND, PageWriter
from scripts.bench_parts.parts import Bench, parts
from scripts.bench_parts.stack import Stack
from scripts.bench_parts.talk import Talk
from tests.e2e.running import wait_until
from tests.mutants.empty_jobs import KIND, QUEUE, register
from tests.pool.real_worker import RealWorker
from workers.broker import broker_url
from workers.pool.claiming import claim
from workers.pool.gate import PoolGate
from workers.pool.killable import ComputeChild, Nursery
from workers.pool.remote import token_reader
from workers.pool.running import Pace, Run

#: Of round trips of an MCP write that are measured in the same run, in turns.
ROUND_TRIPS = at_most(3)
PROJECTS = 10
WORKERS = 3
_SECONDS = 600.0


@parts.add("jobs")
def jobs(bench: Bench) -> Result:
    """A stack whose own worker leaves the queue to the bench."""
    result = Result(part="jobs")
    register()
    stack = Stack(bench.directory, conditions=("empty_jobs",), environ={"MEMORYD_POOL_QUEUES": "forget"})
    with stack, Talk(stack) as talk:
        for name in _projects():
            talk.tool("memory_write_page", project=name, path="a", body="# A\n\nOf this project.")
        _claim_to_finish(bench, stack, talk, result)
        _turns(bench, stack, talk, result)
    return result


def _claim_to_finish(bench: Bench, stack: Stack, talk: Talk, result: Result) -> None:
    """Both sides in turns, at the same pace: one write, one job."""
    count = bench.sizes.page_writes
    _enqueue(stack, [_projects()[0]] * (count + 1))
    slot, writer = _Slot(stack), PageWriter(talk)
    slot.work()  # opens its connection
    writer.times(3)
    jobs_ms: list[float] = []
    writes_ms: list[float] = []
    start = time.monotonic()
    for number in range(count):
        time.sleep(max(0.0, start + number / WRITES_PER_SECOND - time.monotonic()))
        writes_ms += writer.times(1)
        time.sleep(max(0.0, start + (number + 0.5) / WRITES_PER_SECOND - time.monotonic()))
        jobs_ms.append(slot.work())
    stack.wait_quiet()
    result.complaints += writer.complaints + slot.complaints + verify.pages(stack.data_dir, writer.written)
    result.verified.append(f"{len(writer.written):,} pages: in table, index and file as they were sent")
    job, write = statistics.median(jobs_ms), statistics.median(writes_ms)
    result.add(
        "claim to finish of an empty job, in MCP writes of the same run (p50)", job / write, "×", ROUND_TRIPS
    )
    result.add("claim to finish of an empty job p50", job, "ms")
    result.add("claim to finish of an empty job p99", quantile(jobs_ms, 0.99), "ms")
    result.add("an MCP write beside it p50", write, "ms")


def _turns(bench: Bench, stack: Stack, talk: Talk, result: Result) -> None:
    """Project after project is queued, so that who came last waits longest where nobody takes turns."""
    each = bench.sizes.jobs // PROJECTS
    before = stack.query("select coalesce(max(rowid), 0) from jobs")[0][0]
    talk.post(f"/api/v1/queues/{QUEUE}/pause")
    _enqueue(stack, [name for name in _projects() for _ in range(each)])
    with _workers(stack, bench.directory):
        began = time.monotonic()
        talk.post(f"/api/v1/queues/{QUEUE}/resume")
        wait_until(lambda: _unfinished(stack) == 0, seconds=_SECONDS, saying="every job has ended")
        took = time.monotonic() - began
    rows = stack.query(
        "select j.state, j.claims, j.claimed_at, j.finished_at, p.name from jobs j join projects p on p.id = j.project_id"
        " where j.rowid > ? and j.kind = ? order by j.claimed_at, j.id",
        before,
        KIND,
    )
    wrong = sum((row[0], row[1]) != ("completed", 1) for row in rows)
    if wrong or len(rows) != each * PROJECTS:
        result.complaints.append(f"{len(rows)} jobs, {wrong} of them not completed by one claim")
    result.verified.append(f"{len(rows):,} jobs of {PROJECTS} projects: each claimed once and completed")
    place, spread = fairness(rows)
    result.add(
        f"the latest place at which a project's turn came in a round of {PROJECTS}",
        place,
        "",
        at_most(PROJECTS + WORKERS),
    )
    result.add("between the first and the last project's last job, of the whole time", spread * 100, "%")
    result.add(f"jobs over {WORKERS} workers", len(rows) / took, "1/s")


def fairness(rows: Iterable[Any]) -> tuple[int, float]:
    """Of rows in the order of their claims (…, claimed_at, finished_at, project): the place of a project's k-th claim after
    k - 1 whole rounds, at most; and the share of the whole time between the projects' last ends."""
    turns: dict[str, int] = defaultdict(int)
    ends: dict[str, int] = {}
    latest, first = 0, 0
    for place, (_, _, claimed_at, finished_at, project) in enumerate(rows, start=1):
        first = first or claimed_at
        latest = max(latest, place - turns[project] * PROJECTS)
        turns[project] += 1
        ends[project] = max(ends.get(project, 0), finished_at)
    last = max(ends.values())
    return latest, (last - min(ends.values())) / max(1, last - first)


class _Slot:
    """A slot of a worker in this process: what it measures is the engine and the way to it, not the start of a child."""

    def __init__(self, stack: Stack) -> None:
        self._clock = SystemClock()
        self._gate = PoolGate(stack.settings.url, token_reader(stack.settings), self._clock)
        self._child = ComputeChild(Nursery().spawn, self._clock)
        self.complaints: list[str] = []

    def work(self) -> float:
        """One job from its claim to its end; milliseconds."""
        began = time.monotonic()
        given, lease = claim(
            self._gate, [QUEUE], worker="bench", on_data_host=False, seconds=5.0, pause=_sleep
        )
        if given.job is None:
            self.complaints.append("a job that was queued was not given")
            return 0.0
        report = Run(
            given.job,
            given,
            lease,
            gate=self._gate,
            child=self._child,
            clock=self._clock,
            pace=Pace(),
            pause=_sleep,
            data=None,
        ).work()
        took = (time.monotonic() - began) * 1000
        if report.outcome != "completed":
            self.complaints.append(f"a job ended as {report.outcome}")
        return took


@contextmanager
def _workers(stack: Stack, home: Path) -> Generator[None]:
    """Three real workers of the queue, ready."""
    started: list[RealWorker] = []
    try:
        for number in range(WORKERS):
            worker = RealWorker(
                home / f"worker-{number}",
                broker_url(stack.settings),
                stack.settings.url,
                mutants="empty_jobs",
                install=config.install_id(stack.settings),
                pool_token_file=str(stack.settings.local_pool_token_file),
                pool_queues=(QUEUE,),
            )
            started.append(worker)
        for worker in started:
            worker.wait_ready()
        yield
    finally:
        for worker in started:
            worker.close()


def _enqueue(stack: Stack, projects: list[str]) -> None:
    """One job of each, in this order."""
    stack.append([envelope(RunSchedule(kind=KIND, workspace="default", project=name)) for name in projects])
    stack.wait_drained()


def _unfinished(stack: Stack) -> int:
    return stack.query(
        "select coalesce(sum(present), 0) from job_counts where kind = ? and event in ('pending', 'running')",
        KIND,
    )[0][0]


def _projects() -> list[str]:
    return [f"bench-jobs-{number}" for number in range(PROJECTS)]


def _sleep(seconds: float) -> bool:
    time.sleep(seconds)
    return True
