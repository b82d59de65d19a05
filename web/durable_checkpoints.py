"""Checkpoints and recovery of a journaled turn over HTTP: what ends a round, a turn, or one that was interrupted. See docs/durable-sessions.md.

What a checkpoint writes is in the journal. More of it than one command may write is staged by commands of its own, each of which may be
repeated; the last command, which has the caller's key, then finds it there.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgspec
from flask import Blueprint, Response, request

from memory_core import limits
from memory_core.commands.durable_lease import find
from memory_core.commands.durable_sessions import ReleaseLease
from memory_core.commands.tool_checkpoints import (
    CheckpointRound,
    Ending,
    EndTurn,
    FailTurn,
    PublishRecovery,
    StageCheckpoint,
)
from memory_core.commands.tool_journal import ReconcileCall
from memory_core.domain import tool_steps
from memory_core.domain.agent_message import payload, read_message
from memory_core.domain.audit_event import payload as event_payload
from memory_core.domain.tool_journal import Batch, CallState, Journal
from memory_core.errors import CoreError, Corrupt, Invalid
from memory_core.ids import id_bytes
from memory_core.store import tool_journal
from web import leftovers
from web.answers import submitted
from web.auth import current, needs
from web.bodies import read_as
from web.durable import DEPTH_MAX, Here, small
from web.durable_journal import audit_events, holder_of, sent, uuid7
from web.identity import CommandId
from web.parts import Parts

logger = logging.getLogger(__name__)


class Checkpoint(Here, kw_only=True):
    turn_id: str
    terminal: bool
    message: dict[str, Any] | None = None
    audit: list[Any] = msgspec.field(default_factory=list)
    failed: str | None = None
    expected_last_sequence: int | None = None


class Recover(Here, kw_only=True):
    accept_unknown_effects: bool = False
    expected_last_sequence: int | None = None


def blueprint(parts: Parts) -> Blueprint:
    routes = Blueprint("durable_checkpoints", __name__, url_prefix="/api/v1/durable-sessions")

    @routes.post("/<text>/checkpoint")
    @needs("write")
    def _checkpoint(text: str) -> Response:
        asked = read_as(Checkpoint, limits.REQUEST_BODY_MAX_BYTES, DEPTH_MAX)
        command = _checkpoint_of(parts, text, asked)
        leftovers.clear(parts, command.session, command.lease_hash)
        if not isinstance(command, FailTurn):
            waiting = _staged(parts, command)
            if waiting is not None:
                return submitted(waiting)
        return sent(parts, command)

    @routes.post("/<text>/recover")
    @needs("write")
    def _recover(text: str) -> Response:
        return _recovered(parts, text, small(Recover))

    return routes


def _checkpoint_of(parts: Parts, text: str, asked: Checkpoint) -> CheckpointRound | EndTurn | FailTurn:
    holder = {
        **holder_of(parts, text, asked),
        "turn": uuid7("turn_id", asked.turn_id),
        "expected_last_sequence": asked.expected_last_sequence,
    }
    audit = [event_payload(event) for event in audit_events(asked.audit)]
    if asked.failed is not None:
        if not asked.terminal or asked.message is not None:
            raise Invalid("a turn that failed is terminal and has no message")
        return FailTurn(**holder, error=asked.failed, audit=audit)
    if asked.terminal:
        message = None if asked.message is None else payload(read_message(asked.message, "message"))
        return EndTurn(**holder, message=message, audit=audit)
    if asked.message is not None or audit:
        raise Invalid("the checkpoint of a round sends nothing that is journaled: no message, no audit")
    return CheckpointRound(**holder)


def _staged(parts: Parts, closing: CheckpointRound | EndTurn | PublishRecovery) -> Mapping[str, Any] | None:
    """Stage what `closing` will write, where that is more than one command may. What was answered, where the wait was over first.

    The caller's key is that of `closing`: where it took effect meanwhile (the request was sent twice), its answer is the answer.
    """
    context = parts.context(current(), request.environ)
    with parts.database.snapshot() as reading:
        if context.was_sent(reading):
            return None
        if tool_journal.checkpoint_bytes(reading, closing.session) <= limits.CHECKPOINT_SLICE_MAX_BYTES:
            return None
    command = StageCheckpoint(
        session=closing.session,
        lease_hash=closing.lease_hash,
        directory=closing.directory,
        turn=None if isinstance(closing, PublishRecovery) else closing.turn,
        ending=_ENDINGS[type(closing)],
        is_first=True,
        audit=closing.audit if isinstance(closing, EndTurn) else [],
        expected_last_sequence=closing.expected_last_sequence,
    )
    while True:
        try:
            answer = _submit_own(parts, command)
        except CoreError:
            with parts.database.snapshot() as reading:
                if context.was_sent(reading):
                    return None
            raise
        if answer.get("status") == "pending":
            return answer
        if answer["staged"] == answer["of"]:
            return None
        command = replace(command, is_first=False)


_ENDINGS: Mapping[type[Any], Ending] = {
    CheckpointRound: "round",
    EndTurn: "turn",
    PublishRecovery: "recovery",
}


# --- recovery --------------------------------------------------------------------------------------


def _recovered(parts: Parts, text: str, asked: Recover) -> Response:
    """Each call is reconciled by a command of its own, then one command writes all of it: a recovery that was cut goes on where it
    was when it is asked for again."""
    holder = holder_of(parts, text, asked)
    context = parts.context(current(), request.environ)
    publish = PublishRecovery(**holder, expected_last_sequence=asked.expected_last_sequence)
    with parts.database.snapshot() as reading:
        was_published = context.was_sent(reading)
    if not was_published:
        leftovers.clear(parts, publish.session, publish.lease_hash)
        try:
            journal = _held_journal(parts, holder)
            if journal.batch is not None:
                for command in _reconciling(journal.batch, holder, asked.accept_unknown_effects):
                    answer = _submit_own(parts, command)
                    if answer.get("status") == "pending":
                        return submitted(answer)
            waiting = _staged(parts, publish)
            if waiting is not None:
                return submitted(waiting)
        except Corrupt:
            _give_back(parts, holder)
            raise
    return submitted(context.submit(publish))


def _held_journal(parts: Parts, holder: Mapping[str, Any]) -> Journal:
    """The journal as its holder may change it. Raises as the commands do, so that nothing is begun that cannot be ended."""
    with parts.database.snapshot() as reading:
        session = find(reading, holder["session"], current().principal)
        session.check_client_writes()
        session.check_replayed(holder["lease_hash"])
        session.check_directory(holder["directory"])
        session.check_lease(holder["lease_hash"], parts.clock.now_us())
        return tool_journal.journal(reading, session.id, holder["directory"])


def _reconciling(
    batch: Batch, holder: Mapping[str, Any], accept_unknown_effects: bool
) -> list[ReconcileCall]:
    """One command for each call without a result. Raises `UncertainCalls` before any of them is sent."""
    tool_steps.check_effects(batch, accept_unknown_effects=accept_unknown_effects)
    return [
        ReconcileCall(**holder, call=id_bytes(each.call.id), accept_unknown_effects=accept_unknown_effects)
        for each in batch.invocations
        if each.state is not CallState.COMPLETED
    ]


def _submit_own(parts: Parts, command: object) -> Mapping[str, Any]:
    """A command that may be sent again and again: the journal's own state makes it take effect once."""
    command_id = CommandId(value=parts.gate.ids.new(), is_foreign=False)
    return parts.gate.submit(command, command_id, current(), seconds=limits.REPLY_WAIT_SECONDS)


def _give_back(parts: Parts, holder: Mapping[str, Any]) -> None:
    """Nobody can go on with a damaged journal, and nobody has to wait for its lease."""
    try:
        _submit_own(parts, ReleaseLease(session=holder["session"], lease_hash=holder["lease_hash"]))
    except CoreError:
        logger.warning(
            "A damaged journal's lease was not given back; it ends by itself.",
            extra={"action": "journal_lease_kept"},
        )
