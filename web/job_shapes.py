"""Jobs, queues, workers and schedules as the HTTP API and the pages for a browser tell them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memory_core import job_kind, limits
from memory_core.clock import MICROSECONDS, rfc3339
from memory_core.domain.job import QUEUES, State
from memory_core.domain.schedule import Schedule
from memory_core.ids import id_text
from memory_core.store import job_claims, job_counts, jobs, schedule_slots
from memory_core.store.database import Snapshot
from memory_core.store.job_counts import Count
from memory_core.store.jobs import Listed
from web.parts import Parts
from web.shapes import time_text


def job_shape(listed: Listed) -> dict[str, Any]:
    """A job as the API tells it. Nothing of its claim but who has it."""
    job = listed.job
    return {
        "id": id_text(job.id),
        "kind": job.kind,
        "queue": job.queue,
        "workspace": listed.workspace,
        "project": listed.project,
        "subject": job.subject,
        "state": job.state.value,
        "failures": job.failures,
        "deaths": job.deaths,
        "claims": job.claims,
        "worker": job.worker,
        "waits_for": job.waits_for,
        "last_error": job.last_error,
        "cursor": job.cursor,
        "result": job.result,
        "principal": job.principal,
        "created_at": rfc3339(job.created_at),
        "updated_at": rfc3339(job.updated_at),
        "claimed_at": time_text(job.claimed_at),
        "renewed_at": time_text(job.renewed_at),
        "lease_until": time_text(job.lease_until),
        "not_before": time_text(job.not_before),
        "cancel_asked_at": time_text(job.cancel_asked_at),
        "finished_at": time_text(job.finished_at),
    }


def queue_states(parts: Parts) -> list[dict[str, Any]]:
    """Of each queue: whether it is paused, how many jobs are in each state, what is due, and how many workers serve it."""
    now = parts.clock.now_us()
    with parts.database.snapshot() as reading:
        counts, paused = job_counts.present(reading), job_claims.paused(reading)
        late, due = jobs.past_lease(reading, now), job_counts.due(reading)
        left = {queue: _work_us(reading, queue, counts) for queue in QUEUES}
    serving = parts.presence.serving()
    return [
        {
            **_queue(queue, counts, paused.get(queue), late.get(queue, 0), now),
            "due": due[queue].count if queue in due else 0,
            "oldest_due_at": time_text(due[queue].oldest_at if queue in due else None),
            "oldest_due_seconds": _age(due[queue].oldest_at, now) if queue in due else None,
            "workers": serving.get(queue, 0),
            "done_in_seconds": _done_in(left[queue], serving.get(queue, 0)),
        }
        for queue in QUEUES
    ]


def worker_states(parts: Parts) -> list[dict[str, Any]]:
    """The pool workers that asked lately or have a job now, each with its jobs."""
    with parts.database.snapshot() as reading:
        running = jobs.listed(reading, state=State.RUNNING, limit=limits.LIST_MAX)
    heard = {one.worker: one for one in parts.presence.lately()}
    names = sorted({*heard, *(row.job.worker or "" for row in running)})
    return [
        {
            "worker": name,
            "queues": list(heard[name].queues) if name in heard else [],
            "heard_at": time_text(heard[name].at if name in heard else None),
            "jobs": [job_shape(row) for row in running if row.job.worker == name],
        }
        for name in names
    ]


def schedule_states(parts: Parts, schedules: Mapping[str, Schedule | None]) -> list[dict[str, Any]]:
    """Of each schedule: what it says, when it runs next, and what became of its last run."""
    now = parts.clock.now_us()
    with parts.database.snapshot() as reading:
        return [_schedule(reading, name, schedule, now) for name, schedule in schedules.items()]


def _queue(
    queue: str, counts: list[Count], paused: Mapping[str, Any] | None, late: int, now: int
) -> dict[str, Any]:
    of_queue = [count for count in counts if count.queue == queue]
    pending = [count.oldest_at for count in of_queue if count.state is State.PENDING]
    return {
        "queue": queue,
        "paused": paused is not None,
        "paused_at": None if paused is None else rfc3339(paused["paused_at"]),
        "paused_by": None if paused is None else paused["paused_by"],
        **{state.value: sum(c.count for c in of_queue if c.state is state) for state in State},
        "past_lease": late,
        "oldest_pending_at": time_text(min(pending, default=None)),
        "oldest_pending_seconds": _age(min(pending), now) if pending else None,
    }


def _work_us(reading: Snapshot, queue: str, counts: list[Count]) -> float | None:
    """How long the pending jobs of a queue take one after the other; None where nothing waits or one was never done."""
    pending = [count for count in counts if count.queue == queue and count.state is State.PENDING]
    times = [(count.count, job_counts.usual_us(reading, queue, count.kind)) for count in pending]
    if not times or any(usual is None for _, usual in times):
        return None
    return sum(number * (usual or 0.0) for number, usual in times)


def _done_in(work_us: float | None, workers: int) -> float | None:
    """Seconds until all of it is done, if nothing fails and nothing comes; None where nobody can tell."""
    return None if work_us is None or not workers else work_us / MICROSECONDS / workers


def _age(since: int, now: int) -> float:
    """Seconds."""
    return max(0.0, (now - since) / MICROSECONDS)


def _schedule(reading: Snapshot, name: str, schedule: Schedule | None, now: int) -> dict[str, Any]:
    kind, last = job_kind.kinds.get(name), schedule_slots.newest(reading, name)
    job = None if last is None or last["job_id"] is None else jobs.one(reading, last["job_id"])
    return {
        "kind": name,
        "queue": kind.queue,
        "per": kind.per,
        "schedule": "off" if schedule is None else schedule.text,
        "next_at": None if schedule is None else time_text(schedule.next_slot(now)),
        "last_slot": None if last is None else last["slot"],
        "last_at": None if last is None else rfc3339(last["staged_at"]),
        "last_job": None if job is None else id_text(job.id),
        "last_state": None if job is None else job.state.value,
        "last_error": None if job is None else job.last_error,
        "last_result": None if job is None else job.result,
        "last_finished_at": None if job is None else time_text(job.finished_at),
    }
