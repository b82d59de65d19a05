"""How far embeddings are, for status answers, lists and metrics."""

from __future__ import annotations

from typing import Any

from memory_core.commands.embeddings import KIND, open_job_of
from memory_core.domain.embedding import Progress
from memory_core.ids import id_text
from memory_core.store import embedding_models, jobs, vector_index
from memory_core.store.database import Snapshot


def shape(reading: Snapshot, project: int | None = None) -> dict[str, Any]:
    """`state` is `off` (no embedder), `complete`, `working` (a job is open), or `waiting`; the counts are of one project (its number), or of all.

    `index` says what answers questions within a project: `table`, or `memory` where the table is not whole or cannot be used.
    """
    model = embedding_models.active(reading)
    if model is None:
        return {"state": "off"}
    progress = embedding_models.progress(reading, model, project)
    job, last = open_job_of(reading), jobs.listed(reading, kind=KIND, limit=1)
    state = "complete" if not progress.pending else "working" if job else "waiting"
    return {
        "state": state,
        "provider": model["provider"],
        "model": model["model"],
        "dimensions": model["dimensions"] or None,
        **_counts(progress),
        "index": "table" if vector_index.is_whole(reading, model) else "memory",
        "job": None if job is None else id_text(job),
        "last_error": last[0].job.last_error if last else None,
        "former_models": len(embedding_models.every(reading)) - 1,
    }


def _counts(progress: Progress) -> dict[str, Any]:
    eta = progress.eta_seconds
    return {
        "done": progress.done,
        "total": progress.total,
        "pending": progress.pending,
        "failed": progress.failed,
        "eta_seconds": None if eta is None else round(eta),
        "progress": progress.sentence(),
    }
