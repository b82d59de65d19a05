"""Memory: of the idle tree, and of the writer while a hundred thousand events pass through it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

from scripts.bench_parts.commands import envelopes_of
from scripts.bench_parts.figures import Result, at_most
from scripts.bench_parts.machine import ROOT
from scripts.bench_parts.parts import Bench, parts
from scripts.bench_parts.stack import Stack
from scripts.bench_parts.texts import Events
from scripts.bench_parts.verify import Sent

EVENT_BYTES = 1_000
IDLE_PSS_MB = at_most(400)
#: The second measure is taken after five times as many events as the first; a leak of 50 bytes an event shows.
GROWTH = at_most(1.1)
_STEP_EVENTS = 2_000
_MB = 1024


@parts.add("memory")
def memory(bench: Bench) -> Result:
    """Idle PSS of the tree, and whether the writer grows with what it has applied."""
    result = Result(part="memory")
    with bench.stack() as stack:
        time.sleep(bench.sizes.idle_seconds)
        result.appendix = _table(stack)
        result.add("idle tree, PSS", _total_pss(result.appendix), "MB", IDLE_PSS_MB)
        pid = stack.pid("writer")
        _feed(bench, stack, bench.sizes.memory_events // 5)
        early = _status(pid, "VmRSS")
        _feed(bench, stack, bench.sizes.memory_events - bench.sizes.memory_events // 5)
        late = _status(pid, "VmRSS")
        result.add(f"writer after {bench.sizes.memory_events // 5:,} events, RSS", early, "MB")
        result.add(f"writer after {bench.sizes.memory_events:,} events, RSS", late, "MB")
        result.add("writer at its peak, RSS", _status(pid, "VmHWM"), "MB")
        result.add("growth of the writer", late / early, "", GROWTH)
        stack.verify(result)
    return result


def _feed(bench: Bench, stack: Stack, count: int) -> None:
    """So many events of one run through the writer queue, as fast as the writer takes them."""
    events = Events(os.urandom(3).hex(), EVENT_BYTES)
    for first in range(0, count, _STEP_EVENTS):
        bench.say(f"memory: {first:,} of {count:,} events")
        stack.append(envelopes_of(events, range(first, min(count, first + _STEP_EVENTS))))
    stack.sent.append(Sent(events=events, count=count))
    stack.wait_drained()


def _table(stack: Stack) -> str:
    command = [sys.executable, str(ROOT / "scripts" / "memory-table"), str(stack.data_dir)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def _total_pss(table: str) -> float:
    cells = [cell.strip(" *") for cell in table.splitlines()[-1].split("|")]
    return float(cells[3])


def _status(pid: int, name: str) -> float:
    """MB of one line of a process's status."""
    text = (Path("/proc") / str(pid) / "status").read_text()
    found = re.search(rf"^{name}:\s+(\d+) kB$", text, re.MULTILINE)
    assert found is not None, name
    return int(found[1]) / _MB
