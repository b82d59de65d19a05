"""The id of a command: what makes the same delivery, sent twice, take effect once, and two deliveries two.

The first rule that applies: the client's key; a vendor's unique id with session and event; session, event,
content and the vendor's own time; else a new id. Never content alone: "continue" said twice is two prompts.
"""

from __future__ import annotations

import hashlib
import re
import uuid
from dataclasses import dataclass

import msgspec

from memory_core import limits
from memory_core.domain.event import HookEvent
from memory_core.errors import Invalid
from memory_core.ids import IdSource

_KEY = re.compile(rf"[A-Za-z0-9_-]{{1,{limits.CLIENT_KEY_MAX_CHARS}}}")
_UUID_V7 = 7


@dataclass(frozen=True, kw_only=True)
class CommandId:
    """16 bytes, and whether memoryd made them (then they carry their age) or somebody else."""

    value: bytes
    is_foreign: bool


def of_client_key(key: str) -> CommandId:
    """The id that a client's key stands for; `Invalid` for a key of the wrong shape.

    A UUIDv7 is taken as it is: that is what memoryd's own shim sends.
    """
    if not _KEY.fullmatch(key):
        raise Invalid(f"ingest_key: 1 to {limits.CLIENT_KEY_MAX_CHARS} characters of A-Z a-z 0-9 _ -")
    try:
        parsed = uuid.UUID(key)
    except ValueError:
        return CommandId(value=_digest(b"key", key), is_foreign=True)
    return CommandId(value=parsed.bytes, is_foreign=parsed.version != _UUID_V7)


def of_event(event: HookEvent, received: bytes, ids: IdSource) -> CommandId:
    """The id of an event that came without a client's key; `received` is its body as it came."""
    told = (event.client, event.session_key, event.source_event, event.agent_id or "")
    if event.unique_id:
        return CommandId(value=_digest(b"unique", *told, event.unique_id), is_foreign=True)
    if event.occurred_at is not None:
        content = hashlib.blake2b(received, digest_size=16).hexdigest()
        return CommandId(value=_digest(b"time", *told, content, str(event.occurred_at)), is_foreign=True)
    return CommandId(value=ids.new(), is_foreign=False)


def of_part(first: CommandId, number: int) -> CommandId:
    """The id of the n-th command (from 0) that one keyed request leads to."""
    if number == 0:
        return first
    return CommandId(value=_digest(b"part", first.value.hex(), str(number)), is_foreign=first.is_foreign)


def canonical(body: object) -> bytes:
    """A parsed body as bytes, the same for a single delivery and for one inside a batch."""
    return msgspec.json.encode(body)


def body_hash(key: bytes, *parts: bytes) -> bytes:
    """Keyed hash of a body as received, 16 bytes: tells equal from different and nothing else."""
    digest = hashlib.blake2b(digest_size=16, key=key)
    for part in parts:
        digest.update(b"%d:" % len(part))
        digest.update(part)
    return digest.digest()


def _digest(rule: bytes, *parts: str) -> bytes:
    digest = hashlib.blake2b(digest_size=16, person=b"mem" + rule)
    for part in parts:
        data = part.encode("utf-8", "replace")
        digest.update(b"%d:" % len(data))
        digest.update(data)
    return digest.digest()
