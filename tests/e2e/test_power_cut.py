"""A power failure under load: what was acknowledged before it is there after it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.ledger import Ledger, Load, settle
from tests.e2e.oracle import complaints, file_complaints, integrity_of
from tests.e2e.running import Running, is_alive, send, wait_until
from tests.faults.disks import PowerDisk

pytestmark = [pytest.mark.storm, pytest.mark.stack]

CUTS = 2


@pytest.mark.timeout(300)
def test_no_acknowledged_event_is_lost_when_the_power_goes(tmp_path: Path):
    """The book of answers lies on another disk (in this process); the whole data directory loses its power."""
    ledger = Ledger()
    accepted: list[int] = []
    with PowerDisk(tmp_path / "disk.img", tmp_path / "disk") as disk:
        memoryd = Running(tmp_path / "home", data_dir=disk.folder / "data")
        try:
            for number in range(CUTS):
                memoryd.start()
                with Load(memoryd, seed=number, ledger=ledger, patient=False):
                    settle(3.0)
                    disk.cut()
                    everyone = [pid for group in memoryd.pids().values() for pid in group]
                    send(everyone, 9)
                accepted.append(len(ledger.accepted(ledger.events)))
                wait_until(
                    lambda left=everyone: not any(is_alive(pid) for pid in left),
                    seconds=10,
                    saying="all ended",
                )
                assert memoryd.process is not None
                memoryd.process.wait(10)
                disk.unmount()
                disk.mount()
                # Before anybody repairs anything.
                assert not file_complaints(memoryd.data_dir)
                assert not integrity_of(memoryd.data_dir)
            memoryd.start()
            said = complaints(memoryd, ledger)
        finally:
            memoryd.stop()

    assert not said
    assert 0 < accepted[0] < accepted[1]
