"""Deaths at a known step of a commit, made certain by a disk that is slow for as long as the test wants."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from tests.e2e.ledger import Ledger
from tests.e2e.oracle import complaints, is_quiet, stored_events
from tests.e2e.running import Running, wait_until
from tests.faults.preload import SlowDisk, preloaded

pytestmark = pytest.mark.stack


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Running, SlowDisk, Ledger]]:
    home = tmp_path_factory.mktemp("steps")
    disk = SlowDisk(home / "slow")
    disk.set(0)
    faults = preloaded(home / "faults", slow_file=str(home / "slow"))
    with Running(home / "home", environ=faults) as memoryd:
        yield memoryd, disk, Ledger()


def prompt(memoryd: Running, ledger: Ledger, marker: str) -> None:
    body = {"session_id": "steps", "cwd": "/srv/steps", "prompt": f"{marker} was said"}
    ledger.ask(
        ledger.events,
        marker,
        lambda: memoryd.hook("UserPromptSubmit", query=f"&ingest_key={marker}", **body),
    )


def test_a_writer_killed_in_the_middle_of_a_commit_loses_nothing(stack: tuple[Running, SlowDisk, Ledger]):
    memoryd, disk, ledger = stack
    disk.set(300)
    prompt(memoryd, ledger, "evt0x0x1")
    wait_until(disk.is_busy, saying="a commit is under way")

    memoryd.kill("writer")
    stored = stored_events(memoryd.data_dir)
    disk.set(0)

    assert not complaints(memoryd, ledger)
    assert "evt0x0x1" not in stored


def test_a_broker_that_dies_between_commit_and_deletion_repeats_nothing(
    stack: tuple[Running, SlowDisk, Ledger],
):
    memoryd, disk, ledger = stack
    disk.set(100)
    prompt(memoryd, ledger, "evt0x0x2")
    wait_until(disk.is_busy, saying="a commit is under way")
    (broker,) = memoryd.kill("broker", signal.SIGSTOP)
    disk.set(0)
    wait_until(lambda: "evt0x0x2" in stored_events(memoryd.data_dir), saying="it is committed")

    os.kill(broker, signal.SIGKILL)
    wait_until(lambda: is_quiet(memoryd), saying="the entry is gone")

    assert not complaints(memoryd, ledger)
