"""Kill -9 of hooks and of their drain at any step: what a hook reported as kept is stored once, the rest once or not at all."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.e2e.hooking import HookClient
from tests.e2e.ledger import settle
from tests.e2e.oracle import is_quiet, stored_events
from tests.e2e.running import Running, send, wait_until
from tests.e2e.test_kills import seed

pytestmark = pytest.mark.kills

HOOKS = 40
say = print


def test_every_event_that_a_hook_kept_is_stored_once_whoever_is_killed(tmp_path: Path):
    chance = random.Random(number := seed())
    say(f"seed {number}")
    with Running(tmp_path / "server") as memoryd:
        laptop = HookClient(memoryd, tmp_path / "laptop")
        kept, killed = storm(laptop, chance)
        send(laptop.pids(), signal.SIGKILL)
        torn = adopt_orphans(Path(laptop.settings.spool_dir))
        one_more(laptop)
        wait_until(lambda: not laptop.spool.names(), saying="the drain has delivered everything")
        wait_until(lambda: is_quiet(memoryd), saying="all is stored")
        stored = stored_events(memoryd.data_dir)
        send(laptop.pids(), signal.SIGTERM)
        left = [path.name for path in Path(laptop.settings.spool_dir).iterdir()]

    say(f"{len(kept)} hooks ended by themselves, {len(killed)} were killed, {torn} left a draft")
    assert kept
    assert killed
    assert {marker: stored.get(marker) for marker in kept} == dict.fromkeys(kept, 1)
    assert all(stored.get(marker, 0) <= 1 for marker in killed)
    assert not [name for name in left if name.endswith((".json", ".tmp"))]
    assert not laptop.spool.rejected()


def storm(laptop: HookClient, chance: random.Random) -> tuple[list[str], list[str]]:
    """Markers of hooks that ended with code 0, and of those that were killed: about every second one."""
    kept: list[str] = []
    killed: list[str] = []
    #: As long as the first one takes, on a machine as crowded as this one is.
    usual_seconds = 0.0
    for number in range(HOOKS):
        marker = f"evt0x0x{number}"
        given = {"session_id": "shim", "cwd": "/srv/shim", "prompt": f"{marker} {'word ' * 500}"}
        began = time.monotonic()
        hook = laptop.start("UserPromptSubmit", given)
        try:
            code = hook.wait(chance.uniform(0.0, 2 * usual_seconds) if number else 60)
            usual_seconds = usual_seconds or time.monotonic() - began
        except subprocess.TimeoutExpired:
            hook.kill()
            code = hook.wait(60)
        (kept if code == 0 else killed).append(marker)
        assert hook.stderr is not None
        hook.stderr.close()
        if chance.random() < 0.2:
            settle(chance.uniform(0.0, 0.1))
            send(laptop.pids(), signal.SIGKILL)
    return kept, killed


def adopt_orphans(spool: Path) -> int:
    """Make drafts of killed hooks as old as they must be to be taken in."""
    drafts = list(spool.glob(".*.tmp"))
    for draft in drafts:
        os.utime(draft, (0, 0))
    return len(drafts)


def one_more(laptop: HookClient) -> None:
    """A hook that starts the drain again."""
    laptop.hook("UserPromptSubmit", session_id="shim", cwd="/srv/shim", prompt="the last one")
