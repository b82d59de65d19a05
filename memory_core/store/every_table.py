"""The whole schema, of all areas; for migrations and for what compares with it."""

from __future__ import annotations

from memory_core.store.tables import metadata
from memory_core.store.tables_access import page_access
from memory_core.store.tables_git import git_batches, git_changes
from memory_core.store.tables_jobs import job_counts, job_queues, job_turns, jobs, schedule_slots
from memory_core.store.tables_models import (
    model_budget,
    model_calls,
    model_pauses,
    model_refusals,
    model_usage,
)
from memory_core.store.tables_rendered import rendered_files
from memory_core.store.tables_wiki import wiki_files, wiki_tasks

#: Tables that lie beside `tables.py`; naming them here puts them into `metadata`.
FURTHER = (
    page_access,
    git_batches,
    git_changes,
    job_counts,
    job_queues,
    job_turns,
    jobs,
    model_budget,
    model_calls,
    model_pauses,
    model_refusals,
    model_usage,
    rendered_files,
    schedule_slots,
    wiki_files,
    wiki_tasks,
)

__all__ = ["FURTHER", "metadata"]
