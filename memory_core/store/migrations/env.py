"""Alembic's entry: it gets its connection from `memory_core.store.migrate`, which owns backup and transactions."""

from __future__ import annotations

from alembic import context

from memory_core.store.every_table import metadata

#: Objects that full-text search keeps for itself, or that Alembic has no words for (`memory_core.store.fulltext`).
_FOREIGN = ("chunks_fts", "observations_fts", "observations_text")


def _is_ours(_object: object, name: str | None, _kind: str, _reflected: bool, _other: object) -> bool:
    return not (name or "").startswith(_FOREIGN)


context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    transactional_ddl=True,
    transaction_per_migration=True,
    include_object=_is_ours,
    on_version_apply=context.config.attributes.get("on_version_apply", ()),
)
with context.begin_transaction():
    context.run_migrations()
