"""`memoryd up` with everything in it: real broker, writer, gate, pool worker and beat."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from memory_core import config
from tests.stack.conftest import ROOT, ForeignStart, RunningTree, TreeStart, is_alive, wait_until
from workers import exit_codes
from workers.celery_app import make_app

pytestmark = pytest.mark.stack

_REAL = "workers.supervisor"


def _up(tree: RunningTree, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `memoryd up` to its end."""
    return subprocess.run(
        [sys.executable, "-m", "client", "up", "--data-dir", str(tree.settings.data_dir), *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_one_command_starts_everything_and_a_stop_leaves_nothing(start_tree: TreeStart) -> None:
    tree = start_tree("client", "up", first=True)
    said = tree.wait_ready()

    assert said["pid"] == tree.process.pid
    assert set(tree.pids) == {"broker", "writer", "web", "pool", "beat"}
    tree.prompt("the first thing")

    tree.process.send_signal(signal.SIGINT)

    assert tree.process.wait(60) == exit_codes.OK
    assert {record["child"]: record["code"] for record in tree.logged("child_ended")} == dict.fromkeys(
        ("broker", "writer", "web", "pool", "beat"), 0
    )
    assert tree.everybody() == set()


def test_a_second_up_is_refused_with_the_pid_and_the_command_of_the_first(start_tree: TreeStart) -> None:
    tree = start_tree(_REAL)
    tree.wait_ready()

    second = _up(tree)

    assert second.returncode == exit_codes.NOT_ALONE
    assert f"process {tree.process.pid}" in second.stderr
    assert _REAL in second.stderr
    tree.prompt("still here")


@pytest.mark.kills
def test_whatever_is_killed_it_serves_again_without_much_of_a_pause(start_tree: TreeStart) -> None:
    tree = start_tree(_REAL)
    tree.wait_ready()

    for victims in (
        ("broker",),
        ("writer",),
        ("web",),
        ("pool", "beat"),
        ("broker", "writer", "web", "pool", "beat"),
    ):
        before = tree.pids
        for victim in victims:
            os.kill(before[victim], signal.SIGKILL)
        ends = len(tree.logged("child_ended"))
        tree.prompt(f"after {victims}")
        pauses = [(end["child"], end["pause_seconds"]) for end in tree.logged("child_ended")[ends:]]
        assert all(seconds <= 1.0 for _, seconds in pauses), (victims, pauses)
        wait_until(lambda: set(tree.pids) == set(before) and all(map(is_alive, tree.pids.values())))  # noqa: B023


@pytest.mark.kills
def test_nobody_outlives_the_killed_supervisor_of_the_real_tree(start_tree: TreeStart) -> None:
    tree = start_tree(_REAL)
    tree.wait_ready()
    everybody = tree.everybody()
    assert len(everybody) >= 6  # five children, and the gate's own worker

    tree.process.kill()
    tree.process.wait()

    wait_until(lambda: not any(is_alive(pid) for pid in everybody))
    again = start_tree(_REAL)
    again.wait_ready()
    again.prompt("after the kill")


def test_the_drain_is_seen_by_who_listens_to_celery_events(start_tree: TreeStart) -> None:
    tree = start_tree(_REAL)
    tree.wait_ready()
    app = make_app(tree.settings, config.install_id(tree.settings))
    wanted = {("task-received", "writer.drain"), ("task-received", "pool.look"), ("task-succeeded", "")}
    seen: set[tuple[str, str]] = set()

    def note(event: dict[str, object]) -> None:
        seen.add((str(event["type"]), str(event.get("name", ""))))
        receiver.should_stop = wanted <= seen

    with app.connection_for_read() as connection:
        receiver = app.events.Receiver(connection, handlers={"*": note})
        receiver.capture(limit=None, timeout=20, wakeup=False)

    assert wanted <= seen


def test_a_broker_that_is_not_there_starts_nothing(start_tree: TreeStart) -> None:
    tree = start_tree(_REAL, environ={"MEMORYD_BROKER_URL": "redis://127.0.0.1:1/0"})

    assert tree.process.wait(60) == exit_codes.UNAVAILABLE
    assert not (tree.settings.run_dir / "children.json").exists()


def test_a_broker_of_somebody_else_is_used_when_it_keeps_what_is_promised_or_its_weakness_is_accepted(
    start_tree: TreeStart, start_foreign_broker: ForeignStart
) -> None:
    url = start_foreign_broker(appendfsync="everysec")

    refused = start_tree(_REAL, environ={"MEMORYD_BROKER_URL": url})
    assert refused.process.wait(60) == exit_codes.REFUSED
    assert "appendfsync is 'everysec'" in refused.process.communicate()[1]

    weak = start_tree("client", "up", "--broker", url, "--accept-weaker-durability")
    weak.wait_ready()
    assert "broker" not in weak.pids
    weak.prompt("into a weaker broker")
    (void,) = weak.logged("promise_void")
    assert "power cut" in str(void["message"])


def test_a_copied_directory_is_refused_by_name_until_it_is_taken_over(
    start_tree: TreeStart, tmp_path: Path
) -> None:
    first = start_tree(_REAL)
    first.wait_ready()
    first.process.terminate()
    assert first.process.wait(60) == exit_codes.OK
    shutil.copytree(first.settings.data_dir, tmp_path / "copy")

    copy = start_tree(_REAL, data=tmp_path / "copy")
    assert copy.process.wait(60) == exit_codes.REFUSED
    assert "--take-over" in copy.process.communicate()[1]
    assert copy.everybody() == set()

    taken = start_tree("client", "up", "--take-over", data=tmp_path / "copy")
    taken.wait_ready()
    taken.prompt("in the copy")
