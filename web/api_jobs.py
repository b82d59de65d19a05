"""`/api/v1` for jobs: what runs, waits and failed, the queues and the schedules; and what a person does about them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flask import Blueprint, Response, request

from memory_core import job_kind
from memory_core.clock import rfc3339
from memory_core.commands.job_control import CancelJob, PauseQueue, ResumeQueue, RetryJob, RunSchedule
from memory_core.domain.job import QUEUES, State
from memory_core.domain.schedule import Schedule
from memory_core.errors import Invalid, NotFound
from memory_core.ids import id_bytes, id_text
from memory_core.store import job_claims, job_counts, jobs, schedule_slots
from memory_core.store.database import Snapshot
from memory_core.store.job_counts import Count
from memory_core.store.jobs import Listed
from web import lists
from web.answers import json_answer, submitted
from web.auth import current, needs
from web.parts import Parts
from web.shapes import time_text


def blueprint(parts: Parts) -> Blueprint:
    routes = Blueprint("api_jobs", __name__, url_prefix="/api/v1")
    # Read at the start: what the configuration says wrong is said there.
    schedules = job_kind.schedules(parts.settings)

    @routes.get("/jobs")
    @needs("read")
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
        return _submitted(parts, CancelJob(job=text))

    @routes.post("/jobs/<text>/retry")
    @needs("write")
    def _retry(text: str) -> Response:
        return _submitted(parts, RetryJob(job=text))

    @routes.get("/queues")
    @needs("read")
    def _queues() -> Response:
        now = parts.clock.now_us()
        with parts.database.snapshot() as reading:
            counts, paused = job_counts.present(reading), job_claims.paused(reading)
            late = jobs.past_lease(reading, now)
        return json_answer(
            [_queue(queue, counts, paused.get(queue), late.get(queue, 0), now) for queue in QUEUES]
        )

    @routes.post("/queues/<queue>/pause")
    @needs("write")
    def _pause(queue: str) -> Response:
        return _submitted(parts, PauseQueue(queue=queue))

    @routes.post("/queues/<queue>/resume")
    @needs("write")
    def _resume(queue: str) -> Response:
        return _submitted(parts, ResumeQueue(queue=queue))

    @routes.get("/schedules")
    @needs("read")
    def _schedules() -> Response:
        now = parts.clock.now_us()
        with parts.database.snapshot() as reading:
            return json_answer(
                [_schedule(reading, name, schedule, now) for name, schedule in schedules.items()]
            )

    @routes.post("/schedules/<kind>/run")
    @needs("write")
    def _run(kind: str) -> Response:
        command = RunSchedule(kind=kind, workspace=lists.given("workspace"), project=lists.given("project"))
        return _submitted(parts, command)

    return routes


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
        "oldest_pending_seconds": max(0.0, (now - min(pending)) / 1e6) if pending else None,
    }


def _schedule(reading: Snapshot, name: str, schedule: Schedule | None, now: int) -> dict[str, Any]:
    kind, last = job_kind.kinds.get(name), schedule_slots.newest(reading, name)
    return {
        "kind": name,
        "queue": kind.queue,
        "per": kind.per,
        "schedule": "off" if schedule is None else schedule.text,
        "next_at": None if schedule is None else time_text(schedule.next_slot(now)),
        "last_slot": None if last is None else last["slot"],
        "last_at": None if last is None else rfc3339(last["staged_at"]),
        "last_job": None if last is None or last["job_id"] is None else id_text(last["job_id"]),
        "last_state": None if last is None else last["state"],
        "last_error": None if last is None else last["last_error"],
    }


def _submitted(parts: Parts, command: object) -> Response:
    return submitted(parts.context(current(), request.environ).submit(command))


def _known_queue(name: str | None) -> str | None:
    if name is not None and name not in QUEUES:
        raise Invalid(f"queue is one of: {', '.join(QUEUES)}")
    return name
