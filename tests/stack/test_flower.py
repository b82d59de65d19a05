"""`memoryd up --flower`: a real Flower beside the real tree, closed to strangers, without a hand on anything."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from typing import Any

import pytest

from tests.stack.conftest import ROOT, TreeStart, free_ports, wait_until
from workers import exit_codes, heartbeat

pytestmark = [pytest.mark.stack, pytest.mark.timeout(120)]


def ask(url: str, authorization: str = "", *, data: bytes | None = None) -> tuple[int, bytes]:
    """Status and body; `authorization` is `user:password`."""
    request = urllib.request.Request(url, data=data)
    if authorization:
        request.add_header("Authorization", "Basic " + base64.b64encode(authorization.encode()).decode())
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


def tasks(url: str, authorization: str) -> list[dict[str, Any]]:
    status, body = ask(f"{url}/api/tasks?limit=500", authorization)
    assert status == 200
    return list(json.loads(body).values())


def test_flower_shows_what_the_writer_applied_to_who_knows_the_password_and_changes_nothing(
    start_tree: TreeStart,
) -> None:
    (port,) = free_ports(1)
    tree = start_tree("client", "up", "--flower", "--flower-port", str(port))
    url = str(tree.wait_ready(60)["flower_url"])
    assert url == f"http://127.0.0.1:{port}"
    password = tree.settings.flower_auth_file.read_text().strip()
    assert tree.settings.flower_auth_file.stat().st_mode & 0o777 == 0o600
    assert password.startswith("memoryd:")

    for path in ("/", "/api/tasks", "/api/workers", "/workers", "/metrics", "/broker"):
        assert ask(url + path)[0] == 401, path
        assert ask(url + path, "memoryd:guess")[0] == 401, path
    assert ask(url + "/metrics", password)[0] == 200
    sent = ask(f"{url}/api/task/send-task/writer.drain", password, data=b"{}")
    assert sent[0] == 403
    assert ask(f"{url}/api/worker/shutdown/writer", password, data=b"")[0] == 403

    assert tree.prompt("shown in flower") == 200
    wait_until(lambda: _applied(url, password) > 0, 20)
    wait_until(lambda: any(task["name"] == "pool.look" for task in tasks(url, password)), 20)
    tree.process.send_signal(signal.SIGTERM)
    assert tree.process.wait(40) == exit_codes.OK
    assert tree.everybody() == set()
    assert not (tree.settings.log_dir / "flower.log").read_text().count("Inspect method")


def _applied(url: str, password: str) -> int:
    """Commands that the drains applied, by what Flower shows as their results."""
    results = [task["result"] for task in tasks(url, password) if task["name"] == "writer.drain"]
    return sum(int(str(text).split("'applied': ")[1].split(",")[0]) for text in results if text)


@pytest.mark.kills
def test_a_flower_that_hears_nothing_any_more_is_started_anew(start_tree: TreeStart) -> None:
    (port,) = free_ports(1)
    tree = start_tree("workers.supervisor", environ={"MEMORYD_FLOWER": "1", "MEMORYD_FLOWER_PORT": str(port)})
    tree.wait_ready(60)
    before = tree.pids["flower"]

    os.kill(before, signal.SIGKILL)
    wait_until(lambda: tree.pids.get("flower") not in (None, before), 10)
    wait_until(lambda: _hears(tree.settings.run_dir, tree.pids.get("flower")), 20)


def _hears(run_dir: Any, pid: int | None) -> bool:
    beat = heartbeat.read(heartbeat.heartbeat_file(run_dir, "flower"))
    return beat is not None and beat.pid == pid and beat.ready


def test_flower_that_is_not_installed_is_said_at_once(tmp_path: Any) -> None:
    hides = "import sys; sys.modules['flower'] = None; from client.main import main; main()"
    run = subprocess.run(
        [sys.executable, "-c", hides, "up", "--flower", "--data-dir", str(tmp_path / "data")],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )

    assert run.returncode == exit_codes.UNAVAILABLE
    assert "pip install 'memoryd[flower]'" in run.stderr
