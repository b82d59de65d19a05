"""Writing durable sessions and knowledge out as JSON, piece by piece, into a new file or a stream. Nothing is ever replaced."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import sys
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any
from urllib.parse import quote

from client.server import Server
from memory_core import limits
from memory_core.errors import Conflict, Invalid

SESSIONS = "/api/v1/durable-sessions"


def session_path(session_id: str, what: str = "") -> str:
    base = f"{SESSIONS}/{quote(session_id, safe='')}"
    return f"{base}/{what}" if what else base


def session_pieces(server: Server, session_id: str) -> Iterator[str]:
    """`{"session", "snapshot", "events", "assets"}`; the events are those that there were when it began."""
    session = server.get(session_path(session_id))
    snapshot = session.pop("snapshot")
    yield f'{{"session": {_json(session)}, "snapshot": {_json(snapshot)}, "events": '
    assets: list[dict[str, Any]] = []

    def events() -> Iterator[Any]:
        path = session_path(session_id, "events")
        for event in server.listed(path, limit=session["last_sequence"], page=limits.EVENTS_PAGE_MAX):
            links = event.pop("assets", [])
            assets.extend({"event_id": event["id"], "ordinal": at, **link} for at, link in enumerate(links))
            yield event

    yield from array_pieces(map(_json, events() if session["last_sequence"] else ()))
    yield f', "assets": {_json(assets)}}}'


def begun(items: Iterator[Any]) -> Iterator[Any]:
    """The same, asked for now: what is refused is told before anything is written."""
    first = list(islice(items, 1))
    return chain(first, items)


def array_pieces(items: Iterable[str]) -> Iterator[str]:
    """A JSON array of texts that are JSON."""
    yield "["
    for number, item in enumerate(items):
        yield f", {item}" if number else item
    yield "]"


def write(pieces: Iterable[str], output: str | None) -> None:
    """Into a new file, whole or not at all, or to standard output. Raises `Conflict` for a file that is there, `Invalid` where none can be."""
    if output is None:
        for piece in pieces:
            sys.stdout.write(piece)
        sys.stdout.write("\n")
        return
    file = Path(output)
    if os.path.lexists(file):
        raise Conflict(f"{file} is there already; an export replaces no file: name another one")
    try:
        _write_new(file, pieces)
    except OSError as error:
        raise Invalid(f"{file} cannot be written: {error.strerror}") from error


def _write_new(file: Path, pieces: Iterable[str]) -> None:
    part = file.with_name(f".{file.name}.{secrets.token_hex(8)}.part")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as written:
            written.writelines(pieces)
            written.write("\n")
            written.flush()
            os.fsync(written.fileno())
        try:
            # A link never replaces; a rename would.
            os.link(part, file)
        except FileExistsError:
            raise Conflict(f"{file} was made by somebody meanwhile; name another one") from None
    finally:
        with contextlib.suppress(FileNotFoundError):
            part.unlink()
    _sync_directory(file.parent)


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
