"""Two agents at work while programs, writer, web, pool and broker are killed every few seconds; the full size is `scripts/chaos --sessions`."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.e2e.durable_soak import CONDITIONS, ENVIRON, Soak
from tests.e2e.running import Running

pytestmark = [pytest.mark.stack, pytest.mark.kills]


def test_what_two_agents_did_under_kills_is_what_their_sessions_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORYD_HOST_ID", ENVIRON["MEMORYD_HOST_ID"])
    seed = random.randrange(100_000)
    with Running(tmp_path / "home", environ=ENVIRON, conditions=CONDITIONS) as memoryd:
        soak = Soak(memoryd, tmp_path / "agents", seed, turns=20, kills_min=5, seconds_max=200)
        complaints = soak.run()
    assert not complaints, (seed, soak.kills, complaints)
    assert soak.kills["agent"], (seed, soak.kills)
    assert sum(soak.kills.values()) >= 5, (seed, soak.kills)
