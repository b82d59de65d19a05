"""Principals and their bearer tokens; of a token only its public id and the SHA-256 of its secret are kept."""

from __future__ import annotations

from typing import Final

from sqlalchemy import bindparam, select
from sqlalchemy.dialects import sqlite

from memory_core.store.statement import Row, Statement
from memory_core.store.tables import principals, tokens
from memory_core.store.transaction import Reading, Transaction

#: Who the first token of a data directory belongs to.
OWNER: Final = "owner"

_ADD_PRINCIPAL = Statement(sqlite.insert(principals).on_conflict_do_nothing())
_ADD_TOKEN = Statement(sqlite.insert(tokens).on_conflict_do_nothing())
_TOKEN = Statement(select(tokens).where(tokens.c.public_id == bindparam("public_id")))


def token_by_public_id(reading: Reading, public_id: str) -> Row | None:
    """`principal`, `digest` (32 bytes), `scope`, `project_id` (NULL: all), `expires_at`, `revoked_at` of a token.

    The caller compares the digest in constant time and looks at expiry and revocation.
    """
    return reading.row(_TOKEN, public_id=public_id)


def ensure_owner(tx: Transaction, public_id: str, digest: bytes) -> None:
    """The principal `owner` and its admin token are there; what is there already stays as it is."""
    tx.run(_ADD_PRINCIPAL, name=OWNER, created_at=tx.now)
    tx.run(
        _ADD_TOKEN,
        public_id=public_id,
        principal=OWNER,
        digest=digest,
        scope="admin",
        project_id=None,
        created_at=tx.now,
        expires_at=None,
        revoked_at=None,
    )
