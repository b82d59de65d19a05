"""The supervisor over small real children and the real broker: starts, restarts, judges, drains, leaves nobody behind."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.stack.conftest import ROOT, TreeStart, is_alive, wait_until
from workers import exit_codes
from workers.supervisor.lock import Roster

pytestmark = pytest.mark.stack


def _notes(tree, name: str) -> list[str]:
    path = tree.settings.run_dir / name
    return path.read_text().splitlines() if path.exists() else []


def test_the_tree_comes_up_in_order_and_says_where_things_lie(start_tree: TreeStart) -> None:
    tree = start_tree()

    said = tree.wait_ready()

    assert said["data_dir"] == str(tree.settings.data_dir)
    assert said["url"] == tree.settings.url
    assert said["token_file"] == str(tree.settings.token_file)
    ready = [record["child"] for record in tree.logged("child_ready")]
    assert ready.index("broker") < ready.index("writer") < min(ready.index("web"), ready.index("beat"))


@pytest.mark.kills
@pytest.mark.parametrize("victim", ["broker", "writer", "web"])
def test_a_killed_child_is_started_again_without_a_pause(victim: str, start_tree: TreeStart) -> None:
    tree = start_tree()
    tree.wait_ready()
    before = tree.pids

    os.kill(before[victim], signal.SIGKILL)
    wait_until(lambda: tree.pids.get(victim) not in (None, before[victim]))

    [ended] = tree.logged("child_ended")
    assert (ended["child"], ended["pause_seconds"]) == (victim, 0.0)
    others = {name: pid for name, pid in before.items() if name != victim}
    assert {name: pid for name, pid in tree.pids.items() if name != victim} == others


@pytest.mark.kills
def test_the_children_of_a_killed_child_die_with_it(start_tree: TreeStart) -> None:
    tree = start_tree()
    tree.wait_ready()
    grandchild = int(_notes(tree, "web.notes")[-1].split()[1])
    assert is_alive(grandchild)

    os.kill(tree.pids["web"], signal.SIGKILL)

    wait_until(lambda: not is_alive(grandchild))


@pytest.mark.kills
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGABRT, signal.SIGSEGV])
def test_nobody_outlives_the_supervisor(how: signal.Signals, start_tree: TreeStart) -> None:
    tree = start_tree()
    tree.wait_ready()
    everybody = tree.everybody()
    assert len(everybody) == 4 + 3  # children, and the grandchildren of three

    tree.process.send_signal(how)
    tree.process.wait()

    wait_until(lambda: not any(is_alive(pid) for pid in everybody))


@pytest.mark.kills
def test_nobody_outlives_a_supervisor_that_is_killed_while_it_starts(start_tree: TreeStart) -> None:
    for pause in (0.15, 0.2, 0.25, 0.3, 0.35, 0.45, 0.6):
        tree = start_tree()
        time.sleep(pause)  # an event cannot be waited for: the point is to hit any step of the start
        tree.process.kill()
        tree.process.wait()
        wait_until(lambda tree=tree: not tree.everybody())


@pytest.mark.kills
def test_a_child_that_makes_no_progress_is_killed_and_its_pid_is_noted(start_tree: TreeStart) -> None:
    tree = start_tree()
    tree.wait_ready()
    hanging = tree.pids["writer"]

    (tree.settings.run_dir / "writer.silence").touch()
    wait_until(lambda: tree.pids.get("writer") not in (None, hanging))
    (tree.settings.run_dir / "writer.silence").unlink()

    mark = json.loads((tree.settings.run_dir / "writer.hang").read_text())
    assert mark["pid"] == hanging
    assert tree.logged("child_hangs")[0]["child_pid"] == hanging


@pytest.mark.kills
def test_a_stopped_child_is_a_hanging_child(start_tree: TreeStart) -> None:
    tree = start_tree()
    tree.wait_ready()
    stopped = tree.pids["beat"]

    os.kill(stopped, signal.SIGSTOP)

    wait_until(lambda: tree.pids.get("beat") not in (None, stopped))


@pytest.mark.kills
def test_a_frozen_machine_is_no_hang(start_tree: TreeStart) -> None:
    tree = start_tree()
    tree.wait_ready()
    before = tree.pids
    everybody = [tree.process.pid, *before.values()]

    for pid in everybody:
        os.kill(pid, signal.SIGSTOP)
    time.sleep(4)  # the freeze itself is what is tested
    for pid in everybody:
        os.kill(pid, signal.SIGCONT)
    time.sleep(1)

    assert tree.pids == before
    assert tree.logged("child_hangs") == []


def test_a_child_that_always_dies_is_started_ever_more_seldom(start_tree: TreeStart) -> None:
    tree = start_tree(environ={"MODES": "beat=crashes"})

    wait_until(lambda: len(tree.logged("child_ended")) >= 4)

    pauses = [record["pause_seconds"] for record in tree.logged("child_ended")]
    assert pauses[:4] == [0.0, 0.2, 1.0, 2.0]


def test_readiness_does_not_wait_for_an_optional_child(start_tree: TreeStart) -> None:
    tree = start_tree(environ={"MODES": "beat=crashes", "OPTIONAL": "beat"})

    tree.wait_ready()

    assert "beat" not in {record["child"] for record in tree.logged("child_ready")}


def test_a_child_that_refuses_takes_the_tree_down(start_tree: TreeStart) -> None:
    tree = start_tree(environ={"MODES": "writer=refuses"})

    assert tree.process.wait(60) == exit_codes.REFUSED
    assert tree.everybody() == set()
    # It is not started once more, only to be ended.
    assert [record["child"] for record in tree.logged("child_started")].count("writer") == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_stop_drains_web_first_and_the_broker_last(number: signal.Signals, start_tree: TreeStart) -> None:
    tree = start_tree()
    tree.wait_ready()

    tree.process.send_signal(number)

    assert tree.process.wait(60) == exit_codes.OK
    assert _notes(tree, "order") == ["web", "beat", "writer"]
    assert tree.logged("child_ended")[-1]["child"] == "broker"
    assert tree.logged("child_ended")[-1]["code"] == 0
    assert tree.everybody() == set()


def test_a_child_that_will_not_end_is_killed(start_tree: TreeStart) -> None:
    tree = start_tree(environ={"MODES": "web=stubborn"})
    tree.wait_ready()

    tree.process.terminate()

    assert tree.process.wait(60) == exit_codes.OK
    assert [record["child"] for record in tree.logged("child_killed")] == ["web"]
    assert tree.everybody() == set()


def test_a_second_request_to_stop_does_not_wait(start_tree: TreeStart) -> None:
    tree = start_tree(environ={"MODES": "web=stubborn", "STOP_SECONDS": "25"})
    tree.wait_ready()

    tree.process.terminate()
    wait_until(lambda: tree.logged("tree_stopping"))
    tree.process.terminate()

    assert tree.process.wait(60) == exit_codes.OK
    assert tree.everybody() == set()


def test_a_second_start_on_the_same_directory_names_the_first(start_tree: TreeStart) -> None:
    tree = start_tree()
    tree.wait_ready()
    before = tree.pids

    second = start_tree()
    _, complaint = second.process.communicate(timeout=60)

    assert second.process.returncode == exit_codes.NOT_ALONE
    assert f"process {tree.process.pid}" in complaint
    assert "tests.stack.tiny_tree" in complaint
    assert tree.pids == before


def test_a_leftover_of_an_earlier_start_is_ended(start_tree: TreeStart) -> None:
    tree = start_tree()
    tree.wait_ready()
    tree.process.terminate()
    tree.process.wait(60)
    environ = {**os.environ, **tree.settings.environment()}
    waits = "import time; time.sleep(60)"
    leftover = subprocess.Popen([sys.executable, "-c", waits], env=environ, start_new_session=True)
    stranger = subprocess.Popen([sys.executable, "-c", waits], start_new_session=True)
    try:
        Roster(tree.settings.run_dir).write([("web", leftover.pid), ("beat", stranger.pid)])

        start_tree().wait_ready()

        assert leftover.wait(60) == -signal.SIGKILL
        assert stranger.poll() is None
    finally:
        for process in (leftover, stranger):
            process.kill()
            process.wait()


def test_a_port_that_is_taken_is_named(start_tree: TreeStart) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        taken = holder.getsockname()[1]
        tree = start_tree(environ={"MEMORYD_PORT": str(taken)})
        _, complaint = tree.process.communicate(timeout=60)

    assert tree.process.returncode == exit_codes.UNAVAILABLE
    assert f"port {taken}" in complaint


def test_a_first_start_that_cannot_have_its_port_makes_no_data_directory(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        taken = holder.getsockname()[1]
        environ = {**os.environ, "MEMORYD_DATA_DIR": str(data), "MEMORYD_PORT": str(taken)}
        run = subprocess.run(
            [sys.executable, "-m", "tests.stack.tiny_tree"],
            env=environ,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            cwd=ROOT,
        )

    assert run.returncode == exit_codes.UNAVAILABLE
    assert f"port {taken}" in run.stderr
    assert not data.exists()
