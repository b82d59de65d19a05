"""What one turn of an agent may write into its session, reserved before a tool runs: a result that was bought with an
effect must never be the one that does not fit."""

from __future__ import annotations

from typing import Final

from memory_core import limits
from memory_core.domain.agent_message import payload
from memory_core.domain.audit_event import record
from memory_core.domain.json_fields import json_text, utf8_bytes
from memory_core.domain.tool_journal import ActiveTurn, Batch
from memory_core.errors import Invalid

#: Of one call: asked, decided, started, completed, and its result.
_EVENTS_PER_CALL: Final = 5
#: A byte of text costs up to six in JSON, and an output is written twice, as an event and as a message.
_WRITTEN_PER_OUTPUT_BYTE: Final = 12
_FRAME_BYTES: Final = 4 * limits.KIB
_ASKED_BYTES: Final = 64 * limits.KIB


def reserve(turn: ActiveTurn, batch: Batch) -> None:
    """Refuse (`Invalid`) a batch whose largest possible outcome would not fit into what is left of its turn.

    Events: written + planned + 5 x calls. Bytes: written + planned + 12 x all outputs + per call its frames, its
    question and its arguments once more.
    """
    calls = len(batch.invocations)
    arguments = sum(argument_bytes(batch))
    if arguments > limits.TURN_TOOL_ARGUMENTS_MAX_BYTES:
        raise Invalid(f"the arguments of a round are at most {limits.TURN_TOOL_ARGUMENTS_MAX_BYTES} bytes")
    events = turn.event_count + len(batch.messages) + len(batch.audit) + _EVENTS_PER_CALL * calls
    if events > limits.AGENT_TURN_EVENTS_MAX:
        raise Invalid(f"the turn would write more than {limits.AGENT_TURN_EVENTS_MAX} events; end it")
    outputs = _WRITTEN_PER_OUTPUT_BYTE * limits.TURN_TOOL_OUTPUT_MAX_BYTES + _FRAME_BYTES * calls
    asked = calls * (_WRITTEN_PER_OUTPUT_BYTE * _FRAME_BYTES + _ASKED_BYTES) + arguments
    if turn.event_bytes + planned_bytes(batch) + outputs + asked > limits.AGENT_TURN_MAX_BYTES:
        raise Invalid(
            f"the turn could come to more than {limits.AGENT_TURN_MAX_BYTES} bytes; end it and begin another one"
        )


def argument_bytes(batch: Batch) -> list[int]:
    """The arguments of each call, in bytes of JSON."""
    return [utf8_bytes(json_text(dict(each.call.arguments))) for each in batch.invocations]


def planned_bytes(batch: Batch) -> int:
    """Messages and audit of a batch, in bytes of JSON as the transcript will have them."""
    messages = sum(utf8_bytes(json_text(payload(message))) for message in batch.messages)
    return messages + sum(
        utf8_bytes(json_text(record(event, ordinal))) for ordinal, event in enumerate(batch.audit)
    )
