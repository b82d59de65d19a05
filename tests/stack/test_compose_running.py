"""Every service of docker-compose.yml, run as a process from its own lines: command, environment, volumes, health check."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.stack import contained
from tests.stack.asking import ask, tasks
from tests.stack.compose import Replica, Stack, user_of
from tests.stack.conftest import ROOT, wait_until
from workers import exit_codes
from workers.celery_app import POOL_QUEUES as POOLS

pytestmark = pytest.mark.stack


def _runs_here(service: str) -> bool:
    """Prometheus is a program that may be missing, except where the tests run for good."""
    if service != "prometheus" or shutil.which("prometheus"):
        return True
    assert not os.environ.get("CI"), "prometheus must be installed where this runs for good"
    return False


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    """All services, healthy by the file's own checks. The tests below go on with one stack; each of them can begin with it."""
    # Other users must get there, which is not so in a test's own directory.
    root = Path(tempfile.mkdtemp(prefix="compose-"))
    root.chmod(0o755)
    stack = Stack(root)
    try:
        stack.up(_runs_here)
        yield stack
    finally:
        stack.kill()
        shutil.rmtree(root)


def _url(stack: Stack, service: str, port: str) -> str:
    return f"http://127.0.0.1:{stack.ports[service, port]}"


def _token(stack: Stack) -> str:
    return (stack.volumes["data"] / "token").read_text().strip()


def _prompt(stack: Stack, text: str) -> int:
    body = {"session_id": str(uuid.UUID(int=7)), "cwd": "/nowhere", "prompt": text}
    path = "/hook?agent=claude-code&event=UserPromptSubmit&wait=commit"
    return ask(_url(stack, "web", "49374") + path, bearer=_token(stack), data=json.dumps(body).encode())[0]


def _sessions(stack: Stack) -> list[dict[str, Any]]:
    status, body = ask(_url(stack, "web", "49374") + "/api/v1/sessions", bearer=_token(stack))
    assert status == 200
    return json.loads(body)


def test_a_hook_at_the_published_port_is_committed(stack: Stack) -> None:
    assert _prompt(stack, "into the containers") == 200
    assert [session["observation_count"] for session in _sessions(stack)] == [1]


def test_what_others_need_lies_in_volumes_of_its_readers_and_the_key_of_the_house_in_none(
    stack: Stack,
) -> None:
    handed_out = {
        name: {(path.name, stat.S_IMODE(path.stat().st_mode)) for path in local.iterdir()}
        for name, local in stack.volumes.items()
        if name.startswith("handout-")
    }

    assert handed_out == {
        "handout-common": {("install", 0o640)},
        "handout-metrics": {("metrics.token", 0o640)},
        "handout-flower": {("flower.auth", 0o640)},
        "handout-pool": {("pool.token", 0o600)},
    }
    assert stat.S_IMODE(stack.volumes["handout-pool"].stat().st_mode) == 0o700
    (flower,), owner = stack.of("flower"), user_of(stack.of("writer")[0].service)
    assert flower.user != owner


def test_a_service_sees_no_volume_that_it_does_not_mount(stack: Stack) -> None:
    if not contained.can_be():
        pytest.skip("only root can hide a directory from a process")
    for replica in stack.replicas:
        for name, local in stack.volumes.items():
            look = contained.inside(
                ["ls", "-A", str(local)], pid=replica.pid or 0, user=replica.user, groups=replica.groups
            )
            seen = subprocess.run(look, capture_output=True, text=True, check=False).stdout.split()
            assert bool(seen) == (name in replica.mounted and any(local.iterdir())), (replica.name, name)


def test_processes_without_the_data_keep_nothing_but_their_own(stack: Stack) -> None:
    for replica in stack.replicas:
        if replica.environ.get("MEMORYD_DATA_DIR", "").endswith("state"):
            state = {path.name for path in Path(replica.environ["MEMORYD_DATA_DIR"]).iterdir()}
            assert state == {".memoryd", "run", "logs", "tmp"}, replica.name


def test_a_second_writer_stays_out_and_the_first_one_goes_on(stack: Stack) -> None:
    (first,) = stack.of("writer")
    before = _children(first)

    second = stack.start("writer")

    assert second.wait() == exit_codes.NOT_ALONE
    said = second.log.read_text()
    assert "already runs" in said
    assert not contained.can_be() or "process 1 on host writer-1" in said
    assert _children(first) == before
    assert _prompt(stack, "while a second writer knocked") == 200


def _children(replica: Replica) -> dict[str, int]:
    run = Path(replica.environ.get("MEMORYD_STATE_DIR", replica.environ["MEMORYD_DATA_DIR"])) / "run"
    record = json.loads((run / f"children-{replica.service['command'][1]}.json").read_text())
    return {entry["name"]: entry["pid"] for entry in record["children"]}


def test_a_pool_may_be_scaled_and_the_gate_tells_its_workers_apart(stack: Stack) -> None:
    for replica in [stack.start("lint") for _ in range(2)]:
        replica.wait_healthy()

    wait_until(lambda: [worker["queues"] for worker in _workers(stack)].count(["lint"]) == 3)


def _workers(stack: Stack) -> list[dict[str, Any]]:
    return json.loads(ask(_url(stack, "web", "49374") + "/api/v1/workers", bearer=_token(stack))[1])


def test_a_job_is_done_by_the_worker_of_its_queue(stack: Stack) -> None:
    gate, token = _url(stack, "web", "49374"), _token(stack)
    assert ask(f"{gate}/api/v1/schedules/idle_sessions/run", bearer=token, data=b"{}")[0] == 200

    def done() -> list[dict[str, Any]]:
        return json.loads(ask(f"{gate}/api/v1/jobs?kind=idle_sessions&state=completed", bearer=token)[1])

    wait_until(done)
    assert {queue for worker in _workers(stack) for queue in worker["queues"]} == set(POOLS)
    assert all(worker["worker"].startswith(f"{worker['queues'][0]}-") for worker in _workers(stack))


def test_flower_shows_drains_and_looks_to_who_knows_the_password(stack: Stack) -> None:
    url = _url(stack, "flower", "5555")
    password = (stack.volumes["handout-flower"] / "flower.auth").read_text().strip()
    assert ask(f"{url}/api/tasks")[0] == 401
    assert ask(f"{url}/api/tasks", "memoryd:guess")[0] == 401

    wait_until(lambda: {task["name"] for task in tasks(url, password)} >= {"writer.drain", "pool.look"})


def test_prometheus_scrapes_the_gate(stack: Stack) -> None:
    if not stack.of("prometheus"):
        pytest.skip("prometheus is not installed")
    url = _url(stack, "prometheus", "9090")

    def target() -> dict[str, Any]:
        found = json.loads(ask(f"{url}/api/v1/targets")[1])["data"]["activeTargets"]
        return next(one for one in found if one["labels"]["job"] == "memoryd")

    wait_until(lambda: target()["health"] == "up")
    assert target()["lastError"] == ""
    rules = json.loads(ask(f"{url}/api/v1/rules")[1])["data"]["groups"][0]["rules"]
    assert {rule["health"] for rule in rules} <= {"ok", "unknown"}
    assert not [rule for rule in rules if rule.get("lastError")]


def test_every_alert_stands_on_a_metric_that_there_is(stack: Stack) -> None:
    scraped = (stack.volumes["handout-metrics"] / "metrics.token").read_text().strip()
    status, page = ask(_url(stack, "web", "49374") + "/metrics", bearer=scraped)
    assert status == 200
    shown = set(re.findall(r"^# TYPE (\w+)", page.decode(), re.M))
    rules = yaml.safe_load((ROOT / "ops" / "alerts.yml").read_text())["groups"][0]["rules"]
    used = {name for rule in rules for name in re.findall(r"\bmemoryd_\w+", rule["expr"])}

    assert used
    assert used - shown - {name.removesuffix("_total") for name in shown} == set()
    assert all(rule["annotations"].keys() == {"summary", "action"} for rule in rules)


def test_a_stop_drains_in_order_and_leaves_nobody(stack: Stack) -> None:
    assert _prompt(stack, "the last words") == 200

    codes = stack.stop_in_order()

    assert set(codes) == {replica.name for replica in stack.replicas}
    assert {name: set(ended) for name, ended in codes.items()} == {name: {exit_codes.OK} for name in codes}
    assert stack.everybody() == set()


def test_a_container_made_anew_opens_the_volume_and_a_copy_in_its_place_is_refused(stack: Stack) -> None:
    stack.stop_in_order()  # nobody is left where the test before stopped them all
    stack.start("broker").wait_healthy()
    again = stack.start("writer").wait_healthy()
    again.ask_to_end()
    assert again.wait() == exit_codes.OK

    volume, original = stack.volumes["data"], stack.root / "original"
    volume.rename(original)
    subprocess.run(["cp", "-a", str(original), str(volume)], check=True)
    refused = stack.start("writer")

    assert refused.wait() == exit_codes.REFUSED
    said = refused.log.read_text()
    assert "was copied or moved" in said
    assert "machine named:compose-memoryd" in said

    taken = stack.start("writer", MEMORYD_TAKE_OVER="1").wait_healthy()
    taken.ask_to_end()
    assert taken.wait() == exit_codes.OK
