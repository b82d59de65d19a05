"""`/api/v1/durable-sessions`: sessions whose exact events are kept, by whoever holds their lease. See docs/durable-sessions.md."""

from __future__ import annotations

from typing import Any

import msgspec
from flask import Blueprint, Response, request

from memory_core import limits
from memory_core.clock import rfc3339
from memory_core.commands.durable_sessions import (
    DEFAULT_AGENT,
    ClaimSession,
    CloseSession,
    ReleaseLease,
    RenewLease,
    SayReplayed,
    SetTitle,
    StartSession,
)
from memory_core.commands.durable_snapshots import PutSnapshot
from memory_core.domain import capped_json
from memory_core.domain.directory import Directory, DirectoryId
from memory_core.errors import Invalid, NotFound
from memory_core.ids import id_bytes, id_text
from memory_core.store import durable_sessions, session_events
from web import lists
from web.answers import json_answer, submitted
from web.auth import current, needs
from web.bodies import read_as
from web.leases import lease_hash, mint
from web.ndjson import streamed
from web.parts import Parts
from web.query import takes
from web.replay import Replay, event_shape, snapshot_shape
from web.shapes import time_text
from web.submitting import submit

LEASE_HEADER = "Memoryd-Lease"
#: A body's own levels around the values that a caller's JSON may nest in.
DEPTH_MAX = limits.DURABLE_JSON_DEPTH_MAX + 8
#: Of a list: `updated_at` and id of its last session.
_SMALL_BODY_MAX_BYTES = limits.POOL_BODY_MAX_BYTES


class Place(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The body's `directory`."""

    host: str
    device: str
    inode: str
    path: str = ""

    def id(self, parts: Parts) -> DirectoryId:
        """Redacted as what is stored was, and checked."""
        return checked(parts, DirectoryId(host=self.host, device=self.device, inode=self.inode))

    def with_path(self, parts: Parts) -> Directory:
        return checked(parts, Directory(host=self.host, device=self.device, inode=self.inode, path=self.path))


class Start(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    directory: Place
    title: str | None = None
    agent: str = DEFAULT_AGENT
    model_reference: str | None = None
    workspace: str | None = None
    project: str | None = None


class Here(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    directory: Place


class Replayed(Here, kw_only=True):
    last_sequence: int
    digest: str


class Title(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    title: str
    directory: Place | None = None


class PutBody(Here, kw_only=True):
    schema_version: int
    config: dict[str, Any]
    authority: dict[str, Any]


def blueprint(parts: Parts) -> Blueprint:
    routes = Blueprint("durable", __name__, url_prefix="/api/v1/durable-sessions")
    _reading_routes(routes, parts)
    _lease_routes(routes, parts)

    @routes.post("")
    @needs("write")
    def _start() -> Response:
        asked = small(Start)
        answer = parts.context(current(), request.environ).submit(
            StartSession(
                directory=asked.directory.with_path(parts),
                title=asked.title,
                agent=asked.agent,
                model_reference=asked.model_reference,
                workspace=asked.workspace,
                project=asked.project,
            )
        )
        return json_answer(answer, 202 if answer.get("status") == "pending" else 201)

    @routes.post("/<text>/title")
    @needs("write")
    def _title(text: str) -> Response:
        asked = small(Title)
        has_lease = LEASE_HEADER in request.headers
        return submit(
            parts,
            SetTitle(
                session=id_bytes(text),
                title=asked.title,
                lease_hash=own_lease() if has_lease else None,
                directory=None if asked.directory is None else asked.directory.id(parts),
            ),
        )

    @routes.put("/<text>/snapshot")
    @needs("write")
    def _snapshot(text: str) -> Response:
        asked = read_as(PutBody, limits.REQUEST_BODY_MAX_BYTES, DEPTH_MAX)
        for name in ("config", "authority"):
            measured(name, getattr(asked, name), limits.SNAPSHOT_PART_MAX_BYTES)
        return submit(
            parts,
            PutSnapshot(
                session=id_bytes(text),
                lease_hash=own_lease(),
                directory=asked.directory.id(parts),
                schema_version=asked.schema_version,
                config=asked.config,
                authority=asked.authority,
            ),
        )

    @routes.post("/<text>/close")
    @needs("write")
    def _close(text: str) -> Response:
        asked = small(Here)
        return submit(
            parts,
            CloseSession(session=id_bytes(text), lease_hash=own_lease(), directory=asked.directory.id(parts)),
        )

    return routes


def _lease_routes(routes: Blueprint, parts: Parts) -> None:
    @routes.post("/<text>/claim")
    @needs("write")
    def _claim(text: str) -> Response:
        asked = small(Here)
        directory, session_id = asked.directory.with_path(parts), id_bytes(text)
        lease = ""

        def made(command_id: bytes) -> ClaimSession:
            nonlocal lease
            lease = mint(parts.gate.hash_key, current().principal, command_id)
            return ClaimSession(session=session_id, lease_hash=lease_hash(lease), directory=directory)

        answer = parts.context(current(), request.environ).submit_as(made)
        return submitted(answer if answer.get("status") == "pending" else {"lease": lease, **answer})

    @routes.post("/<text>/renew")
    @needs("write")
    def _renew(text: str) -> Response:
        asked = small(Here)
        return submit(
            parts,
            RenewLease(session=id_bytes(text), lease_hash=own_lease(), directory=asked.directory.id(parts)),
        )

    @routes.post("/<text>/release")
    @needs("write")
    def _release(text: str) -> Response:
        return submit(parts, ReleaseLease(session=id_bytes(text), lease_hash=own_lease()))

    @routes.get("/<text>/replay")
    @needs("write")
    @takes("host", "device", "inode")
    def _replay(text: str) -> Response:
        directory = _asked_directory(parts)
        if directory is None:
            raise Invalid("replay: say which directory you are in: host, device and inode")
        replay = Replay(
            parts.database,
            parts.clock,
            session_id=id_bytes(text),
            principal=current().principal,
            lease_hash=own_lease(),
            directory=directory,
        )
        return streamed(replay.head, replay.lines)

    @routes.post("/<text>/replayed")
    @needs("write")
    def _replayed(text: str) -> Response:
        asked = small(Replayed)
        return submit(
            parts,
            SayReplayed(
                session=id_bytes(text),
                lease_hash=own_lease(),
                directory=asked.directory.id(parts),
                last_sequence=asked.last_sequence,
                digest=digest_of(asked.digest),
            ),
        )


def _reading_routes(routes: Blueprint, parts: Parts) -> None:
    @routes.get("")
    @needs("read")
    @takes("workspace", "project", "host", "device", "inode", "cursor", "limit")
    def _list() -> Response:
        limit = lists.limit(most=limits.DURABLE_SESSIONS_PAGE_MAX)
        with parts.database.snapshot() as reading:
            rows = durable_sessions.listed(
                reading,
                owner=current().principal,
                directory=_asked_directory(parts),
                project_id=lists.project(reading),
                before=lists.moment_and_id(),
                limit=limit,
            )
        now = parts.clock.now_us()
        last = lists.after_row(rows[-1]["updated_at"], rows[-1]["session_id"]) if rows else None
        return lists.listed([session_shape(row, now) for row in rows], limit, cursor=last)

    @routes.get("/<text>")
    @needs("read")
    def _show(text: str) -> Response:
        with parts.database.snapshot() as reading:
            row = durable_sessions.shown(reading, id_bytes(text), owner=current().principal)
            if row is None:
                raise NotFound(f"there is no durable session {text[:64]}")
            snapshot = durable_sessions.snapshot(reading, row["session_id"])
            has_journal = durable_sessions.has_open_turn(reading, row["session_id"])
        shape = session_shape(row, parts.clock.now_us())
        return json_answer(shape | {"has_journal": has_journal, "snapshot": snapshot_shape(snapshot)})

    @routes.get("/<text>/events")
    @needs("read")
    @takes("after", "limit")
    def _events(text: str) -> Response:
        limit = lists.limit(most=limits.EVENTS_PAGE_MAX)
        after = lists.number("after") or 0
        with parts.database.snapshot() as reading:
            row = durable_sessions.shown(reading, id_bytes(text), owner=current().principal)
            if row is None:
                raise NotFound(f"there is no durable session {text[:64]}")
            events = session_events.between(
                reading,
                row["session_id"],
                after=after,
                through=row["last_sequence"],
                limit=limit,
                max_bytes=limits.DURABLE_PAGE_MAX_BYTES,
            )
            linked = session_events.with_links(
                reading, row["session_id"], events, limit=limits.EVENT_PAGE_ASSETS_MAX
            )
        last = linked[-1][0].sequence if linked else 0
        items = [event_shape(event, links) for event, links in linked]
        return lists.listed(items, len(items), after=last if linked and last < row["last_sequence"] else None)


# --- what the routes share -------------------------------------------------------------------------


def small(wanted: type[Any]) -> Any:
    """The body of a request that carries no events."""
    return read_as(wanted, _SMALL_BODY_MAX_BYTES)


def own_lease() -> bytes:
    """SHA-256 of the token that this request shows. Raises `Invalid`."""
    token = request.headers.get(LEASE_HEADER, "")
    if not token:
        raise Invalid(f"{LEASE_HEADER}: send the token that the claim answered as this header")
    return lease_hash(token)


def checked(parts: Parts, directory: Any) -> Any:
    """A directory as it is compared and kept. Raises `Invalid`."""
    directory.check()
    return parts.gate.cleaned(directory)


def measured(name: str, value: Any, max_bytes: int) -> int:
    """The bytes of a value as JSON. Raises `Invalid` for one that is longer, deeper or wider than may be kept, or holds a text that its
    redaction would cut."""
    return capped_json.measure(
        value, max_bytes=max_bytes, text_max_bytes=limits.FIELD_REDACTED_MAX_BYTES, what=name
    )


def digest_of(text: str) -> bytes:
    """32 bytes in hexadecimal. Raises `Invalid`."""
    try:
        digest = bytes.fromhex(text)
    except ValueError:
        digest = b""
    if len(digest) != 32:
        raise Invalid("digest: 64 hexadecimal digits")
    return digest


def session_shape(row: Any, now: int) -> dict[str, Any]:
    is_held = row["lease_until"] is not None and row["lease_until"] > now
    return {
        "id": id_text(row["session_id"]),
        "workspace": row["workspace"],
        "project": row["project"],
        "agent": row["agent"],
        "origin": row["origin"],
        "title": row["title"],
        "model_reference": row["model_reference"],
        "directory": _place(row),
        "last_sequence": row["last_sequence"],
        "digest": row["digest"].hex(),
        "is_held": is_held,
        "lease_until": time_text(row["lease_until"]) if is_held else None,
        "started_at": rfc3339(row["started_at"]),
        "updated_at": rfc3339(row["updated_at"]),
        "closed_at": time_text(row["closed_at"]),
    }


def _place(row: Any) -> dict[str, str] | None:
    if row["host"] is None:
        return None
    return {name: row[name] for name in ("host", "device", "inode", "path")}


def _asked_directory(parts: Parts) -> DirectoryId | None:
    """The directory that the query names; None where it names none."""
    host, device, inode = (lists.given(name) for name in ("host", "device", "inode"))
    if host is None and device is None and inode is None:
        return None
    if host is None or device is None or inode is None:
        raise Invalid("a directory is named by host, device and inode together")
    return checked(parts, DirectoryId(host=host, device=device, inode=inode))
