"""Kill -9 of every process under load: what was accepted takes effect exactly once, whatever dies when."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from tests.e2e.kills import Storm
from tests.e2e.running import Running
from tests.faults.preload import preloaded

pytestmark = pytest.mark.kills


def seed() -> int:
    """`MEMORYD_TEST_SEED` repeats a run; the order of kills, though not what they meet, is the same then."""
    return int(os.environ.get("MEMORYD_TEST_SEED") or random.randrange(100_000))


def test_every_accepted_event_takes_effect_once_whatever_is_killed(tmp_path: Path):
    # A commit takes as long as on a slow disk, so that many kills meet one.
    slow = preloaded(tmp_path / "faults", slow_ms=1)
    with Running(tmp_path, environ=slow) as memoryd:
        found = Storm(memoryd, seed()).run(12)

    assert not found
