"""Retention, in bounded phases: leases that ran out, knowledge, sessions and assets past their time, files that nothing names.

Each slice is one phase, at most some hundred rows, and may be interrupted: the next run begins at the first phase again and finds
what is left. It never touches a session with an unfinished turn, a live lease or an end that was not distilled.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from memory_core import limits
from memory_core.asset_files import AssetFiles
from memory_core.commands.maintenance import ONE_AT_A_TIME, PHASES
from memory_core.config import Settings
from memory_core.domain.job import Again, Done, Job
from memory_core.domain.retention import DAY_US, Retention
from memory_core.errors import Unavailable
from memory_core.job_kind import Applied, Cancelled, JobKind, Tools, register
from memory_core.retention_settings import read_retention
from memory_core.store import assets
from memory_core.store.database import Database
from memory_core.store.transaction import Reading, Transaction

_FIRST = next(iter(PHASES))


@dataclass(frozen=True, kw_only=True)
class Turn:
    """Which phase is next, and behind which file name it goes on."""

    phase: str = _FIRST
    after: str = ""


@dataclass(frozen=True, kw_only=True)
class Slice:
    """The phase, the ages that hold, and what became of the files that were looked at."""

    phase: str
    retention: Retention
    after: str = ""
    files_removed: int = 0
    bytes_removed: int = 0
    #: Files whose bytes are not those of their names: left alone, for a person to look at.
    files_damaged: int = 0


def prepare(_reading: Reading, job: Job) -> Turn:
    cursor = job.cursor or {}
    return Turn(phase=cursor.get("phase", _FIRST), after=cursor.get("after", ""))


def compute(turn: Turn, tools: Tools) -> Slice:
    if tools.data is None:
        raise Unavailable("maintenance runs beside the data directory")
    if tools.cancelled():
        raise Cancelled
    retention = read_retention(tools.data)
    if PHASES.get(turn.phase, None) is None:
        return _collect(tools.data, turn, retention)
    return Slice(phase=turn.phase, retention=retention)


def apply(done: Slice, job: Job, tx: Transaction) -> Applied:
    cursor: Mapping[str, Any] = job.cursor or {}
    counts: dict[str, int] = dict(cursor.get("counts", {}))
    work = PHASES.get(done.phase)
    is_over = not done.after
    if work is not None:
        limit = limits.MAINTENANCE_ROWS
        count = work(tx, done.retention, limit)
        is_over = count == 0 if done.phase in ONE_AT_A_TIME else count < limit
        _add(counts, done.phase, count)
    for name in ("files_removed", "bytes_removed", "files_damaged"):
        _add(counts, name, getattr(done, name))
    phase = _following(done.phase) if is_over else done.phase
    if phase is None:
        return Done(result=counts)
    return Again(cursor={"phase": phase, "after": done.after, "counts": counts})


def _add(counts: dict[str, int], name: str, count: int) -> None:
    if count:
        counts[name] = counts.get(name, 0) + count


def _following(phase: str) -> str | None:
    names = list(PHASES)
    at = names.index(phase) + 1
    return names[at] if at < len(names) else None


def _collect(settings: Settings, turn: Turn, retention: Retention) -> Slice:
    """Remove old files that have no row. Everybody who takes one in is kept out meanwhile; where somebody does, it waits for the next run."""
    files, database = AssetFiles(settings.assets), Database(settings.database)
    now = time.time_ns()
    old = now - retention.asset_days * DAY_US * 1_000
    removed = size = damaged = 0
    after = ""
    try:
        with files.alone() as is_alone:
            if is_alone:
                with database.snapshot() as reading:
                    known = [
                        d for d in files.names(after=turn.after) if assets.size_of(reading, d) is not None
                    ]
                found, after = files.strays(
                    older_than_ns=old,
                    unfinished_older_than_ns=min(old, now - round(limits.ASSET_UNFINISHED_SECONDS * 1e9)),
                    known=known,
                    after=turn.after,
                )
                for stray in found:
                    if stray.is_whole is False:
                        damaged += 1
                    elif files.remove(stray):
                        removed, size = removed + 1, size + stray.size
                if removed:
                    files.sync()
    finally:
        database.close()
    return Slice(
        phase=turn.phase,
        retention=retention,
        after=after,
        files_removed=removed,
        bytes_removed=size,
        files_damaged=damaged,
    )


register(
    JobKind(
        name="maintenance",
        queue="forget",
        input=Turn,
        output=Slice,
        prepare=prepare,
        compute=compute,
        apply=apply,
        schedule="cron 40 3 * * *",
        on_data_host=True,
    )
)
