"""Jobs, queues and schedules as a person sees and steers them over the API."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from memory_core.commands.jobs import ClaimJob, FailJob, FinishJob
from memory_core.domain.job import Failure
from memory_core.errors import Invalid
from memory_core.ids import id_text
from memory_core.job_kind import digest_of, enqueue
from memory_core.store import projects
from tests.factories import envelope
from tests.jobs.working import DIGEST, Sum, kind, registered
from tests.web.house import House
from web.app import create_app
from web.parts import build


@pytest.fixture
def house(house: House) -> Iterator[House]:
    with registered(kind(), kind("test_far", queue="forget")):
        house.start_writer()
        yield house
        house.stop_writer()


def add(house: House, source: str = "a", name: str = "test_sum", project: str | None = None) -> str:
    def work(tx: Any) -> bytes:
        found = None if project is None else projects.named(tx, "default", project)
        project_id = found["id"] if found is not None else None
        if project is not None and found is None:
            project_id = projects.add(tx, workspace="default", name=project, repo_path=None)
        return enqueue(tx, name, source_digest=digest_of(source), project_id=project_id)[0]

    return id_text(house.engine.originate(work))


def claimed(house: House) -> tuple[bytes, bytes]:
    claim = hashlib.sha256(os.urandom(8)).digest()
    house.engine.apply_batch([envelope(ClaimJob(claim=claim, worker="w1", queues=("lint",)))])
    [row] = house.rows("SELECT id FROM jobs WHERE claim_hash = ?", claim)
    return row["id"], claim


def ended(house: House, *, fails: bool) -> str:
    job, claim = claimed(house)
    command: Any = (
        FailJob(job=job, claim=claim, error=Failure.CRASHED, permanent=True)
        if fails
        else FinishJob(job=job, claim=claim, input_digest=DIGEST, output=Sum(numbers=(1, 2)))
    )
    house.engine.apply_batch([envelope(command)])
    return id_text(job)


@pytest.fixture
def quiet(house: House) -> House:
    """The tests move jobs themselves; commands of the API are applied by the thread again afterwards."""
    house.stop_writer()
    return house


def ids(answer: Any) -> list[str]:
    return [job["id"] for job in answer.get_json()]


def test_jobs_are_listed_the_newest_first_and_on(quiet: House):
    made = [add(quiet, str(number)) for number in range(5)]

    first = quiet.get("/api/v1/jobs?limit=3")
    second = quiet.get(first.headers["Link"].split("<")[1].split(">")[0])

    assert ids(first) + ids(second) == made[::-1]
    assert "Link" not in second.headers


def test_jobs_are_found_by_state_kind_queue_and_project(quiet: House):
    done = add(quiet, "done")
    ended(quiet, fails=False)
    failed = add(quiet, "failed")
    ended(quiet, fails=True)
    far = add(quiet, "far", "test_far")
    mine = add(quiet, "mine", project="mine")

    for query, expected in (
        ("state=completed", [done]),
        ("state=failed", [failed]),
        ("kind=test_far", [far]),
        ("queue=forget", [far]),
        ("workspace=default&project=mine", [mine]),
        ("workspace=default&project=mine&state=failed", []),
        ("state=pending&kind=test_sum", [mine]),
    ):
        assert ids(quiet.get(f"/api/v1/jobs?{query}")) == expected, query


def test_a_job_says_what_became_of_it_and_nothing_of_its_lease(quiet: House):
    job = add(quiet, project="mine")
    ended(quiet, fails=True)

    shown = quiet.get(f"/api/v1/jobs/{job}").get_json()

    assert shown["state"] == "failed"
    assert shown["last_error"] == Failure.CRASHED.sentence
    assert (shown["workspace"], shown["project"], shown["worker"]) == ("default", "mine", "w1")
    assert not any("claim_hash" in name or "digest" in name for name in shown)


def test_a_completed_job_shows_its_result(quiet: House):
    job = add(quiet)
    ended(quiet, fails=False)

    assert quiet.get(f"/api/v1/jobs/{job}").get_json()["result"]["sum"] == 3


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/v1/jobs?state=nonsense", 400),
        ("/api/v1/jobs?queue=nonsense", 400),
        ("/api/v1/jobs?before=nonsense", 400),
        ("/api/v1/jobs?workspace=default&project=nowhere", 404),
        ("/api/v1/jobs/nonsense", 400),
        ("/api/v1/jobs/00000000-0000-7000-8000-000000000000", 404),
    ],
)
def test_what_is_not_there_says_so(quiet: House, path: str, status: int):
    assert quiet.get(path).status_code == status


def test_a_failed_job_is_retried_and_a_pending_one_cancelled(quiet: House):
    job = add(quiet)
    ended(quiet, fails=True)
    quiet.start_writer()

    assert quiet.post(f"/api/v1/jobs/{job}/retry", {}).get_json()["state"] == "pending"
    again = quiet.post(f"/api/v1/jobs/{job}/retry", {})
    assert (again.status_code, again.get_json()["code"]) == (409, "conflict")
    # No id was used twice: nothing is said of ids.
    assert "advice" not in again.get_json()
    assert quiet.post(f"/api/v1/jobs/{job}/cancel", {}).get_json()["state"] == "cancelled"
    assert quiet.post(f"/api/v1/jobs/{id_text(os.urandom(16))}/cancel", {}).status_code == 404
    assert [row["op"] for row in quiet.rows("SELECT op FROM audit_log ORDER BY seq")] == [
        "job_retried",
        "job_cancelled",
    ]


def test_a_running_job_is_asked_to_stop(quiet: House):
    job = add(quiet)
    claimed(quiet)
    quiet.start_writer()

    answer = quiet.post(f"/api/v1/jobs/{job}/cancel", {}).get_json()

    assert (answer["state"], answer["cancel_asked"]) == ("running", True)
    assert quiet.get(f"/api/v1/jobs/{job}").get_json()["cancel_asked_at"] is not None


def test_queues_say_what_waits_and_whether_they_are_paused(house: House):
    add(house, "a")
    add(house, "b")

    assert house.post("/api/v1/queues/lint/pause", {}).get_json()["changed"] is True
    queues = {queue["queue"]: queue for queue in house.get("/api/v1/queues").get_json()}

    assert list(queues) == ["compaction", "distillation", "lint", "forget", "embeddings"]
    lint = queues["lint"]
    assert (lint["pending"], lint["running"], lint["past_lease"], lint["paused"]) == (2, 0, 0, True)
    assert lint["paused_by"] == "owner"
    assert lint["oldest_pending_seconds"] >= 0
    assert queues["forget"]["oldest_pending_at"] is None
    assert house.post("/api/v1/queues/lint/resume", {}).get_json()["paused"] is False
    assert house.post("/api/v1/queues/nonsense/pause", {}).status_code == 404


def test_schedules_say_when_they_ran_and_run_next(house: House):
    before = {row["kind"]: row for row in house.get("/api/v1/schedules").get_json()}["idle_sessions"]
    made = house.post("/api/v1/schedules/idle_sessions/run", {}).get_json()
    after = {row["kind"]: row for row in house.get("/api/v1/schedules").get_json()}["idle_sessions"]

    assert before["last_at"] is None
    assert before["schedule"] == "every 15m"
    assert before["next_at"].endswith(("00:00Z", "15:00Z", "30:00Z", "45:00Z"))
    assert (after["last_job"], after["last_state"]) == (made["id"], "pending")
    assert after["last_slot"].startswith("manual:")
    assert house.post("/api/v1/schedules/nonsense/run", {}).status_code == 404


@pytest.mark.parametrize("scope", ["read", "capture", "pool"])
@pytest.mark.parametrize(
    "path",
    ["/jobs/x/cancel", "/jobs/x/retry", "/queues/lint/pause", "/queues/lint/resume", "/schedules/x/run"],
)
def test_who_may_only_read_steers_nothing(house: House, scope: str, path: str):
    token = {"Authorization": f"Bearer {house.add_token(scope)}"}

    assert house.client().post(f"/api/v1{path}", headers=token).status_code == 403


def test_a_gate_with_a_wrong_schedule_does_not_start(house: House):
    (house.settings.data_dir / "config.toml").write_text('[schedules]\nidle_sessions = "sometimes"\n')
    parts = build(house.settings, redactor=SimpleNamespace(redact_value=None))  # type: ignore[arg-type]
    with pytest.raises(Invalid, match="idle_sessions"):
        create_app(house.settings, parts)
