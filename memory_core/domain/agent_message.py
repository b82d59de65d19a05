"""Messages of an agent's history as they are kept: what one may hold, how it is written, and what makes a history whole.

One shape for the journal, the transcript and the client library. A field or a kind of content that is not known
here is refused, never dropped: what comes back from a resume must be what went in.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, cast

from memory_core import limits
from memory_core.domain.capped_json import check_shape
from memory_core.domain.json_fields import UUID7, Fields, checked_text, json_text, utf8_bytes
from memory_core.errors import Invalid

RECORD: Final = "durable_message"
VERSION: Final = 1
#: Names of tools, as models take them.
TOOL_NAME: Final = re.compile(rf"[A-Za-z0-9_-]{{1,{limits.AGENT_TOOL_NAME_MAX_CHARS}}}")
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_PARTS_MAX: Final = limits.EVENT_ASSETS_MAX


class Role(StrEnum):
    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class AssetKind(StrEnum):
    IMAGE = "image"
    AUDIO = "audio"
    VIDEO = "video"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Text:
    data: str


@dataclass(frozen=True, slots=True)
class AssetReference:
    """Bytes that lie beside the transcript, named by their digest (64 hexadecimal digits)."""

    sha256: str
    bytes: int
    kind: AssetKind


Part = Text | AssetReference


@dataclass(frozen=True, slots=True)
class ToolCall:
    """What a model asks a tool to do. `id` is a UUIDv7, used once in a history."""

    id: str
    name: str
    arguments: Mapping[str, Any] = field(hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message; making one checks it (`Invalid`)."""

    role: Role
    content: tuple[Part, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    #: Of a tool message: which call it answers.
    tool_call_id: str | None = None
    reasoning: str | None = None

    def __post_init__(self) -> None:
        _check(self)

    @property
    def text(self) -> str:
        """All its texts, one after the other."""
        return "".join(part.data for part in self.content if isinstance(part, Text))

    @property
    def assets(self) -> tuple[AssetReference, ...]:
        """What it refers to, in its order; the n-th is the asset of ordinal n."""
        return tuple(part for part in self.content if isinstance(part, AssetReference))


def said(role: Role, text: str) -> Message:
    """A message of one text."""
    return Message(role=role, content=(Text(text),))


def tool_answer(call_id: str, text: str) -> Message:
    """What a tool said to a call."""
    return Message(role=Role.TOOL, content=(Text(text),), tool_call_id=call_id)


# --- as JSON -------------------------------------------------------------------------------------


def payload(message: Message) -> dict[str, Any]:
    """The message as it stands in an event."""
    return {
        "record": RECORD,
        "version": VERSION,
        "role": message.role.value,
        "content": [_part_payload(part) for part in message.content],
        "tool_calls": [call_payload(call) for call in message.tool_calls],
        "tool_call_id": message.tool_call_id,
        "reasoning": message.reasoning,
    }


def call_payload(call: ToolCall) -> dict[str, Any]:
    return {"id": call.id, "name": call.name, "arguments": dict(call.arguments)}


def read_message(value: object, where: str = "message") -> Message:
    """The message of a payload. Raises `Invalid` for anything that is not known here."""
    fields = Fields(value, where)
    fields.fixed("record", RECORD)
    fields.fixed("version", VERSION)
    return _message(fields)


def read_plain_message(value: object, where: str = "message") -> Message:
    """A message that some other program wrote: without a record, and `content` may be one text. It refers to no asset."""
    given: object = value
    if isinstance(value, Mapping):
        plain = dict(cast("Mapping[str, Any]", value))
        if isinstance(plain.get("content"), str):
            plain["content"] = [{"type": "text", "data": plain["content"]}]
        given = plain
    message = _message(Fields(given, where))
    if message.assets:
        raise Invalid(f"{where}: only a durable message refers to assets")
    return message


def read_call(value: object, where: str = "call") -> ToolCall:
    fields = Fields(value, where)
    call = ToolCall(
        id=fields.uuid7("id"),
        name=fields.matching("name", TOOL_NAME, "a tool's name"),
        arguments=fields.json_object("arguments"),
    )
    fields.end()
    return call


def _message(fields: Fields) -> Message:
    message = Message(
        role=Role(fields.matching("role", _ROLES, f"one of {', '.join(Role)}")),
        content=fields.items("content", _read_part, at_most=_PARTS_MAX),
        tool_calls=fields.items("tool_calls", read_call, at_most=limits.TOOL_CALLS_PER_ROUND_MAX),
        tool_call_id=fields.optional_text("tool_call_id", at_most=64),
        reasoning=fields.optional_text("reasoning", at_most=limits.MODEL_FIELD_MAX_BYTES),
    )
    fields.end()
    return message


_ROLES: Final = re.compile("|".join(Role))
_KINDS: Final = re.compile("|".join(AssetKind))


def _part_payload(part: Part) -> dict[str, Any]:
    if isinstance(part, Text):
        return {"type": "text", "data": part.data}
    return {"type": "asset", "data": reference_payload(part)}


def reference_payload(reference: AssetReference) -> dict[str, Any]:
    return {"sha256": reference.sha256, "bytes": reference.bytes, "kind": reference.kind.value}


def read_reference(value: object, where: str = "asset") -> AssetReference:
    fields = Fields(value, where)
    reference = AssetReference(
        sha256=fields.matching("sha256", _SHA256, "64 hexadecimal digits in lower case"),
        bytes=fields.integer("bytes", at_least=0, at_most=limits.ASSET_MAX_BYTES),
        kind=AssetKind(fields.matching("kind", _KINDS, f"one of {', '.join(AssetKind)}")),
    )
    fields.end()
    return reference


def _read_part(value: object, where: str) -> Part:
    fields = Fields(value, where)
    sort = fields.text("type", at_most=64)
    if sort == "text":
        part: Part = Text(fields.text("data", at_most=limits.FIELD_REDACTED_MAX_BYTES))
    elif sort == "asset":
        part = read_reference(fields.value("data"), f"{where}.data")
    else:
        raise Invalid(f"{where}: content of the type {sort!r} is not known; it is text or asset")
    fields.end()
    return part


# --- what a message may hold ---------------------------------------------------------------------


def _check(message: Message) -> None:
    where = f"a message of the {message.role.value}"
    for part in message.content:
        if isinstance(part, Text):
            # The gate looks at so much of one text; what lies behind would be cut off unseen.
            checked_text(part.data, f"{where}: one text", at_most=limits.FIELD_REDACTED_MAX_BYTES)
        elif part.kind is AssetKind.OTHER:
            raise Invalid(f"{where}: an asset of the kind 'other' cannot be shown to a model")
    if message.role is not Role.ASSISTANT and (message.tool_calls or message.reasoning is not None):
        raise Invalid(f"{where}: only the assistant reasons and calls tools")
    if (message.role is Role.TOOL) != (message.tool_call_id is not None):
        raise Invalid(f"{where}: a tool's message, and no other, names the call that it answers")
    _CHECKS[message.role](message, where)


def _check_system(message: Message, where: str) -> None:
    if message.assets or not message.text.strip():
        raise Invalid(f"{where}: holds text and nothing else")


def _check_user(message: Message, where: str) -> None:
    if not message.content:
        raise Invalid(f"{where}: is empty")


def _check_assistant(message: Message, where: str) -> None:
    if not (message.content or message.tool_calls or message.reasoning):
        raise Invalid(f"{where}: is empty")
    checked_text(message.text, f"{where}: its text", at_most=limits.MODEL_FIELD_MAX_BYTES)
    checked_text(message.reasoning or "", f"{where}: its reasoning", at_most=limits.MODEL_FIELD_MAX_BYTES)
    if len(message.tool_calls) > limits.TOOL_CALLS_PER_ROUND_MAX:
        raise Invalid(f"{where}: calls more than {limits.TOOL_CALLS_PER_ROUND_MAX} tools at once")
    if len({call.id for call in message.tool_calls}) != len(message.tool_calls):
        raise Invalid(f"{where}: two calls have one id")
    for call in message.tool_calls:
        check_call(call, where)


def check_call(call: ToolCall, where: str = "a call") -> None:
    if not UUID7.fullmatch(call.id):
        raise Invalid(f"{where}: the id of a call must be a UUIDv7 in lower case")
    if not TOOL_NAME.fullmatch(call.name):
        raise Invalid(f"{where}: a tool's name is 1 to {limits.AGENT_TOOL_NAME_MAX_CHARS} of A-Z a-z 0-9 _ -")
    check_shape(
        call.arguments,
        text_max_bytes=limits.FIELD_REDACTED_MAX_BYTES,
        what=f"{where}: the arguments of {call.name}",
    )


def _check_tool(message: Message, where: str) -> None:
    if len(message.content) != 1 or not isinstance(message.content[0], Text):
        raise Invalid(f"{where}: holds exactly one text")
    checked_text(message.text, where, at_least=1, at_most=limits.TOOL_OUTPUT_MAX_BYTES)
    if not UUID7.fullmatch(message.tool_call_id or ""):
        raise Invalid(f"{where}: the id of a call must be a UUIDv7 in lower case")


_CHECKS: Final = {
    Role.SYSTEM: _check_system,
    Role.USER: _check_user,
    Role.ASSISTANT: _check_assistant,
    Role.TOOL: _check_tool,
}


def check_input(message: Message) -> Message:
    """What a turn may begin with: a user's message of at most `TURN_INPUT_MAX_BYTES` as JSON."""
    if message.role is not Role.USER:
        raise Invalid("a turn begins with a message of the user")
    if utf8_bytes(json_text(payload(message))) > limits.TURN_INPUT_MAX_BYTES:
        raise Invalid(
            f"a turn's input is at most {limits.TURN_INPUT_MAX_BYTES} bytes; send long data as assets"
        )
    return message


# --- what a history may be -----------------------------------------------------------------------


def check_history(messages: Sequence[Message], *, is_open: bool = False) -> None:
    """Refuse a history that a model could not go on from.

    The system speaks first or not at all; every call is answered once, before anybody but a tool speaks; no
    id of a call comes twice. `is_open`: the calls of the last round may still wait for answers.
    """
    if len(messages) > limits.HISTORY_MESSAGES_MAX:
        raise Invalid(f"a history of more than {limits.HISTORY_MESSAGES_MAX} messages; compact the session")
    seen: set[str] = set()
    waiting: set[str] = set()
    for index, message in enumerate(messages):
        if message.role is Role.SYSTEM and index:
            raise Invalid("the system's message stands first in a history or not at all")
        if message.role is Role.TOOL:
            if message.tool_call_id not in waiting:
                raise Invalid(f"an answer to a call that waits for none: {message.tool_call_id}")
            waiting.discard(message.tool_call_id)
            continue
        if waiting:
            raise Invalid(f"a call without an answer: {min(waiting)}")
        ids = [call.id for call in message.tool_calls]
        if not seen.isdisjoint(ids):
            raise Invalid("the id of a call comes twice in a history")
        seen.update(ids)
        waiting.update(ids)
    if waiting and not is_open:
        raise Invalid(f"a call without an answer: {min(waiting)}")


def references(messages: Iterable[Message]) -> tuple[AssetReference, ...]:
    """Every asset that the messages refer to, in their order."""
    return tuple(reference for message in messages for reference in message.assets)
