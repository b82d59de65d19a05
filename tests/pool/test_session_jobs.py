"""Compaction and distillation in the real stack: by rule, by a model, and with a worker that is killed between the two ends of a job."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.jobs.over_http import HttpAgent
from tests.models.fakes.openai import OpenAICompatible
from tests.models.server import Reply, Server, serving
from tests.pool.conftest import LOADER, ROOT
from tests.pool.whole_stack import QUICK
from tests.stack.conftest import RunningTree, make_tree, wait_until

pytestmark = [pytest.mark.stack, pytest.mark.kills]

CONFIG = """
[models]
provider = "openai_compatible"
base_url = "{url}"
model = "{model}"
"""


def agent(tree: RunningTree, turns: int) -> HttpAgent:
    token = tree.settings.token_file.read_text().strip()

    def ask(method: str, path: str, body: Any, headers: dict[str, str]) -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", tree.settings.port, timeout=60)
        try:
            given = {"Authorization": f"Bearer {token}", "Content-Type": "application/json", **headers}
            connection.request(method, path, None if body is None else json.dumps(body), given)
            response = connection.getresponse()
            return response.status, response.read().decode()
        finally:
            connection.close()

    made = HttpAgent(ask).start()
    made.claim()
    for number in range(1, turns + 1):
        made.say(f"Prompt {number}. Remember that rule {number} holds for the uploader.", f"Answer {number}")
    return made


@contextmanager
def running(home: Path, **environ: str) -> Generator[RunningTree]:
    with make_tree(home) as start:
        tree = start(
            "workers.supervisor",
            environ={
                "PYTHONPATH": f"{LOADER}:{ROOT}",
                "MEMORYD_TEST_MUTANT": "quick_jobs,quick_pool,die_at",
                "POOL_QUICK": f"{QUICK},POOL_LOOK_SECONDS=0.5,JOB_CONTENDED_SECONDS=0.5",
                "DIE_AT": str(home / "die-at"),
                **environ,
            },
        )
        tree.wait_ready()
        yield tree


@pytest.fixture(scope="module")
def by_rule(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningTree]:
    with running(tmp_path_factory.mktemp("rules")) as tree:
        yield tree


@pytest.fixture(scope="module")
def by_model(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[RunningTree, Server, OpenAICompatible]]:
    tmp_path = tmp_path_factory.mktemp("model")
    fake = OpenAICompatible()
    with serving(fake.read) as vendor:
        file = tmp_path / "config.toml"
        file.write_text(CONFIG.format(url=fake.base_url(vendor.port), model=fake.model))
        with running(tmp_path, MEMORYD_CONFIG_FILE=str(file)) as tree:
            yield tree, vendor, fake


def wait_compacted(one: HttpAgent) -> Any:
    """The newest compaction, when it has taken effect."""
    wait_until(lambda: one.compactions()[0]["job"]["state"] == "completed")
    return one.compactions()[0]


def wait_distilled(one: HttpAgent, job: str) -> Any:
    wait_until(lambda: one.must("GET", f"/api/v1/jobs/{job}")["state"] == "completed")
    return one.must("GET", f"/api/v1/jobs/{job}")["result"]


def kinds(lines: list[Any]) -> list[str]:
    return [line["event"]["kind"] for line in lines if "event" in line]


def test_a_session_is_compacted_resumed_and_distilled_by_rule(by_rule: RunningTree):
    one = agent(by_rule, 8)
    assert one.compact(context_window=1_000, current_tokens=900)[1]["job"]["through_sequence"] == 4
    # Whoever works on the session comes first.
    wait_until(lambda: one.compactions()[0]["job"]["waits_for"] == "contended")
    one.release()

    done = wait_compacted(one)
    assert (done["made_by"], done["summary_sequence"], done["job"]["failures"]) == ("rules", 17, 0)

    assert one.claim()["must_replay"] is True
    lines = one.replay()
    assert lines[0]["head"]["compacted_through"] == 4
    assert kinds(lines) == ["summary"] + ["user_message", "assistant_message"] * 6
    summary = lines[1]["event"]["payload"]["summary"]
    assert summary["made_by"] == "rules"
    assert "Prompt 2" in summary["text"]
    one.say("Prompt 9", "Answer 9")

    job = one.close()["job"]
    result = wait_distilled(one, job)
    assert (result["made_by"], result["upserted"]) == ("rules", 8)


def test_what_hooks_told_becomes_a_transcript_and_knowledge(by_rule: RunningTree):
    one = agent(by_rule, 0)
    key = str(uuid.uuid4())
    told = {"session_id": key, "cwd": "/srv/hooked"}

    def hook(name: str, **payload: Any) -> None:
        status, _ = one.json("POST", f"/hook?agent=claude-code&event={name}", {**told, **payload})
        assert status in (200, 202)

    hook("UserPromptSubmit", prompt="Remember that the mirror is read-only.")
    hook("PreToolUse", tool_name="Bash", tool_input={"command": "ls"}, tool_use_id="t1")
    hook("PreToolUse", tool_name="Bash", tool_input={"command": "sleep"}, tool_use_id="t2")
    hook("PostToolUse", tool_name="Bash", tool_input={"command": "ls"}, tool_use_id="t1", tool_response="a b")
    hook("SessionEnd", reason="logout")

    def hooked() -> list[Any]:
        listed = one.must("GET", "/api/v1/durable-sessions?limit=100")
        return [each for each in listed if each["origin"] == "hooks" and each["last_sequence"]]

    wait_until(lambda: bool(hooked()))
    events = one.must("GET", f"/api/v1/durable-sessions/{hooked()[0]['id']}/events")
    assert [each["kind"] for each in events] == [
        "user_message",
        *["tool_call", "tool_result"] * 2,
        "audit",
    ]
    assert [each["payload"].get("origin") for each in events if each["kind"] == "tool_result"] == [
        "tool",
        "unobserved",
    ]
    wait_until(lambda: "mirror" in json.dumps(one.must("GET", "/api/v1/knowledge?project=hooked")))


@pytest.mark.parametrize("step", ["claimed", "computed", "finished"])
def test_a_worker_killed_at_a_step_installs_one_summary(by_rule: RunningTree, step: str):
    one = agent(by_rule, 3)
    one.release()
    pool = by_rule.pids["pool"]
    (by_rule.settings.data_dir.parent / "die-at").write_text(step)

    assert one.compact(through_sequence=4)[0] == 200
    wait_until(lambda: by_rule.pids.get("pool") not in (None, pool))

    wait_compacted(one)
    one.claim()
    assert kinds(one.replay()) == ["summary", "user_message", "assistant_message"]


def test_a_model_sums_up_and_distils_where_one_is_configured(
    by_model: tuple[RunningTree, Server, OpenAICompatible],
):
    tree, vendor, fake = by_model
    one = agent(tree, 4)
    one.release()
    vendor.will(fake.answer(json.dumps({"summary": "Two rules were set for the uploader."})))

    one.compact(through_sequence=4)
    assert wait_compacted(one)["made_by"] == "model"

    one.claim()
    summary = one.replay()[1]["event"]["payload"]["summary"]
    assert summary["text"] == "Two rules were set for the uploader."
    assert (summary["prompt"], summary["made_by"]) == ("compaction.v1", "model")

    fact = {"action": "upsert", "key": "uploader", "content": "It has four rules.", "confidence": 0.8}
    # The first answer does not fit, and is mended.
    vendor.will(fake.answer("Sure! Here you are:"), fake.answer(json.dumps({"candidates": [fact]})))
    result = wait_distilled(one, one.close()["job"])
    assert (result["made_by"], result["upserted"]) == ("model", 1)
    assert len(vendor.asked) == 3


def slow(reply: Reply, seconds: float) -> Reply:
    """The same answer, of which nothing comes for so long."""

    def chunks() -> Iterator[bytes]:
        time.sleep(seconds)
        yield from reply.chunks

    return replace(reply, chunks=chunks())


def job_of(one: HttpAgent) -> Any:
    return one.compactions()[0]["job"]


def test_delayed_generation_renews_lease_without_background_task(
    by_model: tuple[RunningTree, Server, OpenAICompatible],
):
    """The model takes longer than a lease lasts: two seconds."""
    tree, vendor, fake = by_model
    one = agent(tree, 2)
    one.release()
    vendor.will(slow(fake.answer(json.dumps({"summary": "Slowly."})), 5))

    one.compact(through_sequence=2)

    assert wait_compacted(one)["made_by"] == "model"
    job = job_of(one)
    assert (job["claims"], job["failures"], job["deaths"]) == (1, 0, 0)


def test_interactive_session_preemption_requeues_without_failure(
    by_model: tuple[RunningTree, Server, OpenAICompatible],
):
    """Somebody comes back to the session while the model thinks: the summary is not installed under their hands."""
    tree, vendor, fake = by_model
    one = agent(tree, 2)
    one.release()
    answer = fake.answer(json.dumps({"summary": "In peace."}))
    asked = len(vendor.asked)
    vendor.will(slow(answer, 3), answer)
    one.compact(through_sequence=2)
    wait_until(lambda: len(vendor.asked) == asked + 1)

    one.claim()
    wait_until(lambda: job_of(one)["waits_for"] == "contended")
    assert (job_of(one)["state"], job_of(one)["failures"]) == ("pending", 0)
    assert kinds(one.replay()) == ["user_message", "assistant_message"] * 2
    one.say("One thing more", "Done")
    one.release()

    done = wait_compacted(one)
    assert (done["made_by"], done["summary_sequence"], done["job"]["failures"]) == ("model", 7, 0)


def test_cancellation_wins_and_stops_heartbeat(by_model: tuple[RunningTree, Server, OpenAICompatible]):
    tree, vendor, fake = by_model
    one = agent(tree, 2)
    one.release()
    asked = len(vendor.asked)
    vendor.will(slow(fake.answer(json.dumps({"summary": "Too late."})), 20))
    one.compact(through_sequence=2)
    wait_until(lambda: len(vendor.asked) == asked + 1)

    one.must("POST", f"/api/v1/jobs/{job_of(one)['id']}/cancel")

    wait_until(lambda: job_of(one)["state"] == "cancelled")
    assert (job_of(one)["lease_until"], job_of(one)["failures"]) == (None, 0)
    one.claim()
    assert kinds(one.replay()) == ["user_message", "assistant_message"] * 2


def test_empty_worker_run_succeeds_without_any_installed_model(by_rule: RunningTree):
    ran = subprocess.run(
        [sys.executable, "-m", "client", "work", "--json"],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "HOME": str(by_rule.settings.data_dir.parent),
            "MEMORYD_DATA_DIR": str(by_rule.settings.data_dir),
            "MEMORYD_URL": by_rule.settings.url,
            "MEMORYD_TOKEN_FILE": str(by_rule.settings.token_file),
        },
    )

    assert ran.returncode == 0, ran.stderr
    assert "nothing is due" in ran.stdout
