"""The part of `/metrics` about jobs. What it asks costs the same however many jobs there are or were."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import Metric

from memory_core.clock import MICROSECONDS, Clock
from memory_core.domain.job import ENDED, QUEUES, State
from memory_core.job_kind import kinds
from memory_core.store import job_claims, job_counts, jobs, schedule_slots
from memory_core.store.database import Database
from memory_core.store.job_counts import Count, Total
from web.meters import Samples, counter, gauge
from web.presence import Presence


def readings(database: Database, presence: Presence, clock: Clock) -> Iterator[Metric]:
    """All of them, of one moment."""
    now = clock.now_us()
    with database.snapshot() as reading:
        present, totals = job_counts.present(reading), job_counts.totals(reading)
        late, paused = jobs.past_lease(reading, now), job_claims.paused(reading)
        staged = {name: schedule_slots.newest(reading, name) for name, _ in kinds}
    yield gauge("jobs", "Jobs in each state.", ("queue", "kind", "state"), _present(present))
    yield gauge(
        "jobs_oldest_pending_age_seconds",
        "Age of the oldest pending job of a kind; 0 when there is none.",
        ("queue", "kind"),
        _ages(present, now),
    )
    yield gauge(
        "jobs_past_lease",
        "Running jobs whose worker is silent for longer than its lease.",
        ("queue",),
        [((queue,), late.get(queue, 0)) for queue in QUEUES],
    )
    yield counter("jobs_claimed", "Claims of jobs.", ("queue", "kind"), _events(totals, State.RUNNING))
    yield counter(
        "jobs_ended",
        "Jobs that ended, by the state in which they did.",
        ("queue", "kind", "state"),
        [((t.queue, t.kind, t.event), t.count) for t in totals if t.event in ENDED],
    )
    yield counter(
        "job_failures",
        "Tries of jobs that failed and count.",
        ("queue", "kind"),
        _events(totals, job_counts.FAILURE),
    )
    yield gauge(
        "queue_paused",
        "1 while a queue gives no job.",
        ("queue",),
        [((queue,), int(queue in paused)) for queue in QUEUES],
    )
    yield gauge(
        "schedule_last_staged_timestamp_seconds",
        "When a schedule last made a job.",
        ("kind",),
        [((name,), row["staged_at"] / MICROSECONDS) for name, row in staged.items() if row is not None],
    )
    serving = presence.serving()
    yield gauge(
        "pool_workers",
        "Pool workers that asked for jobs of a queue within the last minute.",
        ("queue",),
        [((queue,), serving.get(queue, 0)) for queue in QUEUES],
    )


def _present(present: list[Count]) -> Samples:
    return [((c.queue, c.kind, c.state.value), c.count) for c in present]


def _ages(present: list[Count], now: int) -> Samples:
    ages = {(kind.queue, name): 0.0 for name, kind in kinds}
    for count in present:
        if count.state is State.PENDING:
            ages[count.queue, count.kind] = max(0.0, (now - count.oldest_at) / MICROSECONDS)
    return sorted(ages.items())


def _events(totals: list[Total], event: str) -> Samples:
    return [((t.queue, t.kind), t.count) for t in totals if t.event == event]
