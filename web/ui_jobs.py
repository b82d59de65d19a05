"""The page of `/ui` about background work: queues, workers with what they do, failures, schedules. It changes nothing."""

from __future__ import annotations

from flask import Blueprint, render_template

from memory_core import job_kind, limits
from memory_core.clock import MICROSECONDS
from memory_core.store import job_counts
from web.auth import needs
from web.job_shapes import job_shape, queue_states, schedule_states, worker_states
from web.parts import Parts

_FAILED_US = 24 * 3_600 * MICROSECONDS


def add(routes: Blueprint, parts: Parts) -> None:
    schedules = job_kind.schedules(parts.settings)

    @routes.get("/jobs", endpoint="jobs")
    @needs("read")
    def _jobs() -> str:
        with parts.database.snapshot() as reading:
            failed = job_counts.failed_since(
                reading, parts.clock.now_us() - _FAILED_US, limits.JOBS_FAILED_LISTED
            )
        return render_template(
            "jobs.html",
            queues=queue_states(parts),
            workers=worker_states(parts),
            failed=[job_shape(row) for row in failed],
            schedules=schedule_states(parts, schedules),
        )
