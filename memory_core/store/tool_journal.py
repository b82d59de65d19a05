"""The journal of a session's turn under way: the open turn, its tool batch, the batch's calls, and the assets they name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import bindparam, case, func, select
from sqlalchemy.dialects.sqlite import insert

from memory_core import limits
from memory_core.domain import tool_rows
from memory_core.domain.agent_message import AssetReference, references
from memory_core.domain.directory import DirectoryId
from memory_core.domain.tool_journal import ActiveTurn, Batch, Journal
from memory_core.domain.tool_rows import StoredBatch, StoredCall, StoredTurn
from memory_core.ids import id_bytes, id_text
from memory_core.store import session_events
from memory_core.store.statement import Row, Statement
from memory_core.store.tables_durable import (
    active_turn_assets,
    active_turns,
    tool_batch_assets,
    tool_batches,
    tool_invocations,
)
from memory_core.store.transaction import Reading, Transaction

_t, _b, _i = active_turns.c, tool_batches.c, tool_invocations.c


def _all(table: Any) -> Statement:
    return Statement(insert(table).values({column.name: bindparam(column.name) for column in table.c}))


_TURN = Statement(select(active_turns).where(_t.session_id == bindparam("id")))
_BATCH = Statement(select(tool_batches).where(_b.session_id == bindparam("id")))
_CALLS = Statement(
    select(tool_invocations)
    .where(_i.session_id == bindparam("id"))
    .order_by(_i.ordinal)
    .limit(bindparam("limit"))
)
_BATCH_ASSETS = Statement(
    select(tool_batch_assets.c.asset_sha256).where(tool_batch_assets.c.session_id == bindparam("id"))
)
#: Sizes are known from the rows' heads, without their texts. Arguments stand in the message, in the plan and in a question;
#: a result in an event and in a message; the input in the first batch.
_CALL_BYTES = (
    select(
        func.coalesce(
            func.sum(
                2 * func.octet_length(_i.arguments_json)
                + 2 * func.coalesce(func.octet_length(_i.result_json), 0)
            ),
            0,
        )
    )
    .where(_i.session_id == _b.session_id)
    .scalar_subquery()
)
_CHECKPOINT_BYTES = Statement(
    select(
        (
            func.octet_length(_b.messages_json)
            + func.octet_length(_b.audit_json)
            + case((_t.checkpoint_count == 0, func.octet_length(_t.input_json)), else_=0)
            + _CALL_BYTES
        ).label("bytes")
    )
    .join_from(tool_batches, active_turns, _t.session_id == _b.session_id)
    .where(_b.session_id == bindparam("id"))
)
_ADD_TURN, _ADD_BATCH, _ADD_CALL = _all(active_turns), _all(tool_batches), _all(tool_invocations)
_ADD_TURN_ASSET, _ADD_BATCH_ASSET = _all(active_turn_assets), _all(tool_batch_assets)
_SAVE_TURN = Statement(
    active_turns.update()
    .where(_t.session_id == bindparam("id"))
    .values(
        checkpoint_count=bindparam("new_checkpoints"),
        event_count=bindparam("new_events"),
        event_bytes=bindparam("new_bytes"),
        updated_at=bindparam("now"),
    )
)
_SAVE_AUDIT = Statement(
    tool_batches.update()
    .where(_b.session_id == bindparam("id"))
    .values(audit_json=bindparam("new_audit"), updated_at=bindparam("now"))
)
_SAVE_CALL = Statement(
    tool_invocations.update()
    .where(_i.session_id == bindparam("id"), _i.call_id == bindparam("of_call"))
    .values(
        state=bindparam("new_state"),
        result_json=bindparam("new_result"),
        result_origin=bindparam("new_origin"),
        result_is_error=bindparam("new_error"),
        updated_at=bindparam("now"),
    )
)
_DROP_TURN = Statement(active_turns.delete().where(_t.session_id == bindparam("id")))
_DROP_BATCH = Statement(tool_batches.delete().where(_b.session_id == bindparam("id")))


def journal(read: Reading, session_id: bytes, directory: DirectoryId) -> Journal:
    """What is open in the session. Raises `Corrupt` where what is stored breaks a rule."""
    turn, batch = read.row(_TURN, id=session_id), read.row(_BATCH, id=session_id)
    return tool_rows.read_journal(
        directory,
        None if turn is None else _stored_turn(turn),
        None if batch is None else _stored_batch(read, session_id, batch),
    )


def checkpoint_bytes(read: Reading, session_id: bytes) -> int:
    """About how many bytes a checkpoint of the open batch writes; 0 where none is open."""
    row = read.row(_CHECKPOINT_BYTES, id=session_id)
    return 0 if row is None else row["bytes"]


def add_turn(tx: Transaction, session_id: bytes, turn: ActiveTurn) -> None:
    row = tool_rows.turn_row(turn)
    tx.run(
        _ADD_TURN,
        session_id=session_id,
        turn_id=id_bytes(row.turn_id),
        input_json=row.input_json,
        checkpoint_count=row.checkpoint_count,
        event_count=row.event_count,
        event_bytes=row.event_bytes,
        created_at=tx.now,
        updated_at=tx.now,
    )
    for ordinal, reference in enumerate(turn.input.assets):
        digest = bytes.fromhex(reference.sha256)
        tx.run(
            _ADD_TURN_ASSET,
            session_id=session_id,
            ordinal=ordinal,
            asset_sha256=digest,
            kind=reference.kind.value,
        )
        session_events.asset_used(tx, digest)


def save_turn(tx: Transaction, session_id: bytes, turn: ActiveTurn) -> None:
    tx.run(
        _SAVE_TURN,
        id=session_id,
        new_checkpoints=turn.checkpoint_count,
        new_events=turn.event_count,
        new_bytes=turn.event_bytes,
        now=tx.now,
    )


def add_batch(tx: Transaction, session_id: bytes, batch: Batch) -> None:
    row = tool_rows.batch_row(batch)
    tx.run(
        _ADD_BATCH,
        session_id=session_id,
        turn_id=id_bytes(row.turn_id),
        messages_json=row.messages_json,
        audit_json=row.audit_json,
        created_at=tx.now,
        updated_at=tx.now,
    )
    for call in row.calls:
        tx.run(
            _ADD_CALL,
            session_id=session_id,
            call_id=call.call_id,
            ordinal=call.ordinal,
            tool_name=call.tool_name,
            arguments_json=call.arguments_json,
            state=call.state,
            result_json=call.result_json,
            result_origin=call.result_origin,
            result_is_error=None if call.result_is_error is None else int(call.result_is_error),
            updated_at=tx.now,
        )
    for digest in _digests(references(batch.messages)):
        tx.run(_ADD_BATCH_ASSET, session_id=session_id, asset_sha256=digest)
        session_events.asset_used(tx, digest)


def save_call(tx: Transaction, session_id: bytes, batch: Batch, call_id: str) -> None:
    """Write what a step changed: the batch's audit, and the row of one call."""
    ordinal, found = next(
        (index, each) for index, each in enumerate(batch.invocations) if each.call.id == call_id
    )
    call = tool_rows.call_row(found, ordinal)
    tx.run(_SAVE_AUDIT, id=session_id, new_audit=tool_rows.audit_text(batch), now=tx.now)
    tx.run(
        _SAVE_CALL,
        id=session_id,
        of_call=call_id,
        new_state=call.state,
        new_result=call.result_json,
        new_origin=call.result_origin,
        new_error=None if call.result_is_error is None else int(call.result_is_error),
        now=tx.now,
    )


def drop_batch(tx: Transaction, session_id: bytes) -> None:
    """With its calls and its links."""
    tx.run(_DROP_BATCH, id=session_id)


def drop_turn(tx: Transaction, session_id: bytes) -> None:
    tx.run(_DROP_TURN, id=session_id)


def _digests(found: Iterable[AssetReference]) -> list[bytes]:
    return [bytes.fromhex(sha256) for sha256 in dict.fromkeys(reference.sha256 for reference in found)]


def _stored_turn(row: Row) -> StoredTurn:
    return StoredTurn(
        turn_id=id_text(row["turn_id"]),
        input_json=row["input_json"],
        checkpoint_count=row["checkpoint_count"],
        event_count=row["event_count"],
        event_bytes=row["event_bytes"],
    )


def _stored_batch(read: Reading, session_id: bytes, row: Row) -> StoredBatch:
    # One more than there may be: what is too much is seen, and not read.
    calls = read.rows(_CALLS, id=session_id, limit=limits.TOOL_CALLS_PER_ROUND_MAX + 1)
    links = read.rows(_BATCH_ASSETS, id=session_id)
    return StoredBatch(
        turn_id=id_text(row["turn_id"]),
        messages_json=row["messages_json"],
        audit_json=row["audit_json"],
        calls=tuple(_stored_call(call) for call in calls),
        assets=frozenset(link["asset_sha256"].hex() for link in links),
    )


def _stored_call(row: Row) -> StoredCall:
    is_error = row["result_is_error"]
    return StoredCall(
        call_id=row["call_id"],
        ordinal=row["ordinal"],
        tool_name=row["tool_name"],
        arguments_json=row["arguments_json"],
        state=row["state"],
        result_json=row["result_json"],
        result_origin=row["result_origin"],
        result_is_error=None if is_error is None else bool(is_error),
    )
