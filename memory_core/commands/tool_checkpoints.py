"""Checkpoints: what of a journaled turn becomes part of the transcript, and that the journal is then without it.

A checkpoint is as long as the results of its calls, each of which it writes twice. One that is more than a command may write is staged
first (`StageCheckpoint`), from the journal itself: the closing command then finds that what is staged is what it would write.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from memory_core import limits
from memory_core.commands import Answer, command, durable_staging
from memory_core.commands.durable_lease import refusing
from memory_core.commands.durable_staging import Staged
from memory_core.commands.durable_turns import SUBSTANCE, append_turn, check_assets, check_turn
from memory_core.commands.tool_journal import OfHolder, opened
from memory_core.domain import audit_event, tool_checkpoint, transcript_digest
from memory_core.domain.agent_message import read_message
from memory_core.domain.audit_event import AuditEvent
from memory_core.domain.command import Refusal
from memory_core.domain.durable_session import DurableSession
from memory_core.domain.session_event import NewEvent
from memory_core.domain.tool_checkpoint import Checkpoint
from memory_core.domain.tool_journal import Journal
from memory_core.errors import Conflict, Invalid
from memory_core.ids import id_text
from memory_core.store import session_events
from memory_core.store import tool_journal as stored
from memory_core.store.transaction import Reading, Transaction

#: Which command will close a batch that is complete: `CheckpointRound`, `EndTurn`, `PublishRecovery`.
Ending = Literal["round", "turn", "recovery"]


@dataclass(frozen=True, kw_only=True)
class CheckpointRound(OfHolder):
    """Every call has its result: the round becomes a turn of the transcript."""

    turn: bytes
    expected_last_sequence: int | None = None


@dataclass(frozen=True, kw_only=True)
class EndTurn(OfHolder):
    """With the assistant's last message, or (None) with the open batch, which is complete."""

    turn: bytes
    message: dict[str, Any] | None
    audit: list[dict[str, Any]]
    expected_last_sequence: int | None = None


@dataclass(frozen=True, kw_only=True)
class FailTurn(OfHolder):
    turn: bytes
    error: str
    audit: list[dict[str, Any]]
    expected_last_sequence: int | None = None


@dataclass(frozen=True, kw_only=True)
class PublishRecovery(OfHolder):
    """After an interruption: what is known of the turn becomes part of the transcript, and the journal is empty."""

    expected_last_sequence: int | None = None


@dataclass(frozen=True, kw_only=True)
class StageCheckpoint(OfHolder):
    """The next slice of what the closing command of a complete batch will write. `is_first` begins anew."""

    #: None: whichever is open.
    turn: bytes | None
    ending: Ending
    is_first: bool
    #: Of `EndTurn`.
    audit: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    expected_last_sequence: int | None = None


@command(StageCheckpoint, name="stage_checkpoint")
@refusing
def stage(body: StageCheckpoint, tx: Transaction) -> Answer | Refusal:
    """Answer: `{"staged", "of"}`: how many of the checkpoint's events are staged now. Whoever asks once more goes on where it is."""
    audit = _audit(body.audit)
    session, journal = opened(tx, body, turn=body.turn, expected=body.expected_last_sequence)
    events = _closing(journal, body.ending, audit).events
    check_turn(events)
    before = None if body.is_first else durable_staging.so_far(tx, session)
    if not body.is_first and (before is None or before.turn_size != len(events)):
        raise Conflict(
            "this checkpoint is written by another request as well; look at the journal, then ask again"
        )
    some = _next_slice(events, before.count if before else 0)
    if not some:
        return {"staged": len(events), "of": len(events)}
    check_assets(tx, some)
    count = durable_staging.stage_events(tx, session, some, before=before, turn_size=len(events))
    return {"staged": count, "of": len(events)}


@command(CheckpointRound, name="checkpoint_tool_round")
@refusing
def checkpoint(body: CheckpointRound, tx: Transaction) -> Answer | Refusal:
    """Answer: as of a turn that is appended: `{"turn_id", "first_sequence", "last_sequence", "digest"}`."""
    session, journal = opened(tx, body, turn=body.turn, expected=body.expected_last_sequence)
    return _write(tx, session, tool_checkpoint.round_done(journal))


@command(EndTurn, name="end_agent_turn")
@refusing
def end(body: EndTurn, tx: Transaction) -> Answer | Refusal:
    """Answer: as `checkpoint`."""
    message = None if body.message is None else read_message(body.message, "message")
    audit = _audit(body.audit)
    session, journal = opened(tx, body, turn=body.turn, expected=body.expected_last_sequence)
    return _write(tx, session, tool_checkpoint.turn_done(journal, message, audit))


@command(FailTurn, name="fail_agent_turn")
@refusing
def fail(body: FailTurn, tx: Transaction) -> Answer | Refusal:
    """Answer: as `checkpoint`."""
    audit = _audit(body.audit)
    session, journal = opened(tx, body, turn=body.turn, expected=body.expected_last_sequence)
    return _write(tx, session, tool_checkpoint.turn_failed(journal, body.error, audit))


@command(PublishRecovery, name="publish_turn_recovery")
@refusing
def publish_recovery(body: PublishRecovery, tx: Transaction) -> Answer | Refusal:
    """Answer: `{"session_id", "turn_id", "exact_results", "uncertain_results", "not_executed_results",
    "interrupted_turn"}`, and where it was written, as `checkpoint`."""
    session, journal = opened(tx, body, expected=body.expected_last_sequence)
    if journal.turn is None:
        raise Invalid("there is nothing to recover: no turn of this session is open")
    written, report = tool_checkpoint.recovered(journal)
    return {
        **_write(tx, session, written),
        "session_id": id_text(session.id),
        "turn_id": journal.turn.turn_id,
        "exact_results": report.exact,
        "uncertain_results": report.uncertain,
        "not_executed_results": report.not_executed,
        "interrupted_turn": report.is_turn,
    }


def _closing(journal: Journal, ending: Ending, audit: Sequence[AuditEvent]) -> Checkpoint:
    """What the closing command makes of a complete batch. Raises as it does."""
    if journal.batch is None:
        raise Invalid("no tool batch is open in this session: there is nothing to stage")
    if ending == "round":
        return tool_checkpoint.round_done(journal)
    if ending == "turn":
        return tool_checkpoint.turn_done(journal, None, audit)
    return tool_checkpoint.recovered(journal)[0]


def _next_slice(events: Sequence[NewEvent], start: int) -> Sequence[NewEvent]:
    """The events from `start` on that one command may write: one at least, where there are any."""
    size, end = 0, start
    while end < len(events) and end - start < limits.TURN_SLICE_EVENTS_MAX:
        size += len(events[end].payload_json.encode())
        if end > start and size > limits.CHECKPOINT_SLICE_MAX_BYTES:
            break
        end += 1
    return events[start:end]


def _write(tx: Transaction, session: DurableSession, checkpoint: Checkpoint) -> dict[str, Any]:
    check_turn(checkpoint.events)
    check_assets(tx, checkpoint.events)
    staged = durable_staging.so_far(tx, session)
    if staged is not None and _is_staged(tx, session, staged, checkpoint.events):
        substance = sum(event.kind in SUBSTANCE for event in checkpoint.events)
        written = durable_staging.publish_staged(tx, session, staged, substance=substance)
    else:
        written = append_turn(tx, session, checkpoint.events)
    stored.drop_batch(tx, session.id)
    if checkpoint.journal.turn is None:
        stored.drop_turn(tx, session.id)
    else:
        stored.save_turn(tx, session.id, checkpoint.journal.turn)
    return written.answer()


def _is_staged(read: Reading, session: DurableSession, staged: Staged, events: Sequence[NewEvent]) -> bool:
    """Whether just these events are what is staged: they hash to the digest that its last row has."""
    if (staged.count, staged.turn_size) != (len(events), len(events)):
        return False
    after = session.last_sequence
    rows = session_events.heads_between(read, session.id, after=after, through=after + len(events))
    digest = session.digest
    if len(rows) != len(events):
        return False
    for index, (event, row) in enumerate(zip(events, rows, strict=True)):
        digest = transcript_digest.following(
            digest,
            id=row["id"],
            sequence=after + index + 1,
            turn_id=staged.turn_id,
            turn_index=index,
            turn_size=staged.turn_size,
            kind=event.kind.value,
            payload_json=event.payload_json,
            created_at=row["created_at"],
        )
        if digest != row["digest"]:
            return False
    return True


def _audit(payloads: Sequence[Mapping[str, Any]]) -> list[AuditEvent]:
    return [audit_event.read_event(value, f"audit[{index}]") for index, value in enumerate(payloads)]
