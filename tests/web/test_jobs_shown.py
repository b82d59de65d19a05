"""What a person and a scraper see of jobs: queues, workers, failures, schedules, in `/api/v1`, `/metrics` and `/ui/jobs`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memory_core import limits
from memory_core.clock import FakeClock
from memory_core.domain.job import QUEUES, Failure
from tests.jobs.working import kind, registered
from tests.web.house import House
from tests.web.markup import Elements, dangers
from tests.web.test_pool import Pool, add
from web.presence import Presence


@pytest.fixture
def house(house: House) -> Iterator[House]:
    with registered(kind(), kind("test_far", queue="forget")):
        house.start_writer()
        yield house
        house.stop_writer()


def queue(house: House, name: str = "lint") -> dict[str, Any]:
    return next(row for row in house.get("/api/v1/queues").json if row["queue"] == name)


def metrics(house: House) -> dict[str, float]:
    page = house.get("/metrics").text
    lines = [line for line in page.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def fail(pool: Pool, job: str) -> None:
    body = {"job": job, "lease": pool.lease, "error": "crashed", "permanent": True}
    assert pool.post("fail", body).status_code == 200


# --- /api/v1 ---


def test_a_queue_tells_what_waits_what_is_due_and_who_serves_it(house: House) -> None:
    add(house, source="a")
    add(house, source="b")
    assert (queue(house)["pending"], queue(house)["due"], queue(house)["workers"]) == (2, 2, 0)

    pool = Pool(house)
    pool.claim()

    state = queue(house)
    assert (state["pending"], state["due"], state["running"], state["workers"]) == (1, 1, 1, 1)
    assert state["oldest_due_at"] is not None
    assert queue(house, "forget")["workers"] == 0


def test_how_long_a_queue_will_take_is_told_by_the_last_jobs_and_the_workers(house: House) -> None:
    for number in range(4):
        add(house, source=str(number))
    pool = Pool(house)
    assert queue(house)["done_in_seconds"] is None
    claimed = pool.claim().json
    body = {"job": claimed["job"]["id"], "lease": pool.lease, "input_digest": claimed["input_digest"]}
    assert pool.post("finish", body | {"output": claimed["input"]}).status_code == 200
    house.connection.raw.execute(
        "UPDATE jobs SET finished_at = claimed_at + 8000000 WHERE state = 'completed'"
    )

    assert queue(house)["done_in_seconds"] == 24
    Pool(house).claim(worker="another")
    assert queue(house)["done_in_seconds"] == 8
    assert queue(house, "forget")["done_in_seconds"] is None
    assert re.search(r"2 pending, the oldest from .*, done in about 8 seconds", shown(house).text)


def test_a_worker_is_shown_with_its_queues_and_the_job_that_it_has(house: House) -> None:
    job = add(house)
    Pool(house).claim(worker="left hand")
    Pool(house, queues=("forget", "lint")).claim(worker="right hand")

    left, right = house.get("/api/v1/workers").json
    assert (left["worker"], left["queues"], [j["id"] for j in left["jobs"]]) == ("left hand", ["lint"], [job])
    assert (right["worker"], right["queues"], right["jobs"]) == ("right hand", ["forget", "lint"], [])
    assert not {"claim_hash", "lease"} & set(left["jobs"][0])


def test_the_jobs_that_failed_lately_are_listed_with_their_sentence(house: House) -> None:
    job, pool = add(house), Pool(house)
    pool.claim()
    fail(pool, job)

    (found,) = house.get("/api/v1/jobs/failed?hours=1").json
    assert (found["id"], found["last_error"]) == (job, Failure.CRASHED.sentence)

    assert house.post(f"/api/v1/jobs/{job}/retry", {}).status_code == 200
    assert house.get("/api/v1/jobs/failed").json == []


def test_a_schedule_tells_the_result_of_its_last_run(house: House) -> None:
    run = house.post("/api/v1/schedules/idle_sessions/run", {}).json
    schedules = {row["kind"]: row for row in house.get("/api/v1/schedules").json}

    last = schedules["idle_sessions"]
    assert (last["last_job"], last["last_state"], last["last_result"]) == (run["id"], "pending", None)
    assert last["next_at"] is not None


@pytest.mark.parametrize(
    "address", ["/api/v1/queues", "/api/v1/workers", "/api/v1/jobs/failed", "/api/v1/schedules"]
)
def test_who_may_not_read_sees_nothing_of_it(house: House, address: str) -> None:
    headers = {"Authorization": f"Bearer {house.add_token('pool')}"}
    assert house.client().get(address, headers=headers).status_code == 403


# --- who is there ---


def test_a_worker_that_did_not_ask_lately_is_gone() -> None:
    clock = FakeClock()
    presence = Presence(clock)
    presence.heard("one", ["lint"])
    clock.advance(limits.POOL_HEARD_SECONDS)
    presence.heard("two", ["lint", "forget"])
    assert presence.serving() == {"lint": 2, "forget": 1}

    clock.advance(1)
    (heard,) = presence.lately()
    assert (heard.worker, heard.queues, heard.at) == ("two", ("forget", "lint"), clock.now_us() - 1_000_000)


def test_a_worker_is_forgotten_by_the_queue_that_it_serves_no_more() -> None:
    clock = FakeClock()
    presence = Presence(clock)
    presence.heard("one", ["lint", "forget"])
    clock.advance(limits.POOL_HEARD_SECONDS)
    presence.heard("one", ["lint"])
    clock.advance(1)
    assert presence.serving() == {"lint": 1}


def test_names_without_end_take_no_memory_without_end() -> None:
    presence = Presence(FakeClock())
    for number in range(3 * limits.POOL_WORKERS_KNOWN):
        presence.heard(str(number), ["lint"])
    assert presence.serving() == {"lint": limits.POOL_WORKERS_KNOWN}


# --- /metrics ---


def test_the_metrics_are_those_of_the_table(house: House) -> None:
    first, second, pool = add(house, source="a"), add(house, source="b"), Pool(house)
    add(house, source="c")
    pool.claim()
    fail(pool, first)
    pool.claim()
    house.post("/api/v1/queues/forget/pause", {})
    found = metrics(house)

    assert second in house.get("/api/v1/jobs?state=running").text
    labels = 'kind="test_sum",queue="lint"'
    for state, count in (("pending", 1), ("running", 1), ("failed", 1)):
        assert found[f'memoryd_jobs{{{labels},state="{state}"}}'] == count
    assert found[f"memoryd_jobs_claimed_total{{{labels}}}"] == 2
    assert found[f"memoryd_job_failures_total{{{labels}}}"] == 1
    assert found[f'memoryd_jobs_ended_total{{{labels},state="failed"}}'] == 1
    assert 0 < found[f"memoryd_jobs_oldest_pending_age_seconds{{{labels}}}"] < 60
    assert found['memoryd_jobs_oldest_pending_age_seconds{kind="test_far",queue="forget"}'] == 0
    assert found['memoryd_jobs_past_lease{queue="lint"}'] == 0
    assert {q: found[f'memoryd_queue_paused{{queue="{q}"}}'] for q in QUEUES} == dict.fromkeys(QUEUES, 0) | {
        "forget": 1
    }
    assert found['memoryd_pool_workers{queue="lint"}'] == 1


def test_a_running_job_past_its_lease_and_a_staged_slot_are_seen(house: House) -> None:
    add(house)
    Pool(house).claim()
    house.post("/api/v1/schedules/idle_sessions/run", {})
    house.connection.raw.execute("UPDATE jobs SET lease_until = 1 WHERE state = 'running'")
    found = metrics(house)

    assert found['memoryd_jobs_past_lease{queue="lint"}'] == 1
    staged = found['memoryd_schedule_last_staged_timestamp_seconds{kind="idle_sessions"}']
    assert abs(staged - house.parts.clock.now_us() / 1e6) < 60


def test_every_metric_of_jobs_is_explained(house: House) -> None:
    page = house.get("/metrics").text
    told = set(re.findall(r"^# TYPE (\w+) ", page, re.M))
    of_jobs = {name for name in told if re.match(r"memoryd_(jobs?|queue|schedule|pool)_?", name)}
    explained = (Path(__file__).parents[2] / "docs" / "operations.md").read_text()

    assert len(of_jobs) == 9
    assert {name for name in of_jobs if f"`{name}{{" not in explained} == set()


# --- /ui/jobs ---


def shown(house: House) -> Elements:
    answer = house.get("/ui/jobs")
    assert answer.status_code == 200, answer.text
    assert dangers(answer.text) == []
    return Elements(answer.text)


def test_the_page_shows_queues_workers_failures_and_schedules(house: House) -> None:
    failed, running, pool = add(house, source="a"), add(house, source="b"), Pool(house)
    pool.claim()
    fail(pool, failed)
    pool.claim(worker="left hand")
    house.post("/api/v1/queues/forget/pause", {})
    text = re.sub(r"\s+", " ", shown(house).text)

    assert set(QUEUES) <= set(text.split())
    assert "paused by owner" in text
    assert f"left hand lint asked just now test_sum {running}" in text
    assert f"{failed} {Failure.CRASHED.sentence}" in text
    assert "idle_sessions" in text
    assert "next in" in text


def test_the_page_says_what_to_do_and_has_no_form_of_its_own(house: House) -> None:
    page = shown(house)
    assert "memoryd work" in page.text
    assert [attrs.get("role") for tag, attrs in page.found if tag == "form"] == ["search"]


def test_what_a_worker_calls_itself_is_text(house: House) -> None:
    Pool(house).claim(worker="<script>alert(1)</script>")
    assert "<script>alert(1)</script>" in shown(house).text
