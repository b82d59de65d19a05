"""`/api/v1` for jobs: what runs, waits and failed, the queues and the schedules; and what a person does about them."""

from __future__ import annotations

from flask import Blueprint, Response

from memory_core import job_kind, limits
from memory_core.clock import MICROSECONDS
from memory_core.commands.job_control import CancelJob, PauseQueue, ResumeQueue, RetryJob, RunSchedule
from memory_core.domain.job import QUEUES, State
from memory_core.errors import Invalid, NotFound
from memory_core.ids import id_bytes, id_text
from memory_core.store import job_counts, jobs
from web import lists
from web.answers import json_answer
from web.auth import needs
from web.job_shapes import job_shape, queue_states, schedule_states, worker_states
from web.parts import Parts
from web.query import takes
from web.submitting import submit


def blueprint(parts: Parts) -> Blueprint:
    routes = Blueprint("api_jobs", __name__, url_prefix="/api/v1")
    # Read at the start: what the configuration says wrong is said there.
    schedules = job_kind.schedules(parts.settings)

    @routes.get("/jobs")
    @needs("read")
    @takes("workspace", "project", "state", "kind", "queue", "before", "limit")
    def _jobs() -> Response:
        state, limit = lists.state(*State), lists.limit()
        before = lists.given("before")
        with parts.database.snapshot() as reading:
            found = jobs.listed(
                reading,
                state=None if state is None else State(state),
                kind=lists.given("kind"),
                queue=_known_queue(lists.given("queue")),
                project_id=lists.project(reading),
                before=None if before is None else id_bytes(before),
                limit=limit,
            )
        return lists.listed(
            [job_shape(row) for row in found], limit, before=id_text(found[-1].job.id) if found else None
        )

    @routes.get("/jobs/failed")
    @needs("read")
    @takes("hours", "limit")
    def _failed() -> Response:
        hours = lists.number("hours") or 24
        if hours > limits.JOBS_FAILED_HOURS_MAX:
            raise Invalid(f"hours is a number from 1 to {limits.JOBS_FAILED_HOURS_MAX}")
        since = parts.clock.now_us() - hours * 3600 * MICROSECONDS
        with parts.database.snapshot() as reading:
            found = job_counts.failed_since(reading, since, lists.limit(most=limits.JOBS_FAILED_LISTED))
        return json_answer([job_shape(row) for row in found])

    @routes.get("/jobs/<text>")
    @needs("read")
    def _job(text: str) -> Response:
        with parts.database.snapshot() as reading:
            job = jobs.one(reading, id_bytes(text))
            if job is None:
                raise NotFound(f"there is no job {text[:64]}")
            listed = jobs.with_names(reading, job)
        return json_answer(job_shape(listed))

    @routes.post("/jobs/<text>/cancel")
    @needs("write")
    def _cancel(text: str) -> Response:
        return submit(parts, CancelJob(job=text))

    @routes.post("/jobs/<text>/retry")
    @needs("write")
    def _retry(text: str) -> Response:
        return submit(parts, RetryJob(job=text))

    @routes.get("/queues")
    @needs("read")
    def _queues() -> Response:
        return json_answer(queue_states(parts))

    @routes.get("/workers")
    @needs("read")
    def _workers() -> Response:
        return json_answer(worker_states(parts))

    @routes.post("/queues/<queue>/pause")
    @needs("write")
    def _pause(queue: str) -> Response:
        return submit(parts, PauseQueue(queue=queue))

    @routes.post("/queues/<queue>/resume")
    @needs("write")
    def _resume(queue: str) -> Response:
        return submit(parts, ResumeQueue(queue=queue))

    @routes.get("/schedules")
    @needs("read")
    def _schedules() -> Response:
        return json_answer(schedule_states(parts, schedules))

    @routes.post("/schedules/<kind>/run")
    @needs("write")
    @takes("workspace", "project")
    def _run(kind: str) -> Response:
        command = RunSchedule(kind=kind, workspace=lists.given("workspace"), project=lists.given("project"))
        return submit(parts, command)

    return routes


def _known_queue(name: str | None) -> str | None:
    if name is not None and name not in QUEUES:
        raise Invalid(f"queue is one of: {', '.join(QUEUES)}")
    return name
