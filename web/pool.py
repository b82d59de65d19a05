"""`/pool`: how a worker gets jobs and ends them. It needs nothing else of this machine: no file, no stream, no database.

The worker makes the lease token and shows it with each request; only its SHA-256 goes on from here. See docs/jobs.md.
"""

from __future__ import annotations

import gzip
import hashlib
import logging
from typing import Any

import msgspec
from flask import Blueprint, Response, request

from memory_core import limits
from memory_core.commands.jobs import ClaimJob, FailJob, FinishJob, ReleaseJob, RenewJob
from memory_core.domain.job import QUEUES, Failure, Job, Reason, check_lease
from memory_core.domain.page import has_hidden_characters
from memory_core.errors import Invalid, NotFound, StaleLease, Unavailable
from memory_core.ids import id_bytes, id_text
from memory_core.job_kind import JobKind, kinds
from memory_core.store import job_claims, jobs
from memory_core.store.jobs import Listed
from web.answers import json_answer
from web.auth import current, needs
from web.bodies import holds_long_text, read_as
from web.calls import CallContext
from web.leases import lease_hash
from web.parts import Parts, install_id
from web.submitting import submit

logger = logging.getLogger(__name__)


class OutputTooLong(Invalid):
    """A text of the output is too long."""

    code = Failure.OUTPUT.value

    def __init__(self) -> None:
        super().__init__(
            f"output: a single text has at most {limits.FIELD_REDACTED_MAX_BYTES} bytes (UTF-8); divide it, or send less"
        )


class Held(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Every body shows the token of a lease, and none is ever shown itself."""

    lease: str

    def __repr__(self) -> str:
        return type(self).__name__


class Claim(Held, kw_only=True):
    queues: list[str]
    worker: str
    on_data_host: bool = False
    kind: str = ""


class Leased(Held, kw_only=True):
    job: str


class Finish(Leased, kw_only=True):
    input_digest: str
    output: Any


class Fail(Leased, kw_only=True):
    error: Failure
    permanent: bool = False


class Release(Leased, kw_only=True):
    reason: Reason
    seconds: float | None = None


def blueprint(parts: Parts) -> Blueprint:
    routes = Blueprint("pool", __name__, url_prefix="/pool")

    @routes.get("/about")
    @needs("pool")
    def _about() -> Response:
        install = install_id(parts.settings, parts.database)
        if not install:
            raise Unavailable("this server does not know its install yet; its writer has not started")
        return json_answer({"install": install, "version": parts.version})

    @routes.post("/claim")
    @needs("pool")
    def _claim() -> Response:
        asked = read_as(Claim, limits.POOL_BODY_MAX_BYTES)
        command = ClaimJob(
            claim=lease_hash(asked.lease),
            # Redacted here, so that jobs and the list of workers show one name.
            worker=parts.gate.redact(_worker(asked.worker)),
            queues=_queues(asked.queues),
            on_data_host=asked.on_data_host,
            kind=_kind(asked.kind),
        )
        parts.presence.heard(command.worker, command.queues)
        context = parts.context(current(), request.environ)
        if not _may_give(parts, context, command):
            return json_answer({"job": None, "more": False})
        answer = context.submit(command)
        if answer.get("status") == "pending":
            return json_answer(answer, 202)
        if answer["job"] is None:
            return json_answer({"job": None, "more": answer["more"]})
        return _given(parts, context, id_bytes(answer["job"]), command.claim, more=answer["more"])

    @routes.post("/renew")
    @needs("pool")
    def _renew() -> Response:
        asked = read_as(Leased, limits.POOL_BODY_MAX_BYTES)
        return submit(parts, RenewJob(job=id_bytes(asked.job), claim=lease_hash(asked.lease)))

    @routes.post("/finish")
    @needs("pool")
    def _finish() -> Response:
        asked = read_as(Finish, limits.JOB_OUTPUT_MAX_BYTES + limits.POOL_BODY_MAX_BYTES)
        job_id = id_bytes(asked.job)
        if holds_long_text(asked.output):
            raise OutputTooLong
        output = _kind_of(parts, job_id).read_output(asked.output)
        return submit(
            parts,
            FinishJob(
                job=job_id,
                claim=lease_hash(asked.lease),
                input_digest=_digest(asked.input_digest),
                output=output,
            ),
        )

    @routes.post("/fail")
    @needs("pool")
    def _fail() -> Response:
        asked = read_as(Fail, limits.POOL_BODY_MAX_BYTES)
        return submit(
            parts,
            FailJob(
                job=id_bytes(asked.job),
                claim=lease_hash(asked.lease),
                error=asked.error,
                permanent=asked.permanent,
            ),
        )

    @routes.post("/release")
    @needs("pool")
    def _release() -> Response:
        asked = read_as(Release, limits.POOL_BODY_MAX_BYTES)
        return submit(
            parts,
            ReleaseJob(
                job=id_bytes(asked.job),
                claim=lease_hash(asked.lease),
                reason=asked.reason,
                seconds=asked.seconds,
            ),
        )

    return routes


def _may_give(parts: Parts, context: CallContext, command: ClaimJob) -> bool:
    """Whether a claim is worth a command: workers look often, and mostly there is nothing."""
    with parts.database.snapshot() as reading:
        return context.was_sent(reading) or any(
            job_claims.next_ready(reading, queue, on_data_host=command.on_data_host, kind=command.kind)
            is not None
            for queue in job_claims.open_queues(reading, command.queues)
        )


def _given(parts: Parts, context: CallContext, job_id: bytes, claim: bytes, *, more: bool) -> Response:
    """The answer that hands a claimed job over: with its input, which is prepared here."""
    try:
        with parts.database.snapshot() as reading:
            job = check_lease(jobs.one(reading, job_id), claim)
            listed = jobs.with_names(reading, job)
            kind = kinds.get(job.kind)
            text = msgspec.json.encode(kind.prepare(reading, job))
        packed = gzip.compress(text, compresslevel=5)
        if len(packed) > limits.JOB_INPUT_MAX_BYTES:
            raise Invalid(f"{kind.name} prepared {len(packed)} bytes, more than may be sent")
    except StaleLease:
        raise
    except Exception as error:
        return _unprepared(context, job_id, claim, error)
    return _compressed(
        {
            "job": _shape(listed, kind),
            "input": msgspec.Raw(text),
            "input_digest": hashlib.sha256(text).hexdigest(),
            "lease_seconds": limits.JOB_LEASE_SECONDS,
            "more": more,
        }
    )


def _unprepared(context: CallContext, job_id: bytes, claim: bytes, error: Exception) -> Response:
    """Count the failure; the worker is told to look again."""
    logger.error(
        "the input of a job could not be prepared",
        exc_info=error,
        extra={"action": "job_unprepared", "job": id_text(job_id)},
    )
    answer = context.submit(FailJob(job=job_id, claim=claim, error=Failure.INPUT))
    if answer.get("status") == "pending":
        return json_answer(answer, 202)
    return json_answer({"job": None, "more": True})


def _shape(listed: Listed, kind: JobKind) -> dict[str, Any]:
    job = listed.job
    return {
        "id": id_text(job.id),
        "kind": job.kind,
        "queue": job.queue,
        "project": None if listed.project is None else f"{listed.workspace}/{listed.project}",
        "attempt": job.failures + 1,
        "cursor": job.cursor,
        "run_seconds": kind.run_seconds,
        "is_inline": kind.is_inline,
    }


def _compressed(answer: dict[str, Any]) -> Response:
    response = json_answer(answer)
    body = response.get_data()
    if len(body) > limits.POOL_COMPRESS_BYTES and "gzip" in request.accept_encodings:
        response.set_data(gzip.compress(body, compresslevel=5))
        response.headers["Content-Encoding"] = "gzip"
        response.headers["Vary"] = "Accept-Encoding"
    return response


def _kind_of(parts: Parts, job_id: bytes) -> JobKind:
    with parts.database.snapshot() as reading:
        job: Job | None = jobs.one(reading, job_id)
    if job is None:
        raise StaleLease
    try:
        return kinds.get(job.kind)
    except NotFound as error:
        raise StaleLease from error


def _queues(names: list[str]) -> tuple[str, ...]:
    unknown = [name for name in names if name not in QUEUES]
    if unknown or not names:
        raise Invalid(f"queues: one or more of {', '.join(QUEUES)}")
    return tuple(dict.fromkeys(names))


def _kind(name: str) -> str:
    if name and name not in kinds:
        raise Invalid(f"there is no job kind {name[:64]!r}; there are: {', '.join(kinds.names())}")
    return name


def _worker(name: str) -> str:
    if not name.strip() or len(name) > limits.WORKER_NAME_MAX_CHARS:
        raise Invalid(f"worker: a name of 1 to {limits.WORKER_NAME_MAX_CHARS} characters")
    if has_hidden_characters(name):
        raise Invalid("worker: control characters and marks of direction cannot stand in a name")
    return name


def _digest(text: str) -> bytes:
    try:
        digest = bytes.fromhex(text)
    except ValueError:
        digest = b""
    if len(digest) != hashlib.sha256().digest_size:
        raise Invalid("input_digest: as the claim's answer gave it")
    return digest
