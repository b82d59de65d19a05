"""Only one writer: a second one is refused, a stale one writes nothing, and a copy does not touch the original."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.ledger import Ledger
from tests.e2e.oracle import complaints, is_quiet, stored_events
from tests.e2e.running import Running, is_alive, send, wait_until
from tests.faults.preload import SlowDisk, preloaded
from tests.queue.broker import Broker
from workers import exit_codes

pytestmark = pytest.mark.stack


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    """A broker that more than one data directory may use."""
    (tmp_path / "broker").mkdir()
    started = Broker(tmp_path / "broker")
    started.start()
    yield started
    started.close()


def start_writer(memoryd: Running, **environ: str) -> subprocess.Popen[str]:
    """A writer beside the one of the tree, in the same environment and `environ`."""
    return subprocess.Popen(
        [sys.executable, "-m", "workers.writer"],
        env={**memoryd.environ, **environ},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def prompt(memoryd: Running, ledger: Ledger, marker: str) -> int:
    body = {"session_id": "two", "cwd": "/srv/two", "prompt": f"{marker} is what was said"}
    query = f"&ingest_key={marker}"
    answers: list[int] = []

    def ask() -> tuple[int, object]:
        answers.append(memoryd.hook("UserPromptSubmit", query=query, **body)[0])
        return answers[0], None

    ledger.ask(ledger.events, marker, ask)
    return answers[0]


def test_a_second_writer_is_refused_with_the_holders_pid(tmp_path: Path):
    ledger = Ledger()
    with Running(tmp_path) as memoryd:
        (first,) = memoryd.pids()["writer"]
        second = start_writer(memoryd)
        said, _ = second.communicate(timeout=60)
        prompt(memoryd, ledger, "evt0x0x1")
        found = complaints(memoryd, ledger)

    assert second.returncode == exit_codes.NOT_ALONE
    assert str(first) in said
    assert not found


def test_a_disk_whose_locks_lie_is_refused(tmp_path: Path):
    liar = preloaded(tmp_path / "faults", locks="lie")
    memoryd = Running(tmp_path, environ=liar).start(ready=False)
    try:
        assert memoryd.process is not None
        code = memoryd.process.wait(60)
        logs = "".join(path.read_text() for path in (memoryd.data_dir / "logs").iterdir())
    finally:
        memoryd.stop()

    assert code == exit_codes.REFUSED
    assert "do not keep a second process out" in logs


def test_a_writer_that_was_stopped_while_another_took_over_writes_nothing(tmp_path: Path):
    """Its locks travel to no other machine, so that both believe to be alone; only the epoch tells."""
    ledger = Ledger()
    with Running(tmp_path, environ=preloaded(tmp_path / "faults", locks="perhost")) as memoryd:
        prompt(memoryd, ledger, "evt0x0x1")
        wait_until(lambda: is_quiet(memoryd), saying="the first event is stored")
        (stale,) = memoryd.pids()["writer"]
        owner = owner_of(memoryd)
        disk = SlowDisk(tmp_path / "slow")
        disk.set(300)
        with memoryd.stopped("supervisor"):
            second = start_writer(memoryd, FAULT_SLOW_FILE=str(disk.file))
            try:
                wait_until(disk.is_busy, saying="the second one writes its epoch")
                # Stopped for so short a time that it still trusts its connection to the broker afterwards.
                os.kill(stale, signal.SIGSTOP)
                disk.set(0)
                wait_until(lambda: owner_of(memoryd) != owner, saying="the second took over")
                os.kill(second.pid, signal.SIGSTOP)
                answer = prompt(memoryd, ledger, "evt0x0x2")
                os.kill(stale, signal.SIGCONT)
                wait_until(
                    lambda: not is_alive(stale) or "evt0x0x2" in stored_events(memoryd.data_dir),
                    saying="the stale writer ends",
                )
                stored = stored_events(memoryd.data_dir)
                os.kill(second.pid, signal.SIGCONT)
                wait_until(lambda: is_quiet(memoryd), saying="the second writer goes on")
            finally:
                send([second.pid], signal.SIGCONT)
                send([second.pid], signal.SIGTERM)
                second.communicate(timeout=60)
        found = complaints(memoryd, ledger)

    assert answer == 202
    assert "evt0x0x2" not in stored, "a stale writer wrote"
    assert not found


def test_a_copy_on_the_same_broker_touches_nothing_of_the_original(tmp_path: Path, broker: Broker):
    ledger, url = Ledger(), {"MEMORYD_BROKER_URL": broker.url}
    with Running(tmp_path / "first", environ=url) as memoryd:
        prompt(memoryd, ledger, "evt0x0x1")
        wait_until(lambda: is_quiet(memoryd), saying="the event is stored")
        before = owner_of(memoryd)
        copy = Running(tmp_path / "copy", environ=url)
        shutil.copytree(memoryd.data_dir, copy.data_dir, symlinks=True, ignore=sockets)
        copy.start(ready=False)
        try:
            assert copy.process is not None
            code = copy.process.wait(60)
        finally:
            copy.stop()
        after = owner_of(memoryd)
        prompt(memoryd, ledger, "evt0x0x2")
        found = complaints(memoryd, ledger)

        with Running(tmp_path / "copy", environ={**url, "MEMORYD_NEW_INSTALL": "1"}) as told:
            own = Ledger(events=dict(ledger.events))
            own.events.pop("evt0x0x2")
            prompt(told, own, "evt0x0x3")
            found += complaints(told, own)
            names = (memoryd.keys.commands, told.keys.commands)
        prompt(memoryd, ledger, "evt0x0x4")
        found += complaints(memoryd, ledger)

    assert code == exit_codes.REFUSED
    assert before == after
    assert names[0] != names[1]
    assert not found


def sockets(folder: str, names: list[str]) -> list[str]:
    """What no copy of a directory can hold."""
    return [name for name in names if (Path(folder) / name).is_socket()]


def owner_of(memoryd: Running) -> bytes:
    with memoryd.broker() as client:
        return client.get(memoryd.keys.owner)
