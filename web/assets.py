"""Files that events of durable sessions refer to: `POST /api/v1/assets` takes one in, its sessions give it out."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from flask import Blueprint, Response, request

from memory_core import limits
from memory_core.asset_files import AssetFiles
from memory_core.commands.assets import CatalogueAsset
from memory_core.domain.session_event import AssetKind
from memory_core.errors import Invalid, NotFound, TooLarge, Unavailable
from memory_core.ids import id_bytes, id_text
from memory_core.store import assets, durable_sessions
from web import lists
from web.answers import json_answer
from web.auth import current, needs
from web.parts import Parts
from web.query import takes

_TYPE = "application/octet-stream"


def blueprint(parts: Parts) -> Blueprint:
    routes = Blueprint("assets", __name__, url_prefix="/api/v1")
    files = AssetFiles(parts.settings.assets)

    @routes.post("/assets")
    @needs("write")
    @takes("kind")
    def _take_in() -> Response:
        kind = _kind(lists.given("kind"))
        if request.content_length is not None and request.content_length > limits.ASSET_MAX_BYTES:
            raise TooLarge(f"an asset has at most {limits.ASSET_MAX_BYTES // limits.MIB} MiB")
        if parts.disk.backlog_room_bytes() <= (request.content_length or 0):
            raise Unavailable("the disk has no room for this asset; free some, then send it again")
        request.max_content_length = limits.ASSET_MAX_BYTES + 1
        received = files.receive(_without_secrets(_body(), parts))
        with files.shared():
            files.publish(received)
            answer = parts.context(current(), request.environ).submit(
                CatalogueAsset(sha256=received.sha256, bytes=received.bytes)
            )
        if answer.get("status") == "pending":
            return json_answer(dict(answer), 202)
        return json_answer({**answer, "kind": kind.value}, 201)

    @routes.get("/durable-sessions/<text>/assets")
    @needs("read")
    def _of_session(text: str) -> Response:
        with parts.database.snapshot() as reading:
            session_id = _shown(reading, text)
            rows = assets.of_session(reading, session_id, limits.SESSION_ASSETS_LISTED_MAX)
        return json_answer(
            [
                {
                    "event_id": id_text(row["event_id"]),
                    "sequence": row["sequence"],
                    "ordinal": row["ordinal"],
                    "sha256": row["sha256"].hex(),
                    "bytes": row["bytes"],
                    "kind": row["kind"],
                }
                for row in rows
            ]
        )

    @routes.get("/durable-sessions/<text>/events/<event>/assets/<int:ordinal>")
    @needs("read")
    @takes("kind")
    def _give_out(text: str, event: str, ordinal: int) -> Response:
        with parts.database.snapshot() as reading:
            row = assets.of_event(
                reading, session_id=_shown(reading, text), event_id=id_bytes(event), ordinal=ordinal
            )
        wanted = lists.given("kind")
        if row is None or (wanted is not None and wanted != row["kind"]):
            raise NotFound("this event has no such asset")
        chunks = files.read(row["sha256"], row["bytes"])
        first = next(chunks, b"")  # what is damaged is an error answer, not half a file
        response = Response(chain([first], chunks), content_type=_TYPE)
        response.headers["Content-Length"] = str(row["bytes"])
        response.headers["Content-Disposition"] = f'attachment; filename="{row["sha256"].hex()}"'
        return response

    return routes


def _shown(reading: Any, text: str) -> bytes:
    session_id = id_bytes(text)
    if durable_sessions.shown(reading, session_id, owner=current().principal) is None:
        raise NotFound(f"there is no durable session {text[:64]}")
    return session_id


def _kind(text: str | None) -> AssetKind:
    if text not in set(AssetKind):
        raise Invalid(f"kind: one of {', '.join(AssetKind)}")
    return AssetKind(text)


def _body() -> Iterator[bytes]:
    received = 0
    while chunk := request.stream.read(limits.ASSET_CHUNK_BYTES):
        received += len(chunk)
        yield chunk
    if request.content_length is not None and received < request.content_length:
        raise Invalid("the body ended before its Content-Length; send it again")


def _without_secrets(chunks: Iterator[bytes], parts: Parts) -> Iterable[bytes]:
    """Media as they are, and text redacted as every text; more text than is scanned as one is refused."""
    head = b""
    for chunk in chunks:
        head += chunk
        if len(head) > limits.ASSET_TEXT_MAX_BYTES:
            return _no_text(chain([head], chunks))
    if not _is_text(head):
        return [head]
    return [parts.gate.redact(head.decode()).encode()]


def _is_text(data: bytes) -> bool:
    try:
        return "\x00" not in data.decode()
    except UnicodeDecodeError:
        return False


def _no_text(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """The chunks of what turns out to be no text. Raises `Invalid` at the end of one that is text as a whole."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    is_text = True
    for chunk in chunks:
        if is_text:
            try:
                is_text = "\x00" not in decoder.decode(chunk)
            except UnicodeDecodeError:
                is_text = False
        yield chunk
    if is_text:
        raise Invalid(
            f"a text of more than {limits.ASSET_TEXT_MAX_BYTES // limits.KIB} KiB is not kept as an asset, because secrets are looked "
            "for in the whole of a text: send it as events, or in parts"
        )
