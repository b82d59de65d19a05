"""What `memoryd doctor` makes of the state of jobs that a server tells."""

from __future__ import annotations

from typing import Any

import pytest

from client import checkup_jobs
from client.findings import Finding
from memory_core import limits


class Told:
    """A server that tells what the test gave it."""

    def __init__(self, **parts: Any) -> None:
        self.parts: dict[str, Any] = {"queues": [], "workers": [], "jobs/failed": [], "schedules": []} | parts

    def get(self, path: str, **_: Any) -> Any:
        return self.parts[path.removeprefix("/api/v1/")]


def queue(**more: Any) -> dict[str, Any]:
    values = {
        "queue": "lint",
        "due": 2,
        "oldest_due_seconds": limits.POOL_HEARD_SECONDS + 60,
        "paused": False,
        "paused_by": None,
        "paused_at": None,
        "workers": 0,
        "running": 0,
        "past_lease": 0,
        "pending": 2,
    }
    return values | more


def looked(check: str, status: dict[str, Any] | None = None, **parts: Any) -> Finding:
    found = checkup_jobs.examine(Told(**parts), status or {})  # type: ignore[arg-type]
    return next(finding for finding in found if finding.check == check)


def audit(**more: Any) -> dict[str, Any]:
    values = {"kind": "integrity_audit", "last_at": "2026-01-02T03:30:00Z", "last_state": "completed"}
    return (
        values
        | {"last_job": "j1", "last_error": None, "last_result": {"files": 3, "wrong": 0, "findings": []}}
        | more
    )


def test_jobs_that_nobody_asks_for_are_told_with_what_to_do():
    found = looked("pool workers", queues=[queue()])
    assert not found.is_ok
    assert "2 in lint for 2 min" in found.detail
    assert "memoryd work" in found.detail


@pytest.mark.parametrize(
    "more",
    [
        {"oldest_due_seconds": limits.POOL_HEARD_SECONDS - 1},
        {"workers": 1},
        {"running": 1},
        {"paused": True, "paused_by": "ada", "paused_at": "2026-01-02T03:30:00Z"},
        {"due": 0, "oldest_due_seconds": None},
    ],
)
def test_fresh_served_busy_paused_and_empty_queues_are_well(more: dict[str, Any]):
    assert looked("pool workers", queues=[queue(**more)]).is_ok


def test_a_worker_that_is_silent_for_longer_than_its_lease_serves_nothing():
    assert not looked("pool workers", queues=[queue(running=1, past_lease=1)]).is_ok


@pytest.mark.parametrize("waiting", [0, 2])
def test_a_paused_queue_is_told_and_is_a_fault_where_jobs_wait_for_it(waiting: int):
    paused = queue(paused=True, paused_by="ada", paused_at="2026-01-02T03:30:00.5Z", pending=waiting)
    found = looked("queues", queues=[paused])
    assert found.is_ok is (waiting == 0)
    assert f"lint is paused by ada since 2026-01-02T03:30:00, {waiting} waiting" in found.detail
    assert "memoryd jobs resume lint" in found.detail


def test_many_failures_are_counted_and_some_are_named():
    failed = [{"id": f"j{n}", "kind": "k", "last_error": "its computation failed"} for n in range(5)]
    found = looked("failed jobs", **{"jobs/failed": failed})
    assert not found.is_ok
    assert "5 in the last day" in found.detail
    assert ("j2" in found.detail, "j3" in found.detail) == (True, False)


def test_an_audit_that_found_something_is_a_fault_and_names_it():
    result = {"files": 3, "wrong": 1, "findings": [{"kind": "file_missing", "what": "default/p/a.md"}]}
    found = looked("integrity audit", schedules=[audit(last_result=result)])
    assert not found.is_ok
    assert "1 wrong: file missing default/p/a.md" in found.detail
    assert "memoryd jobs show j1" in found.detail


def test_an_audit_that_found_nothing_runs_fails_or_was_never_made_is_told_so():
    assert looked("integrity audit", schedules=[audit()]).detail.endswith("completed: files 3, wrong 0")
    assert looked("integrity audit", schedules=[audit(last_state="running", last_result=None)]).is_ok
    failed = looked("integrity audit", schedules=[audit(last_state="failed", last_error="too slow")])
    assert (failed.is_ok, "too slow" in failed.detail) == (False, True)
    never = looked("integrity audit", schedules=[audit(last_at=None, last_state=None)])
    assert (never.is_ok, "memoryd schedule run integrity_audit" in never.detail) == (True, True)


def test_models_are_told_as_they_stand_where_the_server_tells():
    models = {
        "state": "budget_reached",
        "provider": "p",
        "model": "m",
        "message": "the day's tokens are used",
    }
    found = looked("models", {"models": models | {"until": "2026-01-03T00:00:00Z"}})
    assert found.detail == "budget reached; p m; the day's tokens are used; until 2026-01-03T00:00:00"
    with pytest.raises(StopIteration):
        looked("models", {})


def test_a_reranker_is_told_where_one_is_configured():
    models = {"state": "on", "provider": "p", "model": "m", "reranker": "model"}

    assert looked("models", {"models": models}).detail == "on; p m; hits judged by the model"
    assert looked("models", {"models": models | {"reranker": None}}).detail == "on; p m"


def test_a_warning_about_models_is_told():
    models = {"state": "on", "provider": "p", "model": "m", "warnings": ["close the file"]}

    assert looked("models", {"models": models}).detail == "on; p m; warning: close the file"
