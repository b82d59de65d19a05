"""`memoryd jobs`, `memoryd schedule` and what `memoryd doctor` says of jobs, against a real gate."""

from __future__ import annotations

import base64
import http.client
import json
import os
import re
import threading
from pathlib import Path
from typing import Any

import pytest

from client.main import main
from memory_core import job_kind, jobs
from memory_core.domain.job import QUEUES, Failure
from tests.client.prompt import Prompt
from tests.stack.conftest import wait_until
from tests.web.served import Served

pytestmark = pytest.mark.stack


class Person(Prompt):
    """At a prompt, and now and then in the place of a pool worker."""

    def __init__(self, served: Served, capsys: pytest.CaptureFixture[str]) -> None:
        super().__init__(capsys)
        self.served = served
        self._pool = f"Bearer {served.house.add_token('pool')}"
        self.lease = base64.urlsafe_b64encode(os.urandom(32)).decode().rstrip("=")

    def job(self) -> str:
        """A new pending job of the queue `forget`; its id."""
        return self.asks("schedule", "run", "idle_sessions")["id"]

    def pool(self, route: str, **body: Any) -> Any:
        """What a pool worker asks."""
        connection = http.client.HTTPConnection("127.0.0.1", self.served.port, timeout=60)
        try:
            headers = {"Authorization": self._pool, "Content-Type": "application/json"}
            connection.request("POST", f"/pool/{route}", json.dumps({"lease": self.lease, **body}), headers)
            return json.loads(connection.getresponse().read())
        finally:
            connection.close()

    def claim(self, worker: str = "left hand") -> str:
        return self.pool("claim", queues=["forget"], worker=worker)["job"]["id"]

    def fail(self) -> str:
        """A job that failed for good."""
        self.job()
        job = self.claim()
        self.pool("fail", job=job, error="crashed", permanent=True)
        return job


@pytest.fixture(scope="module", autouse=True)
def writer(served: Served) -> None:
    served.house.start_writer()


@pytest.fixture
def person(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Person:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("MEMORYD_URL", served.url)
    monkeypatch.setenv("MEMORYD_TOKEN", served.house.token)
    monkeypatch.chdir(tmp_path)
    for name in ("MEMORYD_TOKEN_FILE", "MEMORYD_CLIENT_CONFIG", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    raw = served.house.connection.raw
    raw.execute("DELETE FROM jobs")
    raw.execute("DELETE FROM job_queues")
    return Person(served, capsys)


def test_jobs_are_listed_after_a_line_for_each_queue(person: Person) -> None:
    old, new = person.job(), person.job()
    person.claim()

    rows = [line.split("\t") for line in person.says("jobs", "list").splitlines()]

    assert [(row[1], row[4], row[-1]) for row in rows] == [
        ("idle_sessions", "pending", new),
        ("idle_sessions", "running", old),
    ]
    assert re.search(r"^forget: 1 pending, the oldest for \d+ s; 1 running$", person.err, re.M)
    assert [line.split(":")[0] for line in person.err.splitlines()] == list(QUEUES)


def test_a_list_is_narrowed_and_goes_on_as_long_as_is_asked_for(
    person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("client.jobs._PAGE", 2)
    ids = [person.job() for _ in range(5)][::-1]
    person.claim()

    def listed(*words: str) -> list[str]:
        return [job["id"] for job in person.asks("jobs", "list", *words)["jobs"]]

    assert listed("--all") == ids
    assert listed("-n", "3") == ids[:3]
    assert listed("--state", "running") == ids[-1:]
    assert listed("--kind", "idle_sessions", "--queue", "forget", "--state", "pending", "--all") == ids[:-1]
    assert listed("--kind", "other") == listed("--queue", "lint") == []
    queues = person.asks("jobs", "list", "--queue", "lint")["queues"]
    assert [queue["queue"] for queue in queues] == ["lint"]


def test_a_list_of_a_project_that_is_not_there_says_so(person: Person) -> None:
    person.says("jobs", "list", "--project", "nowhere", code=1)
    assert "nowhere" in person.err
    person.says("jobs", "list", "--workspace", "default", code=2)
    assert "--project" in person.err


def test_a_job_is_shown_whole_and_without_any_token(person: Person) -> None:
    job = person.fail()
    facts = dict(line.split("\t") for line in person.says("jobs", "show", job).splitlines())

    assert (facts["state"], facts["failures"], facts["worker"]) == ("failed", "1", "left hand")
    assert facts["last_error"] == Failure.CRASHED.sentence
    assert "result" not in facts
    assert not {name for name in person.asks("jobs", "show", job) if "hash" in name or name == "lease"}
    assert person.lease not in person.out


@pytest.mark.parametrize("name", ["../status", "no-id", "01900000-0000-7000-8000-000000000000"])
def test_a_job_that_is_not_there_is_one_sentence(person: Person, name: str) -> None:
    person.says("jobs", "show", name, code=1)
    assert len(person.err.strip().splitlines()) == 1


def test_a_failed_job_is_tried_again_by_its_id(person: Person) -> None:
    job = person.fail()
    assert person.says("jobs", "retry", job) == f"{job}: pending again\n"

    facts = person.asks("jobs", "show", job)
    assert (facts["state"], facts["failures"], facts["last_error"]) == ("pending", 0, None)
    person.says("jobs", "retry", job, code=1)
    assert "pending" in person.err


def test_what_fits_a_filter_is_shown_and_asked_about_first(
    person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = {person.fail(), person.fail()}
    waiting = person.job()
    monkeypatch.setattr("click.termui.visible_prompt_func", lambda _: "n")
    person.says("jobs", "retry", "--all", code=1)
    assert all(f"{job}  failed  idle_sessions: {Failure.CRASHED.sentence}" in person.err for job in failed)
    assert {person.asks("jobs", "show", job)["state"] for job in failed} == {"failed"}

    answer = person.asks("jobs", "retry", "--kind", "idle_sessions", "--yes")

    assert {one["id"] for one in answer["done"]} == failed
    assert waiting not in person.err
    assert {person.asks("jobs", "show", job)["state"] for job in failed} == {"pending"}


def test_a_cancelled_job_is_tried_again_when_that_state_is_named(person: Person) -> None:
    job = person.job()
    person.says("jobs", "cancel", job, "--yes")
    assert person.asks("jobs", "retry", "--all", "--yes")["done"] == []

    assert [
        one["id"] for one in person.asks("jobs", "retry", "--state", "cancelled", "--all", "-y")["done"]
    ] == [job]


def test_a_pending_job_ends_at_once_and_a_running_one_is_asked_to(person: Person) -> None:
    running, pending = person.job(), person.job()
    assert person.claim() == running

    said = person.says("jobs", "cancel", "--queue", "forget", "--yes")

    assert said.splitlines() == [
        "1 job cancelled",
        "1 job running: their workers let go at their next sign of life",
    ]
    assert person.asks("jobs", "show", pending)["state"] == "cancelled"
    assert "running, to be cancelled" in person.says("jobs", "list", "--state", "running")
    assert person.pool("renew", job=running)["cancel"] is True
    assert person.pool("release", job=running, reason="cancelled")["state"] == "cancelled"


def test_nothing_is_cancelled_without_a_yes(person: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    job = person.job()
    monkeypatch.setattr("click.termui.visible_prompt_func", lambda _: "n")
    person.says("jobs", "cancel", job, code=1)
    assert f"{job}  pending  idle_sessions" in person.err
    assert person.asks("jobs", "show", job)["state"] == "pending"


@pytest.mark.parametrize(
    "words", [["retry"], ["cancel"], ["retry", "x", "--all"], ["cancel", "x", "--kind", "y"]]
)
def test_which_jobs_are_meant_must_be_said_in_one_way(person: Person, words: list[str]) -> None:
    person.says("jobs", *words, code=2)
    assert "--all" in person.err


def test_a_job_that_moved_on_meanwhile_is_left_alone_and_named(person: Person) -> None:
    done, other = person.fail(), person.fail()
    person.says("jobs", "retry", done)

    answer = person.asks("jobs", "retry", done, other)

    assert ([one["id"] for one in answer["done"]], [one["id"] for one in answer["skipped"]]) == (
        [other],
        [done],
    )


def test_a_queue_is_paused_and_says_by_whom_and_since_when(person: Person) -> None:
    person.job()
    first = person.says("jobs", "pause", "forget")
    assert first.startswith("forget: paused by owner since 20")
    assert "1 waiting" in first
    assert "memoryd jobs resume forget" in first
    assert person.says("jobs", "pause", "forget").startswith("forget: already paused by owner since 20")
    assert person.pool("claim", queues=["forget"], worker="w")["job"] is None
    person.says("jobs", "list")
    assert re.search(r"^forget: 1 pending, .*; 0 running; paused by owner since 20", person.err, re.M)

    assert person.says("jobs", "resume", "forget").startswith("forget: gives jobs (it was paused by owner")
    assert person.claim()
    assert "it was not paused" in person.says("jobs", "resume", "forget")
    person.says("jobs", "pause", "nothing", code=2)


def test_schedules_tell_their_last_and_their_next_run(person: Person) -> None:
    def listed() -> list[str]:
        rows = (line.split("\t") for line in person.says("schedule", "list").splitlines())
        return next(row for row in rows if row[0] == "idle_sessions")

    job = person.job()
    assert listed()[1:3] == ["forget", "every 15m"]
    assert (listed()[4], bool(listed()[3]), bool(listed()[5])) == ("pending", True, True)

    claimed = person.pool("claim", queues=["forget"], worker="w")
    person.pool("finish", job=job, input_digest=claimed["input_digest"], output=claimed["input"])
    assert listed()[4] == "completed: ended 0"


def test_a_schedule_is_run_now_and_its_job_named(person: Person) -> None:
    said = person.says("schedule", "run", "idle_sessions")
    job = said.split()[2]
    assert f"memoryd jobs show {job}" in said
    assert person.asks("jobs", "show", job)["state"] == "pending"

    person.says("schedule", "run", "nothing", code=1)
    assert "nothing" in person.err
    person.says("schedule", "run", "idle_sessions", "--project", "p", code=1)
    assert "name no project" in person.err


def test_a_schedule_is_run_and_waited_for(person: Person) -> None:
    def work() -> None:
        claimed = _claimed(person)
        job = claimed["job"]["id"]
        person.pool("finish", job=job, input_digest=claimed["input_digest"], output=claimed["input"])

    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    said = person.says("schedule", "run", "idle_sessions", "--wait", "60")
    worker.join(60)

    assert re.fullmatch(r"idle_sessions: job \S+ completed: ended 0\n", said)


def test_waiting_for_a_schedule_s_job_ends_with_an_error_when_it_fails_or_lasts(person: Person) -> None:
    person.says("schedule", "run", "idle_sessions", "--wait", "1", code=1)
    assert re.search(r"the job is still pending after 1 s; see memoryd jobs show \S+", person.err)

    def fail() -> None:
        person.pool("fail", job=_claimed(person)["job"]["id"], error="crashed", permanent=True)

    fail()
    worker = threading.Thread(target=fail, daemon=True)
    worker.start()
    assert Failure.CRASHED.sentence in person.says("schedule", "run", "idle_sessions", "--wait", "60", code=1)
    worker.join(60)


def _claimed(person: Person) -> dict[str, Any]:
    """The claim of the next job, as soon as there is one."""
    claims: list[dict[str, Any]] = []

    def is_there() -> bool:
        claims.append(person.pool("claim", queues=["forget"], worker="w"))
        return claims[-1]["job"] is not None

    wait_until(is_there)
    return claims[-1]


def test_a_schedule_that_is_run_in_a_paused_queue_says_so_and_is_not_waited_for(person: Person) -> None:
    person.says("jobs", "pause", "forget")

    person.says("schedule", "run", "idle_sessions")
    assert "forget is paused by owner since 20" in person.err
    assert "memoryd jobs resume forget" in person.err
    person.says("schedule", "run", "idle_sessions", "--wait", "60", code=1)
    assert "waits: forget is paused by owner" in person.err


def test_the_doctor_names_workers_pauses_and_failures(person: Person) -> None:
    job = person.fail()
    person.says("jobs", "pause", "lint")
    checks = {
        check["check"]: check for check in json.loads(person.says("doctor", "--json", code=1))["checks"]
    }

    assert "left hand" in checks["pool workers"]["detail"]
    assert "0 running" in checks["pool workers"]["detail"]
    assert checks["queues"]["ok"]
    assert "lint is paused by owner" in checks["queues"]["detail"]
    assert (checks["failed jobs"]["ok"], job in checks["failed jobs"]["detail"]) == (False, True)
    assert Failure.CRASHED.sentence in checks["failed jobs"]["detail"]

    person.says("jobs", "retry", job)
    checks = {check["check"]: check for check in json.loads(_doctor(person))["checks"]}
    assert checks["failed jobs"] == {"check": "failed jobs", "ok": True, "detail": "none in the last day"}


@pytest.mark.parametrize(
    ("variable", "value", "code"), [("MEMORYD_URL", "http://127.0.0.1:9", 3), ("MEMORYD_TOKEN", "strange", 4)]
)
def test_the_doctor_ends_as_every_command_does_without_a_server_or_a_token(
    person: Person, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, code: int
) -> None:
    monkeypatch.setenv(variable, value)

    checks = json.loads(person.says("doctor", "--json", code=code))["checks"]

    assert [check["check"] for check in checks if not check["ok"]] == ["server"]


def _doctor(person: Person) -> str:
    """Its report, whatever else it finds."""
    with pytest.raises(SystemExit):
        main(["doctor", "--json"])
    return person._capsys.readouterr().out


def test_a_failed_job_is_dismissed_and_counts_no_more(person: Person) -> None:
    job = person.fail()
    ended = person.asks("jobs", "show", job)["finished_at"]

    assert person.says("jobs", "cancel", job, "--yes") == f"{job}: cancelled\n"

    facts = person.asks("jobs", "show", job)
    assert (facts["state"], facts["last_error"], facts["finished_at"]) == (
        "cancelled",
        Failure.CRASHED.sentence,
        ended,
    )
    assert person.asks("jobs", "list", "--state", "failed")["jobs"] == []
    person.says("jobs", "retry", job)
    assert person.asks("jobs", "show", job)["state"] == "pending"


def test_the_help_names_the_kinds_that_can_be_run(person: Person) -> None:
    said = " ".join(person.says("schedule", "run", "--help").split())

    # Tests register kinds of their own.
    files = {file.stem for file in Path(jobs.__file__).parent.glob("*.py")}
    real = [name for name in job_kind.runnable() if name in files]
    assert f"{', '.join(real[:-1])} or {real[-1]}" in said
