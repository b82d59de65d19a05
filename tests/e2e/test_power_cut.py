"""A power failure under load: what was acknowledged before it is there after it."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.ledger import Ledger, Load, settle
from tests.e2e.oracle import complaints, file_complaints, integrity_of
from tests.e2e.running import Running
from tests.faults.disks import PowerDisk

pytestmark = pytest.mark.stack


@dataclass(frozen=True, kw_only=True)
class Cut:
    """After so many seconds of load; `is_held`: the writer stood still for the last one, so that the broker alone has what was accepted."""

    seconds: float
    is_held: bool


#: The first meets directories and files that were made a moment ago.
CUTS = (Cut(seconds=0.5, is_held=True), Cut(seconds=3.0, is_held=False))


def test_no_acknowledged_event_is_lost_when_the_power_goes(tmp_path: Path):
    """The book of answers lies on another disk (in this process); the whole data directory loses its power."""
    ledger = Ledger()
    accepted: list[int] = []
    with PowerDisk(tmp_path / "disk.img", tmp_path / "disk") as disk:
        # What is mounted after a cut may have another device number, where somebody else took a loop device meanwhile.
        named = {"MEMORYD_MACHINE": "with-a-disk-of-its-own"}
        memoryd = Running(tmp_path / "home", data_dir=disk.folder / "data", environ=named)
        try:
            for number, cut in enumerate(CUTS):
                memoryd.start()
                with ExitStack() as dark:
                    with Load(memoryd, seed=number, ledger=ledger, patient=False):
                        settle(cut.seconds)
                        if cut.is_held:
                            dark.enter_context(memoryd.stopped("writer"))
                            settle(1.0)
                        dark.enter_context(ledger.deaf())
                        disk.cut()
                        memoryd.kill_all()
                    accepted.append(len(ledger.accepted(ledger.events)))
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
