"""`kill -9` in the middle of batches: each command takes effect exactly once, in order."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from memory_core.store.database import open_writer
from tests.store.databases import new_writer
from tests.writer.kill_child import BATCH

pytestmark = pytest.mark.kills

ROOT = Path(__file__).parents[2]
COMMANDS = 4_000
KILLS = 10


def run_under_kills(directory: Path, mutant: str, seed: int) -> tuple[list[str], int]:
    """What took effect, and how many kills hit a batch under way."""
    new_writer(directory).close()
    chance = random.Random(seed)
    hits = 0
    while True:
        child = subprocess.Popen(
            [sys.executable, "-m", "tests.writer.kill_child", str(directory), str(COMMANDS), mutant],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        assert child.stdout is not None
        kill_at = chance.randint(2, 20) if hits < KILLS else None
        last = b""
        for lines, line in enumerate(child.stdout, start=1):
            last = line
            if kill_at is not None and lines >= kill_at and not line.startswith(b"end"):
                child.kill()
                break
        # What it still said before the kill reached it.
        last = (child.stdout.read().splitlines() or [last])[-1]
        child.stdout.close()
        child.wait()
        if last.startswith(b"done"):
            break
        if last.startswith((b"begin", b"commit")):
            hits += 1
            sys.stdout.write(
                f"seed {seed}: kill {hits} with {BATCH} commands in flight ({last.decode().strip()})\n"
            )
        assert child.returncode == -9, "it ended by itself"
    connection = open_writer(directory / "memory.sqlite")
    assert connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
    found = connection.execute("SELECT json_extract(detail, '$.text') FROM audit_log ORDER BY seq").fetchall()
    return [row[0] for row in found], hits


EVERY_ONE = [str(n) for n in range(COMMANDS)]


def test_each_command_takes_effect_exactly_once_and_in_order(tmp_path):
    found, hits = run_under_kills(tmp_path, "none", seed=random.randrange(10_000))

    assert hits >= KILLS
    assert found == EVERY_ONE


@pytest.mark.parametrize("mutant", ["no_id_table", "delete_first"])
def test_the_mutant_is_caught(tmp_path, mutant):
    found, _ = run_under_kills(tmp_path, mutant, seed=7)

    assert found != EVERY_ONE
