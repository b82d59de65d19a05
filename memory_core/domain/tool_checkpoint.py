"""What of a journal reaches the transcript: a round with all its results, the end of a turn, or how it failed.

Each checkpoint is one turn of the transcript: its first message, all its audit events, the messages after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from memory_core import limits
from memory_core.domain import agent_message, tool_grammar
from memory_core.domain.agent_message import Message, Role
from memory_core.domain.audit_event import AuditEvent, TurnCompleted, TurnFailed, record
from memory_core.domain.json_fields import checked_text, json_text, utf8_bytes
from memory_core.domain.session_event import AssetLink, NewEvent, TranscriptKind
from memory_core.domain.tool_journal import Journal, Origin
from memory_core.errors import Conflict, Invalid

FAILED: Final = "failed_turn"
FAILED_LATER: Final = "failed_turn_after_checkpoint"
_VERSION: Final = 1
#: What the transcript says of a turn that was found open.
INTERRUPTED: Final = "the turn was interrupted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """Events to append as one turn of the transcript, and the journal after that."""

    events: tuple[NewEvent, ...]
    journal: Journal


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """What became of the calls of an interrupted turn; `is_turn` where it had none."""

    exact: int = 0
    uncertain: int = 0
    not_executed: int = 0
    is_turn: bool = False


def round_done(journal: Journal) -> Checkpoint:
    """Every call has its result: the round is written and the turn goes on."""
    batch = journal.open_batch
    if not batch.is_complete:
        raise Conflict("calls of this batch have no result yet; complete each of them first")
    return _written(journal, batch.messages + batch.results, batch.audit)


def turn_done(journal: Journal, message: Message | None, audit: Sequence[AuditEvent]) -> Checkpoint:
    """The turn ends: with the assistant's last message, or with an open batch that is complete (`message` None)."""
    turn = journal.open_turn
    if journal.batch is not None:
        if message is not None:
            raise Conflict("checkpoint the open tool batch before the turn's last message")
        if len(audit) != 1 or not isinstance(audit[0], TurnCompleted) or audit[0].turn_id != turn.turn_id:
            raise Invalid("a turn that ends with its tool batch adds turn_completed and nothing else")
        written = round_done(
            replace(journal, batch=replace(journal.batch, audit=(*journal.batch.audit, *audit)))
        )
        return _ended(written)
    if message is None or message.role is not Role.ASSISTANT or message.tool_calls:
        raise Invalid("a turn ends with a message of the assistant that calls no tool")
    tool_grammar.check_turn_events(turn, audit, is_failed=False)
    messages = (message,) if turn.checkpoint_count else (turn.input, message)
    return _ended(_written(journal, messages, audit))


def turn_failed(journal: Journal, error: str, audit: Sequence[AuditEvent]) -> Checkpoint:
    """The turn ends without an answer. What its checkpoints wrote stays; without one its input is kept with the error.

    A batch of which no call was started is forgotten; with any other one it is refused.
    """
    turn = journal.open_turn
    if journal.batch is not None and not journal.batch.is_untouched:
        raise Conflict(
            "a call of the open batch was started: complete all of them and checkpoint, then fail the turn"
        )
    tool_grammar.check_turn_events(turn, audit, is_failed=True)
    return _ended(_written(replace(journal, batch=None), (), audit, _failure(journal, error)))


def recovered(journal: Journal) -> tuple[Checkpoint, Recovery]:
    """What an interrupted turn leaves in the transcript, once each of its calls is completed; never runs anything."""
    turn = journal.open_turn
    failed = TurnFailed(turn_id=turn.turn_id, message=INTERRUPTED)
    batch = journal.batch
    if batch is None:
        written = _written(journal, (), (failed,), _failure(journal, INTERRUPTED))
        return _ended(written), Recovery(is_turn=True)
    if not batch.is_complete:
        raise Conflict("calls of the interrupted batch have no result yet; reconcile each of them first")
    written = _written(journal, batch.messages + batch.results, (*batch.audit, failed))
    origins = [each.origin for each in batch.invocations]
    return _ended(written), Recovery(
        exact=origins.count(Origin.TOOL),
        uncertain=origins.count(Origin.UNCERTAIN),
        not_executed=origins.count(Origin.NOT_EXECUTED),
    )


def kind_of(message: Message) -> TranscriptKind:
    """The kind of event that a message is written as."""
    if message.role is Role.ASSISTANT and message.tool_calls:
        return TranscriptKind.TOOL_CALL
    return _KINDS[message.role]


_KINDS: Final = {
    Role.SYSTEM: TranscriptKind.SYSTEM,
    Role.USER: TranscriptKind.USER_MESSAGE,
    Role.ASSISTANT: TranscriptKind.ASSISTANT_MESSAGE,
    Role.TOOL: TranscriptKind.TOOL_RESULT,
}


def event_of(message: Message) -> NewEvent:
    """The event that a message becomes, with the assets that it refers to."""
    return _event(kind_of(message), agent_message.payload(message), _links(message))


def _links(message: Message) -> tuple[AssetLink, ...]:
    return tuple(
        AssetLink(sha256=bytes.fromhex(each.sha256), bytes=each.bytes, kind=each.kind)
        for each in message.assets
    )


def _event(kind: TranscriptKind, payload: dict[str, Any], assets: tuple[AssetLink, ...] = ()) -> NewEvent:
    return NewEvent(kind=kind, payload_json=json_text(payload), assets=assets)


def _failure(journal: Journal, error: str) -> NewEvent:
    turn = journal.open_turn
    told = checked_text(error, "error", at_least=1, at_most=limits.APPROVAL_TEXT_MAX_BYTES)
    if turn.checkpoint_count:
        return _event(TranscriptKind.ERROR, {"record": FAILED_LATER, "version": _VERSION, "error": told})
    failure = {
        "record": FAILED,
        "version": _VERSION,
        "input": agent_message.payload(turn.input),
        "error": told,
    }
    return _event(TranscriptKind.ERROR, failure, _links(turn.input))


def _written(
    journal: Journal, messages: Sequence[Message], audit: Sequence[AuditEvent], *more: NewEvent
) -> Checkpoint:
    spoken = [event_of(message) for message in messages]
    audited = [_event(TranscriptKind.AUDIT, record(event, ordinal)) for ordinal, event in enumerate(audit)]
    events = (*spoken[:1], *audited, *spoken[1:], *more)
    turn = journal.open_turn
    after = replace(
        turn,
        checkpoint_count=turn.checkpoint_count + 1,
        event_count=turn.event_count + len(events),
        event_bytes=turn.event_bytes + sum(utf8_bytes(event.payload_json) for event in events),
    )
    if after.event_count > limits.AGENT_TURN_EVENTS_MAX or after.event_bytes > limits.AGENT_TURN_MAX_BYTES:
        raise Invalid(
            f"one turn writes at most {limits.AGENT_TURN_EVENTS_MAX} events and {limits.AGENT_TURN_MAX_BYTES} bytes"
        )
    return Checkpoint(events=events, journal=replace(journal, turn=after, batch=None))


def _ended(checkpoint: Checkpoint) -> Checkpoint:
    return replace(checkpoint, journal=replace(checkpoint.journal, turn=None))
