"""The journal of an imported session's turn under way. Whoever goes on recovers it as any interrupted turn."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from memory_core.commands import Answer, command
from memory_core.commands.durable_lease import refusing
from memory_core.commands.durable_turns import check_assets
from memory_core.commands.imported_sessions import coming
from memory_core.domain import tool_checkpoint, tool_rows
from memory_core.domain.command import Refusal
from memory_core.domain.json_fields import json_text
from memory_core.domain.tool_rows import StoredBatch, StoredCall, StoredTurn
from memory_core.errors import Invalid
from memory_core.ids import id_text
from memory_core.store import durable_sessions, tool_journal
from memory_core.store.transaction import Transaction


@dataclass(frozen=True, kw_only=True)
class ImportedCall:
    call: bytes
    name: str
    arguments: dict[str, Any]
    state: str
    result: dict[str, Any] | None = None
    origin: str | None = None
    is_error: bool | None = None


@dataclass(frozen=True, kw_only=True)
class ImportJournal:
    """The turn under way. `message` and `audit` are those of its open batch; the audit does not repeat what stands in the calls."""

    session: bytes
    turn: bytes
    input: dict[str, Any]
    checkpoint_count: int
    event_count: int
    event_bytes: int
    message: dict[str, Any] | None = None
    audit: tuple[dict[str, Any], ...] = ()
    calls: tuple[ImportedCall, ...] = ()


@command(ImportJournal, name="import_session_journal")
@refusing
def take_journal(body: ImportJournal, tx: Transaction) -> Answer | Refusal:
    """Answer: `{"taken"}`, false where it is there already. `Corrupt` for a journal that breaks a rule."""
    session = coming(tx, body.session)
    if session.directory is None:
        raise Invalid("a session of hooks has no journal")
    if durable_sessions.has_open_turn(tx, session.id):
        return {"taken": False}
    turn = StoredTurn(
        turn_id=id_text(body.turn),
        input_json=json_text(body.input),
        checkpoint_count=body.checkpoint_count,
        event_count=body.event_count,
        event_bytes=body.event_bytes,
    )
    # The input as it is written here: a batch tells it by its digest.
    turn = tool_rows.turn_row(tool_rows.read_journal(session.directory, turn, None).open_turn)
    journal = tool_rows.read_journal(session.directory, turn, _batch(body, turn))
    messages = [journal.open_turn.input, *(journal.batch.messages[-1:] if journal.batch else ())]
    check_assets(tx, [tool_checkpoint.event_of(message) for message in messages])
    tool_journal.add_turn(tx, session.id, journal.open_turn)
    if journal.batch is not None:
        tool_journal.add_batch(tx, session.id, journal.batch)
    return {"taken": True}


def _batch(body: ImportJournal, turn: StoredTurn) -> StoredBatch | None:
    if body.message is None:
        return None
    digest = hashlib.sha256(turn.input_json.encode()).hexdigest()
    first = [{"input_sha256": digest}] if body.checkpoint_count == 0 else []
    return StoredBatch(
        turn_id=turn.turn_id,
        messages_json=json_text([*first, body.message]),
        audit_json=json_text(list(body.audit)),
        calls=tuple(
            StoredCall(
                call_id=id_text(call.call),
                ordinal=ordinal,
                tool_name=call.name,
                arguments_json=json_text(call.arguments),
                state=call.state,
                result_json=None if call.result is None else json_text(call.result),
                result_origin=call.origin,
                result_is_error=call.is_error,
            )
            for ordinal, call in enumerate(body.calls)
        ),
    )
