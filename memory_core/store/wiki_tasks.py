"""Work on the wiki as a whole that somebody asked for: at most one at a time is open."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import bindparam, insert, select, update

from memory_core.store.statement import Statement
from memory_core.store.tables_wiki import wiki_tasks
from memory_core.store.transaction import Reading, Transaction

REINDEX = "reindex"
HEAL = "heal"


@dataclass(frozen=True, kw_only=True)
class WikiTask:
    """`options` are those of its kind, `counts` what it has done so far."""

    seq: int
    kind: str
    options: Mapping[str, Any]
    counts: Mapping[str, int]
    started_at: int
    finished_at: int | None


_NEWEST = Statement(select(wiki_tasks).order_by(wiki_tasks.c.seq.desc()).limit(1))
_ADD = Statement(
    insert(wiki_tasks).values(
        kind=bindparam("kind"),
        options=bindparam("options"),
        principal=bindparam("principal"),
        started_at=bindparam("now"),
        counts=bindparam("counts"),
    )
)
_COUNT = Statement(
    update(wiki_tasks)
    .where(wiki_tasks.c.seq == bindparam("task"))
    .values(counts=bindparam("new_counts"), finished_at=bindparam("end"))
)


def newest(reading: Reading) -> WikiTask | None:
    """The task that was asked for last, finished or not."""
    row = reading.row(_NEWEST)
    if row is None:
        return None
    return WikiTask(
        seq=row["seq"],
        kind=row["kind"],
        options=json.loads(row["options"]),
        counts=json.loads(row["counts"]),
        started_at=row["started_at"],
        finished_at=row["finished_at"],
    )


def open_task(reading: Reading) -> WikiTask | None:
    task = newest(reading)
    return task if task is not None and task.finished_at is None else None


def begin(tx: Transaction, kind: str, options: Mapping[str, Any]) -> None:
    tx.run(
        _ADD,
        kind=kind,
        options=json.dumps(options),
        principal=tx.principal,
        now=tx.now,
        counts=json.dumps({}),
    )


def count(tx: Transaction, task: WikiTask, counts: Mapping[str, int], *, is_finished: bool = False) -> None:
    """Add to what a task has done, and end it when it has done everything."""
    total = {name: task.counts.get(name, 0) + counts.get(name, 0) for name in {*task.counts, *counts}}
    tx.run(
        _COUNT,
        task=task.seq,
        new_counts=json.dumps(total, sort_keys=True),
        end=tx.now if is_finished else None,
    )
