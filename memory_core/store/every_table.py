"""The whole schema, of all areas; for migrations and for what compares with it."""

from __future__ import annotations

from memory_core.store.tables import metadata
from memory_core.store.tables_access import page_access
from memory_core.store.tables_distillation import distillation_candidates
from memory_core.store.tables_durable import (
    active_turn_assets,
    active_turns,
    assets,
    compactions,
    distillation_results,
    distillations,
    durable_sessions,
    session_assets,
    session_events,
    session_snapshots,
    tool_batch_assets,
    tool_batches,
    tool_invocations,
)
from memory_core.store.tables_entities import entities, entity_starts, page_entities
from memory_core.store.tables_fulltext import page_chunks, unindexed_observations
from memory_core.store.tables_git import git_batches, git_changes
from memory_core.store.tables_imports import imports
from memory_core.store.tables_jobs import job_counts, job_queues, job_turns, jobs, schedule_slots
from memory_core.store.tables_knowledge import knowledge, knowledge_tombstones, knowledge_versions
from memory_core.store.tables_models import (
    model_budget,
    model_calls,
    model_pauses,
    model_refusals,
    model_usage,
)
from memory_core.store.tables_rendered import rendered_files
from memory_core.store.tables_vectors import embedding_models, embeddings, vector_removals, vector_units
from memory_core.store.tables_wiki import wiki_files, wiki_tasks

#: Tables that lie beside `tables.py`; naming them here puts them into `metadata`.
FURTHER = (
    page_access,
    active_turn_assets,
    active_turns,
    assets,
    compactions,
    distillation_candidates,
    distillation_results,
    distillations,
    durable_sessions,
    embedding_models,
    embeddings,
    git_batches,
    git_changes,
    imports,
    job_counts,
    job_queues,
    job_turns,
    jobs,
    knowledge,
    knowledge_tombstones,
    knowledge_versions,
    model_budget,
    model_calls,
    model_pauses,
    model_refusals,
    model_usage,
    entities,
    entity_starts,
    page_chunks,
    page_entities,
    rendered_files,
    schedule_slots,
    session_assets,
    session_events,
    session_snapshots,
    tool_batch_assets,
    tool_batches,
    tool_invocations,
    unindexed_observations,
    vector_removals,
    vector_units,
    wiki_files,
    wiki_tasks,
)

__all__ = ["FURTHER", "metadata"]
