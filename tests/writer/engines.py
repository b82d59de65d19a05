"""An engine over a real database, test commands of its own, and envelopes for them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from memory_core import commands
from memory_core.clock import Clock, FakeClock
from memory_core.commands import CommandKind
from memory_core.domain.command import Envelope, Refusal
from memory_core.errors import CoreError
from memory_core.ids import IdSource
from memory_core.store import audit
from memory_core.store.transaction import Transaction
from tests.store.databases import new_writer
from workers.writer.engine import Engine
from workers.writer.mark import MarkFile


@dataclass(frozen=True, kw_only=True)
class Note:
    """Writes `text` into the audit log; `mode` makes it misbehave."""

    text: str
    mode: str = "write"


def apply_note(note: Note, tx: Transaction):
    if note.mode == "refuse":
        return Refusal(code="conflict", message="no")
    if note.mode == "raise":
        raise RuntimeError("poison")
    audit.record(tx, "note", detail={"text": note.text})
    if note.mode == "refuse-late":
        return Refusal(code="conflict", message="too late to say no")
    if note.mode == "raise-late":
        raise RuntimeError("poison after a write")
    if note.mode == "swallow":
        try:
            for _ in range(10_000):
                audit.record(tx, "big", detail={"text": "x" * 10_000})
        except CoreError:
            return None
    return {"text": note.text}


NOTE = CommandKind(
    name="test_note", version=2, body=Note, apply=apply_note, upcasts={1: lambda old: {"text": old["t"]}}
)


@contextmanager
def registered(kind: CommandKind = NOTE) -> Iterator[CommandKind]:
    """The command is known while this lasts."""
    known = commands.registry._items
    commands.registry.add(kind.name)(kind)
    try:
        yield kind
    finally:
        del known[kind.name]


def new_engine(directory: Path, clock: Clock | None = None, **more) -> Engine:
    clock = clock or FakeClock()
    return Engine(
        new_writer(directory, clock),
        epoch=1,
        ids=IdSource(clock),
        clock=clock,
        mark=MarkFile(directory / "writer.inprogress"),
        **more,
    )


def envelope(text: str = "a", mode: str = "write", *, key: str | None = None, **more) -> Envelope:
    """The id follows from `key` (or the text), the body hash from the body."""
    body = commands.encode(Note(text=text, mode=mode))
    values = {
        "id": blake2b((key or text).encode(), digest_size=16).digest(),
        "name": NOTE.name,
        "version": NOTE.version,
        "body": body,
        "body_hash": blake2b(body, digest_size=16).digest(),
        "principal": "owner",
        "token_scope": "capture",
        "recorded_at": 1,
    }
    return Envelope(**{**values, **more})


def notes(engine: Engine) -> list[str]:
    """The texts that took effect, in their order."""
    rows = engine.connection.raw.execute(
        "SELECT json_extract(detail, '$.text') FROM audit_log WHERE op = 'note' ORDER BY seq"
    )
    return [row[0] for row in rows]
