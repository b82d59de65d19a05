"""Events of durable sessions: written in turns, read in pages. What lies past a session's head is seen by nobody but its writer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlalchemy import bindparam, func, or_, select
from sqlalchemy.dialects.sqlite import insert

from memory_core.domain.agent_message import AssetKind
from memory_core.domain.session_event import AssetLink, SessionEvent, TranscriptKind
from memory_core.store.statement import Row, Statement
from memory_core.store.tables_durable import assets, durable_sessions, session_assets, session_events
from memory_core.store.transaction import Reading, Transaction

_e = session_events.c
_OF_SESSION = _e.session_id == bindparam("session_id")
_SIZE = func.octet_length(_e.payload_json)
_ADD = Statement(
    insert(session_events).values({column.name: bindparam(column.name) for column in session_events.c})
)
_ADD_LINK = Statement(
    insert(session_assets).values({column.name: bindparam(column.name) for column in session_assets.c})
)
#: Size first: it is known from the row's head, without the payload.
_sizes = (
    select(_e.sequence, _SIZE.label("size"))
    .where(_OF_SESSION, _e.sequence > bindparam("after"), _e.sequence <= bindparam("through"))
    .order_by(_e.sequence)
    .limit(bindparam("limit"))
)
_between = (
    select(session_events)
    .where(_OF_SESSION, _e.sequence > bindparam("after"), _e.sequence <= bindparam("through"))
    .order_by(_e.sequence)
)
_SIZES, _BETWEEN = Statement(_sizes), Statement(_between)
#: Messages may stand beside calls.
_SPEAKS = or_(*(_e.kind == kind for kind in ("user_message", "assistant_message", "tool_call")))
_SPOKEN_SIZES, _SPOKEN = Statement(_sizes.where(_SPEAKS)), Statement(_between.where(_SPEAKS))
_AT = Statement(select(session_events).where(_OF_SESSION, _e.sequence == bindparam("sequence")))
#: What follows it is hashed from these, and nobody needs its payload for that.
_HEADS = Statement(
    select(_e.id, _e.sequence, _e.digest, _e.created_at)
    .where(_OF_SESSION, _e.sequence > bindparam("after"), _e.sequence <= bindparam("through"))
    .order_by(_e.sequence)
)
_BY_ID = Statement(
    select(session_events)
    .join_from(session_events, durable_sessions, durable_sessions.c.session_id == _e.session_id)
    .where(
        _e.id == bindparam("id"),
        _e.sequence <= durable_sessions.c.last_sequence,
        durable_sessions.c.deleted_at.is_(None),
    )
)
_LAST_WITH_RECORD = Statement(
    select(session_events)
    .where(
        _OF_SESSION,
        _e.kind == "audit",
        func.json_extract(_e.payload_json, "$.record") == bindparam("record"),
    )
    .order_by(_e.sequence.desc())
    .limit(1)
)
_TOTAL = Statement(
    select(func.count().label("count"), func.coalesce(func.sum(_SIZE), 0).label("bytes")).where(
        _OF_SESSION, _e.sequence > bindparam("after"), _e.sequence <= bindparam("through")
    )
)
_DROP = Statement(session_events.delete().where(_OF_SESSION, _e.sequence > bindparam("after")))
_STAGED = Statement(
    select(
        func.count().label("count"),
        func.coalesce(func.sum(_SIZE), 0).label("bytes"),
        func.min(_e.turn_id).label("turn_id"),
        func.min(_e.turn_size).label("turn_size"),
        func.min(_e.created_at).label("created_at"),
        func.max(_e.sequence).label("last_sequence"),
    ).where(_OF_SESSION, _e.sequence > bindparam("after"))
)
_ASSET = Statement(select(assets.c.bytes).where(assets.c.sha256 == bindparam("sha256")))
_ASSET_USED = Statement(
    assets.update().where(assets.c.sha256 == bindparam("of_sha256")).values(unreferenced_at=None)
)
_LINKS = Statement(
    select(
        session_assets.c.event_id,
        _e.sequence,
        session_assets.c.ordinal,
        session_assets.c.kind,
        session_assets.c.asset_sha256,
        assets.c.bytes,
    )
    .join_from(session_assets, assets, assets.c.sha256 == session_assets.c.asset_sha256)
    .join(session_events, _e.id == session_assets.c.event_id)
    .where(_OF_SESSION, _e.sequence > bindparam("after"), _e.sequence <= bindparam("through"))
    .order_by(_e.sequence, session_assets.c.ordinal)
    .limit(bindparam("limit"))
)
#: Past every sequence.
_LAST = 2**62
#: From the end, so that what is left is always the beginning of the transcript.
_LAST_SIZES = Statement(
    select(_e.sequence, _SIZE.label("size"))
    .where(_OF_SESSION, _e.sequence > bindparam("after"), _e.sequence <= bindparam("through"))
    .order_by(_e.sequence.desc())
    .limit(bindparam("limit"))
)


def add(tx: Transaction, events: Iterable[SessionEvent]) -> None:
    """Insert events as the principal and scope at hand."""
    tx.run_many(
        _ADD,
        (
            {
                "id": event.id,
                "session_id": event.session_id,
                "sequence": event.sequence,
                "turn_id": event.turn_id,
                "turn_index": event.turn_index,
                "turn_size": event.turn_size,
                "kind": event.kind.value,
                "payload_json": event.payload_json,
                "digest": event.digest,
                "principal": tx.principal,
                "token_scope": tx.token_scope,
                "created_at": event.created_at,
            }
            for event in events
        ),
    )


def link(tx: Transaction, event: SessionEvent, links: Sequence[AssetLink]) -> None:
    """The assets of an event, in their order; each must be catalogued."""
    for ordinal, asset in enumerate(links):
        tx.run(
            _ADD_LINK,
            session_id=event.session_id,
            event_id=event.id,
            ordinal=ordinal,
            asset_sha256=asset.sha256,
            kind=asset.kind.value,
            created_at=event.created_at,
        )
        asset_used(tx, asset.sha256)


def asset_used(tx: Transaction, sha256: bytes) -> None:
    """Something refers to the asset from now on."""
    tx.run(_ASSET_USED, of_sha256=sha256)


def asset_bytes(read: Reading, sha256: bytes) -> int | None:
    """How many bytes a catalogued asset has."""
    row = read.row(_ASSET, sha256=sha256)
    return None if row is None else row["bytes"]


def between(
    read: Reading, session_id: bytes, *, after: int, through: int, limit: int, max_bytes: int
) -> list[SessionEvent]:
    """Events with `after` < sequence ≤ `through` in their order: at most `limit`, and payloads of `max_bytes`, but one at least."""
    sizes = read.rows(_SIZES, session_id=session_id, after=after, through=through, limit=limit)
    last = _fitting(sizes, max_bytes)
    if not last:
        return []
    return [_event(row) for row in read.rows(_BETWEEN, session_id=session_id, after=after, through=last)]


def spoken(
    read: Reading, session_id: bytes, *, after: int, through: int, limit: int, max_bytes: int
) -> tuple[list[SessionEvent], int]:
    """The same of events in which somebody may speak, and up to which sequence there are no further ones."""
    sizes = read.rows(_SPOKEN_SIZES, session_id=session_id, after=after, through=through, limit=limit)
    last = _fitting(sizes, max_bytes)
    if len(sizes) < limit and (not sizes or last == sizes[-1]["sequence"]):
        last = through
    rows = read.rows(_SPOKEN, session_id=session_id, after=after, through=last) if sizes else []
    return [_event(row) for row in rows], last


def _fitting(sizes: Iterable[Row], max_bytes: int) -> int:
    """The sequence of the last one that fits, the first one always; 0 where there are none."""
    last = total = 0
    for row in sizes:
        total += row["size"]
        if last and total > max_bytes:
            break
        last = row["sequence"]
    return last


def with_links(
    read: Reading, session_id: bytes, events: Sequence[SessionEvent], *, limit: int
) -> list[tuple[SessionEvent, list[AssetLink]]]:
    """Those events, which follow one another, each with its assets in their order; only the first ones, where all together have
    more than `limit` assets, but one at least."""
    if not events:
        return []
    first, last = events[0].sequence, events[-1].sequence
    rows = read.rows(_LINKS, session_id=session_id, after=first - 1, through=last, limit=limit + 1)
    if len(rows) > limit:
        # Those of the last event that is named may not be all of it.
        last = max(first, rows[-1]["sequence"] - 1)
    found: dict[bytes, list[AssetLink]] = {}
    for row in rows:
        asset = AssetLink(sha256=row["asset_sha256"], bytes=row["bytes"], kind=AssetKind(row["kind"]))
        found.setdefault(row["event_id"], []).append(asset)
    return [(event, found.get(event.id, [])) for event in events if event.sequence <= last]


def at(read: Reading, session_id: bytes, sequence: int) -> SessionEvent | None:
    row = read.row(_AT, session_id=session_id, sequence=sequence)
    return None if row is None else _event(row)


def heads_between(read: Reading, session_id: bytes, *, after: int, through: int) -> list[Row]:
    """Of those events id, sequence, digest and created_at, without their payloads."""
    return read.rows(_HEADS, session_id=session_id, after=after, through=through)


def head_of(read: Reading, session_id: bytes, sequence: int) -> Row | None:
    """The same of one event."""
    return next(iter(heads_between(read, session_id, after=sequence - 1, through=sequence)), None)


def last_with_record(read: Reading, session_id: bytes, record: str) -> SessionEvent | None:
    """The newest audit event whose payload is such a record."""
    row = read.row(_LAST_WITH_RECORD, session_id=session_id, record=record)
    return None if row is None else _event(row)


def by_id(read: Reading, event_id: bytes) -> SessionEvent | None:
    row = read.row(_BY_ID, id=event_id)
    return None if row is None else _event(row)


def total(read: Reading, session_id: bytes, *, after: int, through: int) -> tuple[int, int]:
    """How many events lie between, and how many bytes their payloads have."""
    row = read.rows(_TOTAL, session_id=session_id, after=after, through=through)[0]
    return row["count"], row["bytes"]


def drop_past(tx: Transaction, session_id: bytes, head: int, *, limit: int, max_bytes: int) -> bool:
    """Delete the last events of what lies past the session's head, a turn that was never finished: at most `limit`, and payloads of
    `max_bytes`, but one at least. Whether anything is left of it."""
    first = _first_of_last(tx, session_id, _LAST, limit, max_bytes, after=head)
    if first:
        tx.run(_DROP, session_id=session_id, after=first - 1)
    return first > head + 1


def has_more_past(read: Reading, session_id: bytes, head: int, *, limit: int, max_bytes: int) -> bool:
    """Whether `drop_past` would leave anything."""
    return _first_of_last(read, session_id, _LAST, limit, max_bytes, after=head) > head + 1


def staged(read: Reading, session_id: bytes, head: int) -> Row:
    """Of the turn past the head: count, bytes, turn_id, turn_size, created_at, last_sequence (count 0: there is none)."""
    return read.rows(_STAGED, session_id=session_id, after=head)[0]


def newest(
    read: Reading, session_id: bytes, *, through: int, limit: int, max_bytes: int
) -> list[SessionEvent]:
    """The last events up to `through`, in their order: at most `limit`, and payloads of `max_bytes`, but one at least."""
    first = _first_of_last(read, session_id, through, limit, max_bytes)
    rows = read.rows(_BETWEEN, session_id=session_id, after=first - 1, through=through) if first else []
    return [_event(row) for row in rows]


def drop_last(tx: Transaction, session_id: bytes, *, limit: int, max_bytes: int) -> int:
    """Delete the last events of a session that goes: at most `limit`, and payloads of `max_bytes`, but one at least; how many."""
    first = _first_of_last(tx, session_id, _LAST, limit, max_bytes)
    return tx.run(_DROP, session_id=session_id, after=first - 1) if first else 0


def _first_of_last(
    read: Reading, session_id: bytes, through: int, limit: int, max_bytes: int, *, after: int = 0
) -> int:
    """The sequence from which on the last events (behind `after`) fit; 0 where there are none."""
    first = total = 0
    for row in read.rows(_LAST_SIZES, session_id=session_id, after=after, through=through, limit=limit):
        total += row["size"]
        if first and total > max_bytes:
            break
        first = row["sequence"]
    return first


def _event(row: Row) -> SessionEvent:
    return SessionEvent(
        id=row["id"],
        session_id=row["session_id"],
        sequence=row["sequence"],
        turn_id=row["turn_id"],
        turn_index=row["turn_index"],
        turn_size=row["turn_size"],
        kind=TranscriptKind(row["kind"]),
        payload_json=row["payload_json"],
        digest=row["digest"],
        created_at=row["created_at"],
    )
