"""The writer's memory does not grow with what it has written."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.oracle import is_quiet
from tests.e2e.running import Running, wait_until

pytestmark = pytest.mark.stack

EVENTS, BATCH = 20_000, 200
#: Larger events first: after them the database's cache (16 MiB) is full and grows no more.
WARM_UP, WARM_UP_WORDS, WORDS = 4_000, 900, 40
GROWTH_MAX_BYTES = 3 * 1024 * 1024


def test_the_writer_does_not_grow_over_many_events(tmp_path: Path):
    with Running(tmp_path, conditions=["patient"]) as memoryd:
        send_events(memoryd, 0, WARM_UP, WARM_UP_WORDS)
        (writer,) = memoryd.pids()["writer"]
        before = resident_bytes(writer)
        send_events(memoryd, WARM_UP, EVENTS, WORDS)
        after = resident_bytes(writer)
        same = memoryd.pids()["writer"]

    assert same == [writer]
    assert after - before < GROWTH_MAX_BYTES, f"{before} → {after} bytes over {EVENTS - WARM_UP} events"


def send_events(memoryd: Running, first: int, last: int, words: int) -> None:
    """One after another in batches, until all of them are stored."""
    for start in range(first, last, BATCH):
        items = [
            {
                "url": f"/hook?agent=claude-code&event=UserPromptSubmit&ingest_key=m{number}",
                "body": {
                    "session_id": f"s{number // 500}",
                    "cwd": "/srv/m",
                    "prompt": f"number {number} " + "word " * words,
                },
            }
            for number in range(start, start + BATCH)
        ]
        wait_until(
            lambda given=items: memoryd.request("POST", "/hook/batch", given, seconds=30)[0] == 202,
            saying="the batch is taken",
        )
    wait_until(lambda: is_quiet(memoryd), saying="all is stored")


def resident_bytes(pid: int) -> int:
    line = next(
        text for text in Path(f"/proc/{pid}/status").read_text().splitlines() if text.startswith("VmRSS")
    )
    return int(line.split()[1]) * 1024
