"""`memoryd up --flower`: a real Flower beside the real tree, closed to strangers, without a hand on anything."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from typing import Any

import pytest

from memory_core.config import Settings
from tests.ports import free_ports
from tests.stack.asking import ask, tasks
from tests.stack.conftest import ROOT, RunningTree, TreeStart, wait_until
from workers import exit_codes, heartbeat

pytestmark = pytest.mark.stack


def test_flower_shows_what_the_writer_applied_to_who_knows_the_password_and_changes_nothing(
    start_tree: TreeStart,
) -> None:
    (port,) = free_ports(1)
    tree = start_tree("client", "up", "--flower", "--flower-port", str(port))
    url = str(tree.wait_ready()["flower_url"])
    _wait_for_flower(tree)
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

    # What happened before it listened it never hears.
    wait_until(lambda: any(task["name"] == "pool.look" for task in tasks(url, password)))
    tree.prompt("shown in flower")
    wait_until(lambda: _applied(url, password) > 0)
    tree.process.send_signal(signal.SIGTERM)
    assert tree.process.wait(60) == exit_codes.OK
    assert tree.everybody() == set()
    assert not (tree.settings.log_dir / "flower.log").read_text().count("Inspect method")


def _wait_for_flower(tree: RunningTree) -> None:
    """The tree is ready without it."""
    wait_until(lambda: any(record["child"] == "flower" for record in tree.logged("child_ready")))


def test_flower_without_its_port_says_which_and_why_in_a_line(settings: Settings) -> None:
    settings.install_file.write_text("ab" * 16)
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        environ = {**os.environ, **settings.environment(), "MEMORYD_FLOWER_PORT": str(port)}
        environ["MEMORYD_BROKER_URL"] = "redis://127.0.0.1:1/0"
        argv = [sys.executable, "-m", "workers.flower"]
        run = subprocess.run(argv, env=environ, capture_output=True, text=True, check=False, timeout=60)

    assert run.returncode == exit_codes.UNAVAILABLE
    assert run.stderr.startswith(f"memoryd: port {port} on 127.0.0.1 cannot be had")
    assert "EADDRINUSE" in run.stderr
    assert run.stderr.count("\n") == 1


def _applied(url: str, password: str) -> int:
    """Commands that the drains applied, by what Flower shows as their results."""
    results = [task["result"] for task in tasks(url, password) if task["name"] == "writer.drain"]
    return sum(int(str(text).split("'applied': ")[1].split(",")[0]) for text in results if text)


@pytest.mark.kills
def test_a_flower_that_was_killed_or_lost_its_broker_hears_again(start_tree: TreeStart) -> None:
    (port,) = free_ports(1)
    tree = start_tree("workers.supervisor", environ={"MEMORYD_FLOWER": "1", "MEMORYD_FLOWER_PORT": str(port)})
    tree.wait_ready()
    _wait_for_flower(tree)

    before = tree.pids["flower"]
    os.kill(before, signal.SIGKILL)
    wait_until(lambda: tree.pids.get("flower") not in (None, before))
    wait_until(lambda: _heard(tree) is not None)

    os.kill(tree.pids["broker"], signal.SIGKILL)
    killed_at = time.monotonic()
    # What was on its way may arrive yet; then by itself, or in a process that was started anew for its silence.
    wait_until(lambda: (_heard(tree) or 0.0) > killed_at + 3.0, 45 + 30)


def _heard(tree: RunningTree) -> float | None:
    """When the Flower that runs now last heard an event."""
    beat = heartbeat.read(heartbeat.heartbeat_file(tree.settings.run_dir, "flower"))
    return beat.at if beat is not None and beat.pid == tree.pids.get("flower") and beat.ready else None


def test_flower_that_is_not_installed_is_said_at_once(tmp_path: Any) -> None:
    hides = "import sys; sys.modules['flower'] = None; from client.main import main; main()"
    run = subprocess.run(
        [sys.executable, "-c", hides, "up", "--flower", "--data-dir", str(tmp_path / "data")],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert run.returncode == exit_codes.UNAVAILABLE
    assert "pip install 'memoryd[flower]'" in run.stderr
