"""From one hook delivery to one command: read by its client's adapter, redacted, capped, given its id."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import memory_core.agents as agents_package
from memory_core.agents import AgentClient, client_named
from memory_core.commands.capture import RecordObservation
from memory_core.domain.capture import capped
from memory_core.domain.command import Envelope
from memory_core.domain.event import HookEvent, ToolCall, changed
from memory_core.domain.extension import extended
from memory_core.errors import Invalid
from memory_core.registry import discover
from web.auth import Caller
from web.gate import Gate
from web.identity import CommandId, body_hash, canonical, of_client_key, of_event


def _texts_of(kind: type[Any], *, but: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f.name for f in fields(kind) if f.type in ("str", "str | None") and f.name not in but)


#: Whatever a client can put a text into, ids and names of events too: a new field is among them by itself.
_TEXTS = _texts_of(HookEvent, but=("client", "session_key"))
_TOOL_TEXTS = _texts_of(ToolCall, but=("family",))
#: What a client says of itself and of where it is, beside the event.
_TOLD = ("workspace", "project", "repo_path", "home", "project_strategy", "source")
_GENERIC = "generic"
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE | re.ASCII)


def load_clients() -> None:
    """Register every agent client; once, before the first request."""
    discover(agents_package)


@dataclass(frozen=True, kw_only=True)
class Delivery:
    """One hook delivery as its client's adapter read it, not yet redacted."""

    #: The payload in the one spelling that its hash is of.
    received: bytes
    event: HookEvent
    command_id: CommandId
    query: Mapping[str, str]


def envelope_of(
    gate: Gate, payload: Any, query: Mapping[str, str], caller: Caller, *, wants_reply: bool
) -> Envelope:
    """The command that one delivery asks for. Raises `Invalid`, saying what to change."""
    delivery = delivery_of(gate, payload, query)
    return wrapped(gate, delivery, redacted(delivery.event, gate), caller, wants_reply=wants_reply)


def delivery_of(gate: Gate, payload: Any, query: Mapping[str, str]) -> Delivery:
    """The first of three steps: reading. Raises `Invalid`."""
    if not isinstance(payload, dict):
        raise Invalid("a hook's body is one JSON object, as its client sends it")
    received = canonical(payload)
    event = extended(client_of(query).read(payload, query), payload, query)
    key = query.get("ingest_key")
    command_id = of_client_key(key) if key else of_event(event, received, gate.ids)
    return Delivery(received=received, event=event, command_id=command_id, query=query)


def wrapped(
    gate: Gate, delivery: Delivery, event: HookEvent, caller: Caller, *, wants_reply: bool
) -> Envelope:
    """The last step: the command of a delivery whose `event` is redacted, the second step."""
    told = told_of(gate, delivery.query)
    command = RecordObservation(
        event=capped(event),
        source=f"{event.client}/{told.pop('source') or 'direct'}",
        project_strategy=told.pop("project_strategy") or "basename",
        **told,
    )
    return gate.envelope(
        command,
        delivery.command_id,
        caller,
        received_hash=body_hash(gate.hash_key, delivery.received),
        wants_reply=wants_reply,
    )


def redacted(event: HookEvent, gate: Gate) -> HookEvent:
    """The event without secrets: all its texts are scanned as one, so that a name finds its value."""
    texts: dict[str, str] = {name: text for name in _TEXTS if (text := getattr(event, name))}
    session_key = clean_session_key(event.session_key, gate)
    tool = event.tool
    if tool is None:
        clean = gate.redact(list(texts.values()))
        return changed(event, **dict(zip(texts, clean, strict=True)), session_key=session_key)
    of_tool: dict[str, str] = {name: text for name in _TOOL_TEXTS if (text := getattr(tool, name))}
    # Only the texts: the names of our own fields never name a secret.
    clean = iter(gate.redact([*texts.values(), *of_tool.values(), *tool.paths]))
    fields = {name: next(clean) for name in texts}
    tool = changed(tool, **{name: next(clean) for name in of_tool}, paths=tuple(clean))
    return changed(event, **fields, session_key=session_key, tool=tool)


def clean_session_key(session_key: str, gate: Gate) -> str:
    """A session's key as events of that session are stored under.

    One that holds a secret is replaced as a whole, and not by a redaction marker: that tells only 65,536
    values apart, and two sessions must never become one.
    """
    # Without a name: "key" before a value is what makes it a secret.
    if not _is_wordy(session_key) or gate.redact([session_key]) == [session_key]:
        return session_key
    return f"hidden-{body_hash(gate.hash_key, session_key.encode()).hex()}"


def _is_wordy(session_key: str) -> bool:
    """Whether a session's key is anything but a UUID (which no secret hides in)."""
    return _UUID.fullmatch(session_key) is None


def told_of(gate: Gate, query: Mapping[str, str]) -> dict[str, str | None]:
    """What the client says in its query: `_TOLD` without secrets; absent and empty are the same."""
    told: dict[str, str | None] = {name: query.get(name) or None for name in _TOLD}
    return gate.redact(told) if any(told.values()) else told


def client_of(query: Mapping[str, str]) -> AgentClient:
    name = query.get("agent") or _GENERIC
    client = client_named(name) or client_named(_GENERIC)
    if client is None:
        raise Invalid(f"unknown agent {name[:64]!r}")
    return client
