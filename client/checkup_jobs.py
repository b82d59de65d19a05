"""What `memoryd doctor` looks at of background work: who does it, what stands still, what failed, what the audit found."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from client import jobs
from client.findings import Failed, Finding, finding
from client.server import Server
from memory_core import limits

_AUDIT = "integrity_audit"
_EXAMPLES = 3


def examine(server: Server, status: dict[str, Any]) -> Iterator[Finding]:
    """Every check, of a server that answers; `status` is what it said of itself."""
    yield finding("pool workers", partial(_workers, server))
    yield finding("queues", partial(_queues, server))
    yield finding("failed jobs", partial(_failed, server))
    yield finding("integrity audit", partial(_audit, server))
    if isinstance(status.get("models"), dict):
        yield finding("models", partial(_models, status["models"]))


def _workers(server: Server) -> str:
    queues, workers = server.get("/api/v1/queues"), server.get("/api/v1/workers")
    left = [queue for queue in queues if _is_left(queue)]
    if left:
        what = "; ".join(
            f"{queue['due']} in {queue['queue']} for {jobs.lasting(queue['oldest_due_seconds'])}"
            for queue in left
        )
        raise Failed(
            f"jobs wait and no worker asks for them: {what}. Run: memoryd work; "
            "the worker of `memoryd up` says in logs/pool.log why it does not"
        )
    if not workers:
        return "none asked within the last minute; nothing waits for one"
    running = sum(len(worker["jobs"]) for worker in workers)
    names = ", ".join(worker["worker"] for worker in workers)
    return f"{names}; {running} running, {sum(queue['pending'] for queue in queues)} pending"


def _is_left(queue: dict[str, Any]) -> bool:
    """Something is due, for longer than a worker that is there would let it lie."""
    waits = queue["oldest_due_seconds"] or 0.0
    is_served = queue["workers"] or queue["running"] > queue["past_lease"]
    return bool(queue["due"] and not queue["paused"] and not is_served and waits > limits.POOL_HEARD_SECONDS)


def _queues(server: Server) -> str:
    paused = [queue for queue in server.get("/api/v1/queues") if queue["paused"]]
    if not paused:
        return "none is paused"
    said = "; ".join(
        f"{queue['queue']} is {jobs.paused(queue)}, {queue['pending']} waiting; {jobs.resuming(queue)}"
        for queue in paused
    )
    if any(queue["pending"] for queue in paused):
        raise Failed(f"jobs wait for a person: {said}")
    return said


def _failed(server: Server) -> str:
    failed = server.get("/api/v1/jobs/failed", hours=24)
    if not failed:
        return "none in the last day"
    some = "; ".join(f"{job['kind']}: {job['last_error']} ({job['id']})" for job in failed[:_EXAMPLES])
    count = f"{len(failed)}{'' if len(failed) < limits.JOBS_FAILED_LISTED else ' or more'}"
    raise Failed(
        f"{count} in the last day: {some}; see: memoryd jobs list --state failed; then memoryd jobs retry ID, or cancel ID to leave it at that"
    )


def _audit(server: Server) -> str:
    run = next((row for row in server.get("/api/v1/schedules") if row["kind"] == _AUDIT), None)
    if run is None:
        return "this server makes none"
    if run["last_at"] is None:
        return f"not made yet; now: memoryd schedule run {_AUDIT}"
    when = f"{run['last_at'][:19]} {run['last_state']}"
    if run["last_state"] == "failed":
        raise Failed(
            f"{when}: {run['last_error']}; again: memoryd jobs retry {run['last_job']}; or leave it at that: memoryd jobs cancel {run['last_job']}"
        )
    result = run["last_result"] or {}
    if result.get("wrong"):
        found = [f"{one['kind'].replace('_', ' ')} {one['what']}" for one in result["findings"]]
        raise Failed(
            f"{when}: {result['wrong']} wrong: {'; '.join(found[:_EXAMPLES])}; "
            f"more: memoryd jobs show {run['last_job']}"
        )
    return f"{when}: {jobs.result_in_words(result)}" if result else when


def _models(models: dict[str, Any]) -> str:
    name = ", ".join(f"{models[p]} {models.get(m) or ''}".strip() for p, m in _NAMED if models.get(p))
    words = [str(models.get("state", "unknown")).replace("_", " "), name, models.get("message")]
    if models.get("until"):
        words.append(f"until {models['until'][:19]}")
    if models.get("reranker"):
        words.append(f"hits judged by the {models['reranker']}")
    words += [f"warning: {sentence}" for sentence in models.get("warnings", ())]
    return "; ".join(word for word in words if word)


_NAMED = (("provider", "model"), ("embed_provider", "embed_model"))
