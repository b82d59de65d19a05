"""Who refers to a model that runs on this machine: vectors that it made, and sessions that name it."""

from __future__ import annotations

from typing import Any

from memory_core.store.statement import text_statement
from memory_core.store.transaction import Reading

_VECTORS = text_statement(
    "SELECT count(*) AS count FROM embeddings AS e JOIN embedding_models AS m ON m.number = e.model_number"
    " WHERE m.provider = 'local' AND (m.model = :name OR m.model = :identity)"
)
_BOUND = text_statement(
    "SELECT count(*) AS count FROM embedding_models"
    " WHERE is_active = 1 AND provider = 'local' AND (model = :name OR model = :identity)"
)
_SESSIONS = text_statement(
    "SELECT count(*) AS count FROM durable_sessions WHERE model_reference IN (:name, :identity, :named)"
)


def of(read: Reading, name: str, identity: str) -> list[str]:
    """What refers to the model, a few words each; nothing where it may go."""
    said: list[str] = []
    for statement, one, many in (
        (_BOUND, "it is the embedder of this install", "it is the embedder of this install"),
        (_VECTORS, "1 vector", "{} vectors"),
        (_SESSIONS, "1 durable session names it", "{} durable sessions name it"),
    ):
        row: Any = read.row(statement, name=name, identity=identity, named=f"local:{name}")
        if row["count"]:
            said.append(one if row["count"] == 1 else many.format(f"{row['count']:,}"))
    return said
