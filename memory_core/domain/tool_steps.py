"""The steps of a journal: each is a function from a journal to the next one.

A step refuses what the next load would refuse, so none can leave a journal that nobody can close. Nothing here runs a
tool, now or when a journal is found again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from memory_core.domain import agent_message, tool_budget, tool_grammar
from memory_core.domain.agent_message import Message, ToolCall, call_payload
from memory_core.domain.audit_event import (
    TOOL_CALLS,
    ApprovalRequested,
    ApprovalResolved,
    AuditEvent,
    CallEvent,
    CallPlanned,
    ModelCompleted,
    ModelStarted,
    ToolCompleted,
    ToolOutput,
    ToolStarted,
    TurnStarted,
)
from memory_core.domain.json_fields import json_text
from memory_core.domain.tool_journal import (
    DENIED,
    INTERRUPTED_TEXT,
    NOT_EXECUTED_TEXT,
    UNCERTAIN_TEXT,
    ActiveTurn,
    Batch,
    CallState,
    Invocation,
    Journal,
    Origin,
    denial_text,
)
from memory_core.errors import Conflict, Invalid, UncertainCalls


def begun(journal: Journal, turn_id: str, message: Message) -> Journal:
    """Before a model is asked: the turn's input is kept. One turn at a time."""
    if journal.turn is not None:
        raise Conflict("a turn is open in this session already; end it, or recover the session")
    agent_message.check_input(message)
    return replace(journal, turn=ActiveTurn(turn_id=turn_id, input=message))


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One round of a model that ends with calls of tools."""

    turn_id: str
    #: From 1; it comes after those in the transcript.
    number: int
    usage: Mapping[str, int] = field(default_factory=dict[str, int], hash=False)
    #: Whether the turn begins with it.
    starts_turn: bool = False


def opening(of: Round, calls: Sequence[ToolCall]) -> tuple[AuditEvent, ...]:
    """The audit that a batch begins with."""
    turn_id, number = of.turn_id, of.number
    return (
        *([TurnStarted(turn_id=turn_id)] if of.starts_turn else []),
        ModelStarted(turn_id=turn_id, round=number),
        *(CallPlanned(turn_id=turn_id, round=number, call=call) for call in calls),
        ModelCompleted(turn_id=turn_id, round=number, finish_reason=TOOL_CALLS, usage=of.usage),
    )


def round_of(turn_id: str, audit: Sequence[AuditEvent], calls: Sequence[ToolCall]) -> Round:
    """The round that an audit tells of. Refuses one that is not exactly what these calls' batch begins with."""
    ended = audit[-1] if audit else None
    if isinstance(ended, ModelCompleted):
        starts = isinstance(audit[0], TurnStarted)
        found = Round(turn_id=turn_id, number=ended.round, usage=ended.usage, starts_turn=starts)
        if opening(found, calls) == tuple(audit):
            return found
    raise Invalid(
        "the audit of a batch is model_started, a tool_call for each call in its order, and model_completed with"
        f" finish_reason {TOOL_CALLS!r}, all of one turn and round; turn_started may stand before them"
    )


def planned(
    journal: Journal, message: Message, of: Round, received: Mapping[str, str] | None = None
) -> Journal:
    """Before any call of a round: all of them are written down. `received`: each call's hash as it came."""
    turn = journal.open_turn
    if journal.batch is not None:
        raise Conflict("a tool batch is open in this session already; checkpoint or discard it")
    messages = (message,) if turn.checkpoint_count else (turn.input, message)
    batch = Batch(
        turn_id=turn.turn_id,
        messages=messages,
        audit=opening(of, message.tool_calls),
        invocations=tuple(
            Invocation(call=call, received_hash=(received or {}).get(call.id, ""))
            for call in message.tool_calls
        ),
    )
    tool_budget.reserve(turn, batch)
    return _checked(replace(journal, batch=batch))


def audited(
    journal: Journal, event: ApprovalRequested | ApprovalResolved, received_hash: str | None = None
) -> Journal:
    """A person is asked about a call, or has decided."""
    batch = journal.open_batch
    found = batch.invocation(event.call_id)
    check_received(found, received_hash)
    if found.state is not CallState.PLANNED:
        raise Conflict(f"the call is {found.state.value}; nobody can be asked about it any more")
    return _checked(replace(journal, batch=replace(batch, audit=(*batch.audit, event))))


def started(journal: Journal, call_id: str, received_hash: str | None = None) -> Journal:
    """Before a tool is run, and committed before it is."""
    batch = journal.open_batch
    found = batch.invocation(call_id)
    if found.state is not CallState.PLANNED:
        raise Conflict(f"the call is {found.state.value}; it is started once")
    check_received(found, received_hash)
    event = ToolStarted(call_id=call_id, tool_name=found.call.name)
    return _checked(_with(journal, replace(found, state=CallState.STARTED), event))


def completed(
    journal: Journal,
    call_id: str,
    output: ToolOutput,
    origin: Origin = Origin.TOOL,
    denied: ApprovalResolved | None = None,
) -> Journal:
    """A call has its result; `denied` ends an approval that nobody decided."""
    found = journal.open_batch.invocation(call_id)
    if found.state is CallState.COMPLETED:
        raise Conflict("the call has its result already")
    event = ToolCompleted(call_id=call_id, tool_name=found.call.name, output=output)
    ended = replace(found, state=CallState.COMPLETED, output=output, origin=origin)
    return _checked(_with(journal, ended, *([denied] if denied else []), event))


def closed(journal: Journal, call_id: str) -> Journal:
    """Complete a call that has no result and will get none: a call that was not started is `not_executed`, whatever
    was asked or allowed before; one that was started is `uncertain`. A call with a result stays as it is."""
    found = journal.open_batch.invocation(call_id)
    if found.state is CallState.COMPLETED:
        return journal
    if found.state is CallState.STARTED:
        return completed(journal, call_id, ToolOutput(UNCERTAIN_TEXT, is_error=True), Origin.UNCERTAIN)
    output = ToolOutput(NOT_EXECUTED_TEXT, is_error=True)
    return completed(journal, call_id, output, Origin.NOT_EXECUTED, denial(journal, call_id))


def denial(journal: Journal, call_id: str, reason: str | None = None) -> ApprovalResolved | None:
    """What ends the approval of a call that is not going to run; None where none is open."""
    events = journal.open_batch.events_of(call_id)
    if not events or not isinstance(events[-1], ApprovalRequested):
        return None
    return ApprovalResolved(call_id=call_id, is_allowed=False, reason=reason or INTERRUPTED_TEXT)


def told_of_denial(journal: Journal, call_id: str, output: ToolOutput) -> ToolOutput:
    """The output of a call that was denied, in the words of the denial that is kept: of two copies of one reason, redaction may
    have changed one. Any other output is as it was."""
    decisions = [e for e in journal.open_batch.events_of(call_id) if isinstance(e, ApprovalResolved)]
    if not decisions or decisions[0].is_allowed or not output.content.startswith(DENIED):
        return output
    return ToolOutput(denial_text(decisions[0].reason), output.is_error)


def reconciled(journal: Journal, call_id: str, *, accept_unknown_effects: bool) -> Journal:
    """`closed`, after an interruption: a call that was started needs somebody who accepts that it may have run."""
    check_effects(journal.open_batch, accept_unknown_effects=accept_unknown_effects)
    return closed(journal, call_id)


def discarded(journal: Journal) -> Journal:
    """Forget a batch of which no call was started."""
    if not journal.open_batch.is_untouched:
        raise Conflict(
            "a call of this batch was started or has its result: complete all of them, then checkpoint"
        )
    return replace(journal, batch=None)


def check_effects(batch: Batch, *, accept_unknown_effects: bool) -> None:
    """Refuse (`UncertainCalls`) while a call was started and has no result, unless that is accepted."""
    uncertain = [each.call for each in batch.invocations if each.state is CallState.STARTED]
    if uncertain and not accept_unknown_effects:
        raise UncertainCalls(
            f"{len(uncertain)} tool call(s) were started and nobody knows whether they had their effect; look, then"
            " recover with accept_unknown_effects",
            detail={"calls": [{"call_id": call.id, "tool_name": call.name} for call in uncertain]},
        )


def check_received(found: Invocation, received_hash: str | None) -> None:
    """What is asked about or started must be the call that was planned, as it came then."""
    if received_hash is not None and found.received_hash and received_hash != found.received_hash:
        raise Invalid("this is not the call that was planned: its tool or its arguments differ")


def received_text(call: ToolCall) -> bytes:
    """What the hash of a received call is made of."""
    return json_text(call_payload(call)).encode()


def _with(journal: Journal, changed: Invocation, *events: CallEvent) -> Journal:
    batch = journal.open_batch
    invocations = tuple(changed if each.call.id == changed.call.id else each for each in batch.invocations)
    return replace(journal, batch=replace(batch, audit=(*batch.audit, *events), invocations=invocations))


def _checked(journal: Journal) -> Journal:
    tool_grammar.check(journal)
    return journal
