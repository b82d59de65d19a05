"""The journal of a turn under way: its input before a model is asked, its calls before and after they run, its checkpoints.

A command carries what is new and nothing that the journal has: what is kept was redacted when it came, and a second copy
could be redacted otherwise. Ids of calls travel as bytes, which redaction does not touch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from memory_core.commands import Answer, command
from memory_core.commands.durable_lease import held, lease_end, refusing
from memory_core.commands.durable_turns import check_assets
from memory_core.domain import tool_checkpoint, tool_steps
from memory_core.domain.agent_message import Message, read_message
from memory_core.domain.audit_event import ApprovalRequested, ApprovalResolved, ToolOutput
from memory_core.domain.command import Refusal
from memory_core.domain.directory import DirectoryId
from memory_core.domain.durable_session import DurableSession
from memory_core.domain.tool_journal import Journal, Origin
from memory_core.domain.tool_steps import Round
from memory_core.errors import Conflict, Invalid
from memory_core.ids import id_text
from memory_core.store import durable_sessions
from memory_core.store import tool_journal as stored
from memory_core.store.transaction import Transaction


@dataclass(frozen=True, kw_only=True)
class OfHolder:
    """Whose journal it is: the session, the lease that holds it, and where its holder is."""

    session: bytes
    lease_hash: bytes
    directory: DirectoryId


@dataclass(frozen=True, kw_only=True)
class BeginTurn(OfHolder):
    """Before a model is asked. `input` is a durable message of the user."""

    turn: bytes
    input: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class OpenBatch(OfHolder):
    """Before any call of a round. `message` is the assistant's; `received` has a keyed hash of each of its calls as it came."""

    turn: bytes
    message: dict[str, Any]
    round: int
    #: Pairs of name and count.
    usage: tuple[tuple[str, int], ...]
    starts_turn: bool
    received: tuple[bytes, ...]


@dataclass(frozen=True, kw_only=True)
class AskApproval(OfHolder):
    """A person is asked whether the call may run."""

    call: bytes
    received: bytes
    asked_in: DirectoryId
    workspace_root: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class DecideApproval(OfHolder):
    call: bytes
    is_allowed: bool
    reason: str | None = None


@dataclass(frozen=True, kw_only=True)
class StartCall(OfHolder):
    """Committed before the tool is run."""

    call: bytes
    received: bytes


@dataclass(frozen=True, kw_only=True)
class CompleteCall(OfHolder):
    """`denied`: why the approval that is still open is denied with it."""

    call: bytes
    origin: str
    content: str
    is_error: bool
    denied: str | None = None


@dataclass(frozen=True, kw_only=True)
class DiscardBatch(OfHolder):
    """Forget a batch of which no call was started."""

    turn: bytes


@dataclass(frozen=True, kw_only=True)
class ReconcileCall(OfHolder):
    """After an interruption: complete a call that has no result. It is not run."""

    call: bytes
    accept_unknown_effects: bool


# --- the turn and its batch ------------------------------------------------------------------------


@command(BeginTurn, name="begin_agent_turn")
@refusing
def begin(body: BeginTurn, tx: Transaction) -> Answer | Refusal:
    """Answer: `{"turn_id", "checkpoint_count"}`."""
    message = read_message(body.input, "input")
    session, journal = opened(tx, body)
    after = tool_steps.begun(journal, id_text(body.turn), message)
    _check_links(tx, after.open_turn.input)
    stored.add_turn(tx, session.id, after.open_turn)
    durable_sessions.extend(tx, session.id, lease_end(tx))
    return {"turn_id": id_text(body.turn), "checkpoint_count": 0}


@command(OpenBatch, name="open_tool_batch")
@refusing
def open_batch(body: OpenBatch, tx: Transaction) -> Answer | Refusal:
    """Answer: `{"calls": how many}`."""
    message = read_message(body.message, "message")
    session, journal = opened(tx, body, turn=body.turn)
    received = {call.id: value.hex() for call, value in zip(message.tool_calls, body.received, strict=False)}
    of_round = Round(
        turn_id=id_text(body.turn), number=body.round, usage=dict(body.usage), starts_turn=body.starts_turn
    )
    after = tool_steps.planned(journal, message, of_round, received)
    _check_links(tx, message)
    stored.add_batch(tx, session.id, after.open_batch)
    durable_sessions.extend(tx, session.id, lease_end(tx))
    return {"calls": len(message.tool_calls)}


@command(DiscardBatch, name="discard_tool_batch")
@refusing
def discard(body: DiscardBatch, tx: Transaction) -> Answer | Refusal:
    """Answer: `{"discarded": true}`."""
    session, journal = opened(tx, body, turn=body.turn)
    tool_steps.discarded(journal)
    stored.drop_batch(tx, session.id)
    durable_sessions.extend(tx, session.id, lease_end(tx))
    return {"discarded": True}


# --- its calls -------------------------------------------------------------------------------------


@command(AskApproval, name="ask_tool_approval")
@refusing
def ask(body: AskApproval, tx: Transaction) -> Answer | Refusal:
    """Answer: `{"call_id", "state"}`, as of every step of a call."""

    def step(journal: Journal) -> Journal:
        call = journal.open_batch.invocation(id_text(body.call)).call
        event = ApprovalRequested(
            call_id=call.id,
            tool_name=call.name,
            arguments=call.arguments,
            workspace_root=body.workspace_root,
            workspace_host=body.asked_in.host,
            workspace_device=body.asked_in.device,
            workspace_inode=body.asked_in.inode,
            reason=body.reason,
        )
        return tool_steps.audited(journal, event, body.received.hex())

    return _step(tx, body, body.call, step)


@command(DecideApproval, name="decide_tool_approval")
@refusing
def decide(body: DecideApproval, tx: Transaction) -> Answer | Refusal:
    event = ApprovalResolved(call_id=id_text(body.call), is_allowed=body.is_allowed, reason=body.reason)
    return _step(tx, body, body.call, lambda journal: tool_steps.audited(journal, event))


@command(StartCall, name="start_tool_call")
@refusing
def start(body: StartCall, tx: Transaction) -> Answer | Refusal:
    call_id = id_text(body.call)
    return _step(
        tx, body, body.call, lambda journal: tool_steps.started(journal, call_id, body.received.hex())
    )


@command(CompleteCall, name="complete_tool_call")
@refusing
def complete(body: CompleteCall, tx: Transaction) -> Answer | Refusal:
    """A call that was asked about and not decided is denied with its completion as `not_executed`."""
    if body.origin not in (Origin.TOOL, Origin.UNCERTAIN, Origin.NOT_EXECUTED):
        raise Invalid("origin: one of tool, uncertain, not_executed")
    call_id, origin = id_text(body.call), Origin(body.origin)
    output = ToolOutput(body.content, body.is_error)

    def step(journal: Journal) -> Journal:
        if origin is Origin.TOOL:
            told = tool_steps.told_of_denial(journal, call_id, output)
            return tool_steps.completed(journal, call_id, told, origin)
        denied = tool_steps.denial(journal, call_id, body.denied)
        return tool_steps.completed(journal, call_id, output, origin, denied)

    return _step(tx, body, body.call, step)


@command(ReconcileCall, name="reconcile_tool_call")
@refusing
def reconcile(body: ReconcileCall, tx: Transaction) -> Answer | Refusal:
    """A call with a result stays as it is, so this may be sent again after any crash."""
    call_id = id_text(body.call)
    return _step(
        tx,
        body,
        body.call,
        lambda journal: tool_steps.reconciled(
            journal, call_id, accept_unknown_effects=body.accept_unknown_effects
        ),
    )


def opened(
    tx: Transaction, body: OfHolder, *, turn: bytes | None = None, expected: int | None = None
) -> tuple[DurableSession, Journal]:
    """The session, held and replayed, and its journal. With `turn`: the one that must be open."""
    session = held(
        tx,
        body.session,
        body.lease_hash,
        body.directory,
        expected_last_sequence=expected,
        must_have_replayed=True,
    )
    journal = stored.journal(tx, session.id, body.directory.id)
    if turn is not None and journal.open_turn.turn_id != id_text(turn):
        raise Conflict("another turn is open in this session")
    return session, journal


def _step(
    tx: Transaction, body: OfHolder, call: bytes, step: Callable[[Journal], Journal]
) -> Mapping[str, Any]:
    session, journal = opened(tx, body)
    call_id = id_text(call)
    after = step(journal)
    if after is not journal:
        stored.save_call(tx, session.id, after.open_batch, call_id)
    durable_sessions.extend(tx, session.id, lease_end(tx))
    return {"call_id": call_id, "state": after.open_batch.invocation(call_id).state.value}


def _check_links(tx: Transaction, message: Message) -> None:
    check_assets(tx, [tool_checkpoint.event_of(message)])
