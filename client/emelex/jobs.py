"""Compactions and distillations of one session, as they are sent. A claim of the older program is over with the import."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from client.emelex import values
from client.emelex.tables import Row, Tables
from memory_core.errors import Corrupt

_STATES: Final = {"pending": "pending", "running": "pending", "completed": "completed", "failed": "failed"}
_QUEUES: Final = (("compaction", "compaction_jobs"), ("distillation", "distillation_jobs"))


def rows(tables: Tables, session_id: str) -> list[tuple[str, Row]]:
    """Kind and row of each. Raises `Corrupt`."""
    return [
        (kind, row)
        for kind, table in _QUEUES
        for row in tables.rows(table, "through_sequence, id", session_id=session_id)
    ]


def body_of(tables: Tables, kind: str, row: Row, summaries: Mapping[str, str]) -> dict[str, Any]:
    """A job as it is sent. `summaries`: of each job that wrote one, the event. Raises `Corrupt`."""
    job_id = values.id_of(row)
    state = _STATES.get(values.text_of(row, "state"))
    if state is None:
        raise Corrupt(f"job {job_id} is in the unknown state {row['state']!r:.40}")
    ended = row.get("completed_at") or row.get("failed_at") or row["updated_at"]
    summary = summaries.get(job_id) if kind == "compaction" and state == "completed" else None
    return {
        "id": job_id,
        "kind": kind,
        "through_sequence": values.number_of(row, "through_sequence", at_least=1),
        "state": state,
        "failures": row["failure_count"] or 0,
        "last_error": row["last_error"],
        "created_at": values.moment_of(row, "created_at"),
        "updated_at": values.moment_of({"updated_at": ended}, "updated_at"),
        "summary_event_id": summary,
        "results": _results(tables, job_id) if kind == "distillation" else [],
    }


def check(kind: str, row: Row, digests: Mapping[int, str], ids: Mapping[int, str]) -> None:
    """Raises `Corrupt` unless the job was made of the events that there are."""
    through = values.number_of(row, "through_sequence", at_least=1)
    if through not in digests:
        raise Corrupt(f"a {kind} ends with event {through}, which is not there")
    if row["source_sha256"] is None:
        return
    told = (
        row["source_event_count"],
        row["source_first_event_id"],
        row["source_last_event_id"],
        row["source_sha256"],
    )
    if told != (through, ids[1], ids[through], digests[through]):
        raise Corrupt(f"its events up to {through} are not those that a {kind} was made of")


def _results(tables: Tables, job_id: str) -> list[dict[str, Any]]:
    made = {
        row["candidate_index"]
        for row in tables.rows("knowledge_versions", "version", distillation_job_id=job_id)
    }
    return [
        {
            "candidate_index": values.number_of(row, "candidate_index"),
            "knowledge_id": values.id_of(row, "knowledge_id"),
            "version": values.number_of(row, "knowledge_version", at_least=1),
            "action": "upserted" if row["candidate_index"] in made else "tombstoned",
        }
        for row in tables.rows("distillation_results", "candidate_index", job_id=job_id)
    ]
