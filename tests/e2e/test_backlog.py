"""A writer that stands still: after the age mark everything is refused, and what was refused is kept nowhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.ledger import Answered, Ledger, Load
from tests.e2e.oracle import complaints
from tests.e2e.running import Running, wait_until

pytestmark = pytest.mark.stack


def test_what_is_refused_while_the_writer_stands_still_is_stored_nowhere(tmp_path: Path):
    ledger = Ledger()
    with Running(tmp_path) as memoryd:
        with memoryd.stopped("writer"), Load(memoryd, seed=1, ledger=ledger, patient=False):
            wait_until(lambda: ledger.statuses.get(429, 0) >= 20, saying="it refuses")
        said = complaints(memoryd, ledger)

    assert not said
    assert ledger.accepted(ledger.events)
    assert Answered.REFUSED in ledger.events.values()


def test_what_is_sent_again_after_a_refusal_is_stored_once(tmp_path: Path):
    ledger = Ledger()
    with Running(tmp_path) as memoryd:
        with Load(memoryd, seed=2, ledger=ledger, pages_per_second=0, patient=True):
            with memoryd.stopped("writer"):
                wait_until(lambda: ledger.statuses.get(429, 0) >= 5, saying="it refuses")
            wait_until(lambda: memoryd.waiting() == 0, saying="it goes on")
        said = complaints(memoryd, ledger)

    assert not said
    assert not ledger.unsettled(ledger.events)
