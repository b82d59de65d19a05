"""The catalogue of assets: which files there are, and whether anything refers to them."""

from __future__ import annotations

from sqlalchemy import bindparam, exists, select
from sqlalchemy.dialects.sqlite import insert

from memory_core.store.statement import Row, Statement
from memory_core.store.tables_durable import (
    active_turn_assets,
    assets,
    session_assets,
    session_events,
    tool_batch_assets,
)
from memory_core.store.transaction import Reading, Transaction

_a = assets.c
_IS_UNREFERENCED = ~(
    exists().where(session_assets.c.asset_sha256 == _a.sha256)
    | exists().where(active_turn_assets.c.asset_sha256 == _a.sha256)
    | exists().where(tool_batch_assets.c.asset_sha256 == _a.sha256)
)
_add = insert(assets).values(
    sha256=bindparam("sha256"),
    bytes=bindparam("bytes"),
    created_at=bindparam("now"),
    verified_at=bindparam("now"),
    unreferenced_at=None,
)
_ADD = Statement(
    _add.on_conflict_do_update(
        index_elements=[_a.sha256], set_={"verified_at": _add.excluded.verified_at, "unreferenced_at": None}
    )
)
_BYTES = Statement(select(_a.bytes).where(_a.sha256 == bindparam("sha256")))
_OF_EVENT = Statement(
    select(_a.sha256, _a.bytes, session_assets.c.kind)
    .join_from(session_assets, assets, _a.sha256 == session_assets.c.asset_sha256)
    .join(session_events, session_events.c.id == session_assets.c.event_id)
    .where(
        session_assets.c.session_id == bindparam("session_id"),
        session_assets.c.event_id == bindparam("event_id"),
        session_assets.c.ordinal == bindparam("ordinal"),
    )
)
_OF_SESSION = Statement(
    select(
        session_assets.c.event_id, session_events.c.sequence, session_assets.c.ordinal, _a.sha256, _a.bytes,
        session_assets.c.kind,
    )
    .join_from(session_assets, assets, _a.sha256 == session_assets.c.asset_sha256)
    .join(session_events, session_events.c.id == session_assets.c.event_id)
    .where(session_assets.c.session_id == bindparam("session_id"))
    .order_by(session_events.c.sequence, session_assets.c.ordinal)
    .limit(bindparam("limit"))
)  # fmt: skip
_NOTICED = Statement(
    assets.update()
    .where(
        _a.sha256.in_(
            select(_a.sha256).where(_a.unreferenced_at.is_(None), _IS_UNREFERENCED).limit(bindparam("limit"))
        )
    )
    .values(unreferenced_at=bindparam("now"))
)
_FORGOTTEN = Statement(
    assets.delete().where(
        _a.sha256.in_(
            select(_a.sha256)
            .where(
                _a.unreferenced_at <= bindparam("before"), _a.created_at <= bindparam("before"), _IS_UNREFERENCED
            )
            .limit(bindparam("limit"))
        )
    )
)  # fmt: skip


def catalogue(tx: Transaction, *, sha256: bytes, size: int) -> None:
    """Book a file that is in its place, and whole; one that is known is verified anew and as good as just used."""
    tx.run(_ADD, sha256=sha256, bytes=size, now=tx.now)


def size_of(read: Reading, sha256: bytes) -> int | None:
    row = read.row(_BYTES, sha256=sha256)
    return None if row is None else int(row["bytes"])


def of_event(read: Reading, *, session_id: bytes, event_id: bytes, ordinal: int) -> Row | None:
    """`sha256`, `bytes` and `kind` of exactly that link."""
    return read.row(_OF_EVENT, session_id=session_id, event_id=event_id, ordinal=ordinal)


def of_session(read: Reading, session_id: bytes, limit: int) -> list[Row]:
    """Every link of the session, in the order of its events."""
    return read.rows(_OF_SESSION, session_id=session_id, limit=limit)


def notice_unreferenced(tx: Transaction, limit: int) -> int:
    """Write down since when nothing refers to an asset: from now on its grace counts; how many."""
    return tx.run(_NOTICED, now=tx.now, limit=limit)


def forget_unreferenced(tx: Transaction, *, before: int, limit: int) -> int:
    """Take rows out that nothing has referred to since `before` (UTC microseconds) or longer; how many. Their files follow."""
    return tx.run(_FORGOTTEN, before=before, limit=limit)
