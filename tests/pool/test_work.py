"""`memoryd work` on a whole server that has no worker of its own: what it does, leaves, says, and hands back."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from client.foreground import became
from client.main import main
from memory_core import bootstrap
from memory_core.domain.job import Failure
from tests.mutants import job_kinds
from tests.pool.conftest import LOADER, ROOT
from tests.pool.one_slot import noted_pid
from tests.pool.whole_stack import Stack
from tests.stack.conftest import is_alive, make_tree, wait_until
from web.parts import build

pytestmark = pytest.mark.stack

#: An hour or a quarter of one may begin in the middle of a test.
_UNSCHEDULED = {
    f"MEMORYD_SCHEDULES__{kind.upper()}": "off"
    for kind in ("idle_sessions", "integrity_audit", "maintenance", "unwritten_sessions")
}
_MUTANTS = {"PYTHONPATH": f"{LOADER}:{ROOT}", "MEMORYD_TEST_MUTANT": "job_kinds"}


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    home = tmp_path_factory.mktemp("work")
    bootstrap.load_commands()
    job_kinds.register()
    with make_tree(home) as start:
        tree = start("workers.supervisor", "--only", "broker,writer,web", environ=_MUTANTS | _UNSCHEDULED)
        tree.wait_ready()
        parts = build(tree.settings)
        yield Stack(tree=tree, parts=parts, home=home)
        parts.line.close()


class At:
    """Somebody at the server's machine, or with nothing but a token at another one."""

    def __init__(self, stack: Stack, home: Path) -> None:
        self._stack, self._home = stack, home

    def start(self, *words: str, on: int = subprocess.PIPE, **environ: str) -> subprocess.Popen[str]:
        settings = self._stack.settings
        return subprocess.Popen(
            [sys.executable, "-m", "client", *words],
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(self._home),
                "PYTHONDONTWRITEBYTECODE": "1",
                "MEMORYD_URL": settings.url,
                "MEMORYD_TOKEN_FILE": str(settings.token_file),
                "MEMORYD_DATA_DIR": str(settings.data_dir),
                **_MUTANTS,
                **environ,
            },
            stdout=on,
            stderr=on,
            text=True,
            start_new_session=True,
        )

    def says(self, *words: str, code: int = 0, **environ: str) -> tuple[str, str]:
        process = self.start(*words, **environ)
        out, err = process.communicate(timeout=60)
        assert process.returncode == code, err
        return out, err

    def asks(self, *words: str, **more: Any) -> Any:
        return json.loads(self.says(*words, "--json", **more)[0])


@pytest.fixture
def at(stack: Stack, tmp_path: Path) -> At:
    return At(stack, tmp_path)


def test_what_is_due_is_listed_done_one_after_the_other_and_told(stack: Stack, at: At) -> None:
    subjects = [*stack.enqueue(text="abc", count=2), *stack.enqueue(kind="probe_inline")]
    subjects += stack.enqueue(kind="probe_data")
    assert "lint: 4 pending" in at.says("jobs", "list")[1]

    out, err = at.says("work")

    lines = [line.split("\t") for line in out.splitlines()]
    assert [line[:2] for line in lines[:-1]] == [
        ["completed", "probe"],
        ["completed", "probe"],
        ["completed", "probe_inline"],
        ["completed", "probe_data"],
    ]
    assert lines[0][4] == "chars 3"
    assert lines[-1] == ["4 jobs done: 4 completed."]
    assert err == ""
    stack.wait_completed(subjects)


def test_a_paused_queue_is_left_alone_and_worked_through_when_it_is_resumed(stack: Stack, at: At) -> None:
    subjects = stack.enqueue()
    at.says("jobs", "pause", "lint")
    assert at.asks("work")["jobs"] == []
    out, err = at.says("work")
    assert (out, "left: lint: 1 pending" in err, "paused by owner" in err) == (
        "Nothing was due.\n",
        True,
        True,
    )

    at.says("jobs", "resume", "lint")
    done = at.asks("work")

    assert [(job["kind"], job["outcome"], job["result"]) for job in done["jobs"]] == [
        ("probe", "completed", {"chars": 0})
    ]
    assert (done["counts"], done["why"]) == ({"completed": 1}, "nothing is due")
    stack.wait_completed(subjects)


def test_one_kind_or_one_queue_is_done_and_the_rest_is_left(stack: Stack, at: At) -> None:
    (lint,), (inline,), (forget,) = (
        stack.enqueue(),
        stack.enqueue(kind="probe_inline"),
        stack.enqueue(kind="probe_forget"),
    )
    assert [job["kind"] for job in at.asks("work", "--kind", "probe_inline")["jobs"]] == ["probe_inline"]
    assert stack.states([lint, inline, forget]).count("pending") == 2

    assert [job["kind"] for job in at.asks("work", "--queue", "forget")["jobs"]] == ["probe_forget"]
    assert stack.states([lint]) == ["pending"]

    at.says("work", code=0)
    stack.wait_completed([lint, inline, forget])


def test_an_unknown_kind_is_refused_with_those_that_there_are(at: At) -> None:
    _, err = at.says("work", "--kind", "nothing", code=78)
    assert "idle_sessions" in err
    assert at.says("work", "--kind", "probe", "--queue", "lint", code=2)[0] == ""


def test_a_job_that_raises_waits_for_its_next_try_and_its_error_is_named(stack: Stack, at: At) -> None:
    (subject,) = stack.enqueue("raise", "not to be told")
    out, err = at.says("work")

    assert out.startswith("to be tried again\tprobe\t")
    assert Failure.CRASHED.sentence in out
    assert "builtins.ValueError at " in err
    assert "not to be told" not in out + err
    at.says("jobs", "cancel", "--kind", "probe", "--yes")
    assert stack.states([subject]) == ["cancelled"]


def test_ctrl_c_hands_the_job_in_hand_back_and_counts_nothing(stack: Stack, at: At, tmp_path: Path) -> None:
    notes, go = tmp_path / "notes", tmp_path / "go"
    (subject,) = stack.enqueue("wait for a file", str(go), str(notes))
    process = at.start("work", "--json")
    computing = noted_pid(notes)

    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)

    done = json.loads(out)
    assert (process.returncode, done["why"], [j["became"] for j in done["jobs"]]) == (
        130,
        "stopped",
        ["handed back"],
    )
    assert stack.states([subject]) == ["pending"]
    assert (stack.column(subject, "failures"), stack.column(subject, "deaths")) == (0, 0)
    wait_until(lambda: not is_alive(computing))
    go.touch()
    at.says("work")
    stack.wait_completed([subject])


def test_a_worker_whose_command_is_killed_ends_with_it(stack: Stack, at: At, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    (subject,) = stack.enqueue("wait for a file", str(tmp_path / "never"), str(notes))
    process = at.start("work")
    computing = noted_pid(notes)

    process.kill()
    process.communicate(timeout=60)

    wait_until(lambda: not is_alive(computing))
    at.says("jobs", "cancel", "--kind", "probe", "--yes")
    assert stack.column(subject, "cancel_asked_at") is not None


def test_elsewhere_a_token_is_enough_and_jobs_that_read_the_data_are_left(
    stack: Stack, at: At, tmp_path: Path
) -> None:
    here, far = stack.enqueue(kind="probe_data"), stack.enqueue(kind="probe_forget")
    there = {"MEMORYD_DATA_DIR": str(tmp_path / "nothing-here")}
    _, err = at.says("work", code=78, **there)
    assert "--token-file" in err

    done = at.asks("work", "--token-file", str(stack.settings.local_pool_token_file), **there)

    assert [job["kind"] for job in done["jobs"]] == ["probe_forget"]
    assert (stack.states(here), stack.states(far)) == (["pending"], ["completed"])
    assert not (tmp_path / "nothing-here").exists()
    at.says("work")
    stack.wait_completed(here)


def test_another_servers_data_directory_is_not_taken_for_this_ones(
    stack: Stack, at: At, tmp_path: Path
) -> None:
    other = tmp_path / "other" / "run"
    other.mkdir(parents=True)
    (other / "pool.token").write_text(stack.settings.local_pool_token_file.read_text())
    (other / "install").write_text("cd" * 16 + "\n")
    _, err = at.says("work", MEMORYD_DATA_DIR=str(other.parent), code=78)
    assert "is not the one of" in err


def test_a_token_that_is_not_accepted_and_a_server_that_is_away_are_one_sentence(
    stack: Stack, at: At, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text("nothing\n")
    _, err = at.says("work", "--token-file", str(tmp_path / "token"), code=78)
    assert len(err.strip().splitlines()) == 1
    assert str(tmp_path / "token") in err
    _, err = at.says("work", MEMORYD_URL="http://127.0.0.1:9", code=3)
    assert len(err.strip().splitlines()) == 1
    assert "memoryd up" in err


def test_without_the_servers_libraries_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "celery" else found(name))
    with pytest.raises(SystemExit) as ended:
        main(["work"])
    assert ended.value.code == 69
    assert "pip install 'memoryd[server]'" in capsys.readouterr().err


def test_the_doctor_tells_jobs_that_no_worker_asks_for(stack: Stack, at: At) -> None:
    (subject,) = stack.enqueue()
    report = json.loads(at.start("doctor", "--json").communicate(timeout=60)[0])
    checks = {check["check"]: check for check in report["checks"]}
    assert checks["pool workers"]["ok"], "it waits for less than a minute"
    at.says("work")
    assert stack.states([subject]) == ["completed"]


@pytest.mark.parametrize(
    ("outcome", "stopping", "after", "word"),
    [
        ("completed", False, {}, "completed"),
        ("pending", False, {"failures": 1, "waits_for": "retry"}, "to be tried again"),
        ("pending", False, {"failures": 0, "waits_for": "budget"}, "waiting again"),
        ("pending", False, {"failures": 0, "waits_for": None}, "going on"),
        ("pending", True, {"failures": 0, "waits_for": None}, "handed back"),
        ("lost", False, {}, "lost to another worker"),
    ],
)
def test_what_a_turn_came_to_is_said_in_words(
    outcome: str, stopping: bool, after: dict[str, Any], word: str
) -> None:
    assert became({"outcome": outcome, "stopping": stopping}, after) == word


def test_on_a_terminal_each_job_is_a_line_that_stays(stack: Stack, at: At) -> None:
    subjects = stack.enqueue(count=2)
    ours, theirs = os.openpty()
    process = at.start("work", on=theirs, TERM="xterm-256color", COLUMNS="120")
    os.close(theirs)
    shown = b""
    try:
        while part := os.read(ours, 65_536):
            shown += part
    except OSError:
        pass  # Linux says so at the end of a terminal
    os.close(ours)

    assert process.wait(60) == 0
    text = shown.decode()
    assert text.count("completed  probe") == 2
    assert "2 jobs done: 2 completed." in text
    stack.wait_completed(subjects)
