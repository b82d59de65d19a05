"""A disk that fills under the writer: it stops, loses nothing, and goes on by itself when there is room."""

from __future__ import annotations

import json
import random
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.ledger import Ledger
from tests.e2e.oracle import complaints, file_complaints, is_drained, is_quiet, stored_events
from tests.e2e.running import Running, wait_until
from tests.faults.disks import Filler, small_disk
from tests.queue.broker import Broker

pytestmark = pytest.mark.stack

BATCH, BATCHES = 10, 30
#: Room for what a read that was waiting brings (one page or one lot of events), not for the backlog behind it.
LEFT_BYTES = 1024 * 1024
#: Less than any batch takes.
NO_BYTES = 100 * 1024


@pytest.fixture(params=["embedded", "elsewhere"])
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[dict[str, str]]:
    """The settings of a broker on the same small disk, or of one whose disk has room when ours is full."""
    if request.param == "embedded":
        yield {}
        return
    (tmp_path / "broker").mkdir()
    started = Broker(tmp_path / "broker")
    started.start()
    yield {"MEMORYD_BROKER_URL": started.url}
    started.close()


def test_a_full_disk_stops_the_drain_loses_nothing_and_goes_on_with_room(
    tmp_path: Path, broker: dict[str, str]
):
    ledger = Ledger()
    with (
        small_disk(tmp_path / "disk", mib=96) as disk,
        Running(
            tmp_path / "home",
            data_dir=disk / "data",
            environ=broker,
            conditions=("small_cache", "long_batches"),
        ) as memoryd,
    ):
        filler = Filler(disk)
        send_events(memoryd, ledger, first=0)
        wait_until(lambda: is_quiet(memoryd), saying="the first events are stored")
        with memoryd.stopped("writer"):
            writers = [write_page(memoryd, ledger, n) for n in range(6)]
            for n in range(1, BATCHES):
                send_events(memoryd, ledger, first=n * BATCH)
                writers.append(write_page(memoryd, ledger, n + 6))
            filler.fill(leave_bytes=LEFT_BYTES)
        wait_until(
            lambda: writer_state(memoryd) == "stopped" or is_drained(memoryd),
            saying="the writer stops",
        )
        with memoryd.stopped("writer"):
            state = writer_state(memoryd)
            in_mid_state = file_complaints(memoryd.data_dir)
            stored = stored_events(memoryd.data_dir)
            # What the writer tidied away made room; now there is none again.
            filler.fill(leave_bytes=NO_BYTES)
            wait_until(lambda: sees_full_disk(memoryd), saying="the gate sees the full disk")
            late = send_events(memoryd, ledger, first=10_000)
            readable = memoryd.request("GET", "/api/v1/sessions?project=full")
            found = memoryd.tool("memory_query", query="evt0x0x3", project="full")

        filler.give_back()
        for thread in writers:
            thread.join(60)
        wait_until(lambda: is_quiet(memoryd), saying="the writer goes on")
        after = send_events(memoryd, ledger, first=20_000)
        said = complaints(memoryd, ledger)

    assert not in_mid_state
    assert not said
    assert state == "stopped"
    # The fault was met where it hurts: some commands of a batch were applied and not committed.
    assert any(0 < applied < commands for applied, commands in undone_batches(memoryd))
    assert len(stored) < BATCHES * BATCH
    assert late == 429
    assert readable[0] == 200
    assert found["hits"] or found["raw_hits"]
    assert after == 202
    assert len(ledger.accepted(ledger.events)) == (BATCHES + 1) * BATCH


def send_events(memoryd: Running, ledger: Ledger, *, first: int) -> int:
    """A batch of events with many different words; the status of the whole batch."""
    chance = random.Random(first)
    items: list[dict[str, Any]] = []
    markers = [f"evt0x0x{first + n}" for n in range(BATCH)]
    for marker in markers:
        words = " ".join(f"{chance.randrange(1 << 32):08x}" for _ in range(500))
        body = {"session_id": "full", "cwd": "/srv/full", "prompt": f"{marker} {words}"}
        query = f"agent=claude-code&event=UserPromptSubmit&ingest_key={marker}"
        items.append({"url": f"/hook?{query}", "body": body})
    answer = memoryd.request("POST", "/hook/batch", items)
    for marker in markers:
        ledger.ask(ledger.events, marker, lambda: answer)
    return answer[0]


def write_page(memoryd: Running, ledger: Ledger, number: int) -> threading.Thread:
    """In a thread: who waits for the answer must not keep the disk from filling."""
    marker = f"page0x{number}"
    given = {"path": f"notes/{number % 8}.md", "body": f"# {marker}\n\nA few words.", "project": "full"}

    def write() -> None:
        ledger.ask(
            ledger.pages,
            marker,
            lambda: memoryd.request("POST", "/api/v1/tools/memory_write_page", given, seconds=60),
        )

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    return thread


def sees_full_disk(memoryd: Running) -> bool:
    """Whether the gate's own look at the disk says so; that the writer is stopped is another check."""
    told = memoryd.request("GET", "/readyz", port=memoryd.port + 1)[1]
    return told["checks"]["disk"] != "ok"


def undone_batches(memoryd: Running) -> list[tuple[int, int]]:
    """Of each batch that the disk ended: how many of its commands were applied by then, and how many it had."""
    said = re.findall(r"a batch of (\d+) commands was undone after (\d+) of them", memoryd.terminal())
    return [(int(applied), int(commands)) for commands, applied in said]


def writer_state(memoryd: Running) -> str:
    return json.loads((memoryd.data_dir / "run" / "writer.metrics.json").read_bytes())["state"]
