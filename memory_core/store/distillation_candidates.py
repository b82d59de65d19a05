"""What a distillation found and has not entered yet."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import bindparam, func, insert, select

from memory_core.store.statement import Statement
from memory_core.store.tables_distillation import distillation_candidates
from memory_core.store.transaction import Reading, Transaction

_c = distillation_candidates.c
_OF_JOB = _c.job_id == bindparam("of_job")
_ADD = Statement(
    insert(distillation_candidates).values(
        {column.name: bindparam(column.name) for column in distillation_candidates.c}
    )
)
#: The size is known from the row's head, without the text.
_SIZES = Statement(
    select(_c.candidate_index, func.octet_length(_c.candidate_json).label("size"))
    .where(_OF_JOB)
    .order_by(_c.candidate_index)
    .limit(bindparam("limit"))
)
_THROUGH = Statement(
    select(_c.candidate_json)
    .where(_OF_JOB, _c.candidate_index <= bindparam("through"))
    .order_by(_c.candidate_index)
)
_FORGET = Statement(distillation_candidates.delete().where(_OF_JOB, _c.candidate_index < bindparam("before")))
_LEFT = Statement(select(_c.candidate_index).where(_OF_JOB).limit(1))


def keep(tx: Transaction, job_id: bytes, candidates: Iterable[Mapping[str, Any]]) -> None:
    """All candidates of a job, numbered from 0."""
    tx.run_many(
        _ADD,
        (
            {
                "job_id": job_id,
                "candidate_index": index,
                "candidate_json": json.dumps(candidate, ensure_ascii=False, separators=(",", ":")),
            }
            for index, candidate in enumerate(candidates)
        ),
    )


def first_ones(read: Reading, job_id: bytes, *, limit: int, max_bytes: int) -> list[Any]:
    """The first of them that are left, as they were given: at most `limit`, and `max_bytes` of JSON, but one at least."""
    through, total = -1, 0
    for row in read.rows(_SIZES, of_job=job_id, limit=limit):
        total += row["size"]
        if through >= 0 and total > max_bytes:
            break
        through = row["candidate_index"]
    return [json.loads(row["candidate_json"]) for row in read.rows(_THROUGH, of_job=job_id, through=through)]


def forget(tx: Transaction, job_id: bytes, *, before: int) -> None:
    """Those with a lower number were entered."""
    tx.run(_FORGET, of_job=job_id, before=before)


def are_left(read: Reading, job_id: bytes) -> bool:
    return read.row(_LEFT, of_job=job_id) is not None
