"""Principals and their bearer tokens; of a token only its public id and the SHA-256 of its secret are kept."""

from __future__ import annotations

from typing import Final

from sqlalchemy import bindparam, func, or_, select, update
from sqlalchemy.dialects import sqlite

from memory_core.store.statement import Row, Statement
from memory_core.store.tables import principals, tokens
from memory_core.store.transaction import Reading, Transaction

#: Who the first token of a data directory belongs to.
OWNER: Final = "owner"
#: Who pool workers are, unless a token says otherwise.
POOL: Final = "pool"

_ADD_PRINCIPAL = Statement(sqlite.insert(principals).on_conflict_do_nothing())
_ADD_TOKEN = Statement(sqlite.insert(tokens).on_conflict_do_nothing())
_TOKEN = Statement(select(tokens).where(tokens.c.public_id == bindparam("public_id")))
_ALL = Statement(
    select(*(column for column in tokens.c if column.name != "digest"))
    .order_by(tokens.c.created_at, tokens.c.public_id)
    .limit(bindparam("limit"))
)
_is_live = tokens.c.revoked_at.is_(None) & or_(
    tokens.c.expires_at.is_(None), tokens.c.expires_at > bindparam("now")
)
_LIVE_BY_NAME = Statement(
    select(tokens.c.public_id).where(tokens.c.name == bindparam("name"), _is_live).limit(1)
)
_LIVE_ADMINS = Statement(
    select(func.count().label("count")).select_from(tokens).where(tokens.c.scope == "admin", _is_live)
)
_COUNT = Statement(select(func.count().label("count")).select_from(tokens))
_REVOKE = Statement(
    update(tokens)
    .where(tokens.c.public_id == bindparam("token"), tokens.c.revoked_at.is_(None))
    .values(revoked_at=bindparam("now"))
)


def token_by_public_id(reading: Reading, public_id: str) -> Row | None:
    """`principal`, `digest` (32 bytes), `scope`, `project_id` (NULL: all), `expires_at`, `revoked_at` of a token.

    The caller compares the digest in constant time and looks at expiry and revocation.
    """
    return reading.row(_TOKEN, public_id=public_id)


def listed(reading: Reading, *, limit: int) -> list[Row]:
    """All tokens, also expired and revoked ones, the oldest first; without their digests."""
    return reading.rows(_ALL, limit=limit)


def count(reading: Reading) -> int:
    row = reading.row(_COUNT)
    return 0 if row is None else int(row["count"])


def live_by_name(reading: Reading, name: str, now: int) -> str | None:
    """The public id of the token of that name that is neither expired nor revoked."""
    row = reading.row(_LIVE_BY_NAME, name=name, now=now)
    return None if row is None else str(row["public_id"])


def live_admins(reading: Reading, now: int) -> int:
    """How many tokens of scope admin count at that time."""
    row = reading.row(_LIVE_ADMINS, now=now)
    return 0 if row is None else int(row["count"])


def add_token(
    tx: Transaction,
    public_id: str,
    digest: bytes,
    *,
    principal: str,
    scope: str,
    name: str = "",
    expires_at: int | None = None,
) -> None:
    """A token and its principal are there; what is there already stays as it is. `digest`: SHA-256 of the secret."""
    tx.run(_ADD_PRINCIPAL, name=principal, created_at=tx.now)
    tx.run(
        _ADD_TOKEN,
        public_id=public_id,
        principal=principal,
        digest=digest,
        scope=scope,
        project_id=None,
        created_at=tx.now,
        expires_at=expires_at,
        revoked_at=None,
        name=name,
    )


def revoke(tx: Transaction, public_id: str) -> None:
    """From now on the token is worth nothing; one that was revoked before keeps its time."""
    tx.run(_REVOKE, token=public_id, now=tx.now)


def ensure_owner(tx: Transaction, public_id: str, digest: bytes) -> None:
    """The principal `owner` and its admin token are there; what is there already stays as it is."""
    add_token(tx, public_id, digest, principal=OWNER, scope="admin", name="first")


def ensure_pool(tx: Transaction, public_id: str, digest: bytes) -> bool:
    """The token of this machine's pool worker is there; False where that very token was revoked."""
    add_token(tx, public_id, digest, principal=POOL, scope="pool", name="this machine's worker")
    row = token_by_public_id(tx, public_id)
    return row is not None and row["revoked_at"] is None
