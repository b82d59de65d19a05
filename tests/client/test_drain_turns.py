"""Drains of several URLs share one spool: none holds up another, and whoever asks for a delivery is told the truth."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from client import detached
from client.drain import deliver, drain
from client.settings import ClientSettings
from client.spool import Entry, Spool
from memory_core import limits
from tests.client.gate_server import Gate, answers, commits, in_turn, key_of

ROOT = Path(__file__).parents[2]
Fill = Callable[..., list[Entry]]
MakeSettings = Callable[..., ClientSettings]


def log_of(settings: ClientSettings) -> str:
    return Path(settings.state_dir, "drain.log").read_text()


def wait_for_log(settings: ClientSettings, text: str) -> None:
    until = time.monotonic() + 20
    while not Path(settings.state_dir, "drain.log").exists() or text not in log_of(settings):
        assert time.monotonic() < until, f"the log never said {text!r}"
        time.sleep(0.01)


def test_a_drain_whose_server_is_away_holds_up_no_drain_of_another_url(
    monkeypatch: pytest.MonkeyPatch, gate: Gate, spool: Spool, spooled: Fill, settings_of: MakeSettings
):
    monkeypatch.setattr(limits, "DRAIN_PAUSE_SECONDS", 30.0)
    wrong = settings_of("http://127.0.0.1:9")
    spooled(8)
    pausing = threading.Thread(target=drain, args=(spool, wrong), kwargs={"seconds": 60})
    pausing.start()
    wait_for_log(wrong, "no answer")

    report = drain(spool, settings_of(gate.url), seconds=20)

    assert (report.delivered, report.is_elsewhere, spool.names()) == (8, False, [])
    assert pausing.is_alive()
    detached.nudge(wrong)
    pausing.join(60)
    assert not pausing.is_alive()


@pytest.fixture
def swallowing() -> Iterator[str]:
    """The URL of a port that answers no packet: its queue of connections is full, and nobody takes one from it."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        waiting: list[socket.socket] = []
        try:
            for _ in range(8):
                one = socket.socket()
                one.setblocking(False)
                waiting.append(one)
                with suppress(BlockingIOError):
                    one.connect(listening.getsockname())
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            for one in waiting:
                one.close()


@pytest.fixture
def silent() -> Iterator[str]:
    """The URL of a port that takes every connection, and whatever is sent, and says nothing."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(64)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


@pytest.fixture(params=["swallowing", "silent"])
def unheard_of(request: pytest.FixtureRequest) -> str:
    """The URL of a server from which no answer comes."""
    return request.getfixturevalue(request.param)


def test_a_drain_that_gets_no_answer_holds_up_no_drain_of_another_url(
    monkeypatch: pytest.MonkeyPatch,
    gate: Gate,
    spool: Spool,
    spooled: Fill,
    settings_of: MakeSettings,
    unheard_of: str,
):
    spooled(8)
    monkeypatch.setattr(limits, "DRAIN_REQUEST_SECONDS", 5.0)
    unheard = threading.Thread(target=drain, args=(spool, settings_of(unheard_of)), kwargs={"seconds": 60})
    unheard.start()

    # Less time than one request of the other may take: who waited for its turn would deliver nothing.
    report = drain(spool, settings_of(gate.url), seconds=3)

    assert (report.delivered, report.is_elsewhere, spool.names()) == (8, False, [])
    assert unheard.is_alive()
    unheard.join(60)
    assert not unheard.is_alive()
    assert "no answer (TimeoutError); 0 kept" in log_of(settings_of(unheard_of))


def test_while_no_answer_comes_the_lock_is_not_taken(
    spool: Spool, spooled: Fill, settings_of: MakeSettings, unheard_of: str
):
    spooled(1)
    seen: list[bool] = []

    def look() -> None:
        lock = detached.try_sending(settings_of())
        seen.append(lock is not None)
        if lock is not None:
            os.close(lock)

    looking = threading.Timer(0.3, look)
    looking.start()
    report = deliver(spool, settings_of(unheard_of), seconds=1)
    looking.join()

    assert seen == [True]
    assert "no answer from" in report.stopped
    assert len(spool.names()) == 1


def test_what_is_too_old_goes_also_while_nobody_is_reached(
    spool: Spool, spooled: Fill, settings_of: MakeSettings
):
    spooled(1, now_us=1_000_000_000)

    drain(spool, settings_of("http://127.0.0.1:9"), seconds=0.2)

    assert spool.names() == []


def test_a_hook_wakes_the_drain_that_pauses_because_nobody_answered(
    monkeypatch: pytest.MonkeyPatch, gate: Gate, spool: Spool, spooled: Fill, settings_of: MakeSettings
):
    monkeypatch.setattr(limits, "DRAIN_PAUSE_SECONDS", 30.0)
    spooled(1)
    gate.behaviour = in_turn(answers(503), commits)
    pausing = threading.Thread(target=drain, args=(spool, settings_of(gate.url)), kwargs={"seconds": 60})
    pausing.start()
    gate.wait_for(1)
    wait_for_log(settings_of(), "answered 503")

    assert not detached.start(settings_of(gate.url))

    pausing.join(60)
    assert not pausing.is_alive()
    assert spool.names() == []


def test_no_hook_cuts_a_pause_that_the_server_asked_for(
    gate: Gate, spool: Spool, spooled: Fill, settings_of: MakeSettings
):
    spooled(1)
    gate.behaviour = in_turn(answers(429, Retry_After="0.5"), commits)
    started = time.monotonic()
    pausing = threading.Thread(target=drain, args=(spool, settings_of(gate.url)), kwargs={"seconds": 60})
    pausing.start()
    gate.wait_for(1)
    while pausing.is_alive() and time.monotonic() - started < 0.4:
        detached.nudge(settings_of(gate.url))
    pausing.join(60)

    assert time.monotonic() - started >= 0.5


def test_a_delivery_that_is_asked_for_goes_beside_a_drain_that_pauses(
    monkeypatch: pytest.MonkeyPatch, gate: Gate, spool: Spool, spooled: Fill, settings_of: MakeSettings
):
    monkeypatch.setattr(limits, "DRAIN_PAUSE_SECONDS", 30.0)
    spooled(3)
    lock = detached.try_lock(settings_of(gate.url))
    assert lock is not None

    report = deliver(spool, settings_of(gate.url), seconds=20)
    os.close(lock)

    assert (report.delivered, report.stopped) == (3, "")


@pytest.mark.parametrize(
    ("url", "why"),
    [("http://127.0.0.1:9", "no answer from"), ("http://127.0.0.1:99999", "URL cannot be used")],
)
def test_a_delivery_that_is_asked_for_says_at_once_why_nothing_is_delivered(
    url: str, why: str, spool: Spool, spooled: Fill, settings_of: MakeSettings
):
    spooled(2)
    report = deliver(spool, settings_of(url), seconds=60)

    assert why in report.stopped
    assert len(spool.names()) == 2


def test_a_delivery_waits_for_a_drain_that_sends(
    gate: Gate, spool: Spool, spooled: Fill, settings_of: MakeSettings
):
    spooled(1)
    lock = detached.try_sending(settings_of("http://127.0.0.1:9"))
    assert lock is not None
    assert deliver(spool, settings_of(gate.url), seconds=0.1).is_elsewhere
    threading.Timer(0.1, os.close, (lock,)).start()

    assert deliver(spool, settings_of(gate.url), seconds=20).delivered == 1


def drained(home: Path, url: str) -> tuple[int, str]:
    """`memoryd hook --drain`: its exit code and what it says."""
    done = subprocess.run(
        [sys.executable, "-m", "client", "hook", "--drain"],
        capture_output=True,
        cwd=ROOT,
        env={"HOME": str(home), "MEMORYD_URL": url, "MEMORYD_TOKEN": "of-the-test"},
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout.decode()


@pytest.mark.parametrize(
    ("url", "code", "why"),
    [
        ("", 0, "2 delivered, 0 set aside, 0 waiting\n"),
        ("http://127.0.0.1:9", 3, "2 waiting: no answer from"),
        ("http://127.0.0.1:99999", 1, "2 waiting: the server's URL cannot be used"),
    ],
)
def test_a_drain_that_is_asked_for_says_what_is_true(
    home: Path, gate: Gate, spooled: Fill, url: str, code: int, why: str
):
    spooled(2)

    ended, said = drained(home, url or gate.url)

    assert (ended, why in said) == (code, True), said


def test_a_token_that_is_not_accepted_is_said_by_the_exit_code(home: Path, gate: Gate, spooled: Fill):
    spooled(1)
    gate.behaviour = answers(401)

    ended, said = drained(home, gate.url)

    assert (ended, "answered 401" in said) == (4, True), said


def test_a_retry_delivers_by_itself(home: Path, gate: Gate, spool: Spool, spooled: Fill):
    (entry,) = spooled(1)
    spool.reject(entry.name, "the server calls it invalid")

    done = subprocess.run(
        [sys.executable, "-m", "client", "spool", "retry", "--all"],
        capture_output=True,
        cwd=ROOT,
        env={"HOME": str(home), "MEMORYD_URL": gate.url, "MEMORYD_TOKEN": "of-the-test"},
        timeout=60,
        check=False,
    )

    assert (done.returncode, b"1 put back" in done.stdout) == (0, True), done
    assert [key_of(item) for item in gate.wait_for(1)] == [entry.key]
