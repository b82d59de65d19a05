"""The journal of an imported session's turn under way. Whoever goes on recovers it as any interrupted turn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from memory_core.commands import Answer, command
from memory_core.commands.durable_lease import refusing
from memory_core.commands.durable_turns import check_assets
from memory_core.commands.imported_sessions import coming
from memory_core.domain import imported_journal, tool_checkpoint
from memory_core.domain.command import Refusal
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
    """The turn under way. `message`, `audit` and `calls` are those of its open batch (`imported_journal.read`)."""

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
    """Answer: `{"taken"}`, false where there is one already. `Corrupt` for a journal that breaks a rule."""
    session = coming(tx, body.session)
    if session.directory is None:
        raise Invalid("a session of hooks has no journal")
    if durable_sessions.has_open_turn(tx, session.id):
        return {"taken": False}
    journal = imported_journal.read(session.directory, _told(body))
    messages = [journal.open_turn.input, *(journal.batch.messages[-1:] if journal.batch else ())]
    check_assets(tx, [tool_checkpoint.event_of(message) for message in messages])
    tool_journal.add_turn(tx, session.id, journal.open_turn)
    if journal.batch is not None:
        tool_journal.add_batch(tx, session.id, journal.batch)
    return {"taken": True}


def _told(body: ImportJournal) -> dict[str, Any]:
    return {
        "turn_id": id_text(body.turn),
        "input": body.input,
        "checkpoint_count": body.checkpoint_count,
        "event_count": body.event_count,
        "event_bytes": body.event_bytes,
        "message": body.message,
        "audit": list(body.audit),
        "calls": [
            {
                "call_id": id_text(call.call),
                "name": call.name,
                "arguments": call.arguments,
                "state": call.state,
                "result": call.result,
                "origin": call.origin,
                "is_error": call.is_error,
            }
            for call in body.calls
        ],
    }
