"""`/api/v1/knowledge`: what is known in a directory or project. Every list and every change names which one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flask import Blueprint, Response, request

from memory_core import limits
from memory_core.clock import rfc3339
from memory_core.commands.knowledge import (
    ActivateKnowledge,
    ForgetKnowledge,
    PinKnowledge,
    Remember,
    Where,
    scope_of,
)
from memory_core.domain.knowledge import Provenance, checked_query
from memory_core.errors import Invalid, NotFound
from memory_core.ids import id_bytes, id_text
from memory_core.recall.knowledge import bounds_said, check_said, read_bounds, section
from memory_core.store import knowledge, knowledge_lists
from memory_core.store.database import Snapshot
from memory_core.store.knowledge import Entry, Version, provenance_of
from memory_core.store.knowledge_lists import Cursor, Scope
from memory_core.store.statement import Row
from web import lists
from web.answers import json_answer
from web.auth import needs
from web.bodies import parse_json, read_body
from web.parts import Parts
from web.query import takes
from web.shapes import time_text
from web.submitting import submit

_PLACE = ("directory", "workspace", "project")
_DIRECTORY = ("host", "device", "inode", "path")
_STATES = ("active", "forgotten")


def blueprint(parts: Parts) -> Blueprint:
    routes = Blueprint("knowledge", __name__, url_prefix="/api/v1/knowledge")
    _lists(routes, parts)
    _entries(routes, parts)
    _changes(routes, parts)
    return routes


def _lists(routes: Blueprint, parts: Parts) -> None:
    bounds = read_bounds(parts.settings)

    @routes.get("")
    @needs("read")
    @takes("host", "device", "inode", "workspace", "project", "key", "state", "after", "limit")
    def _list() -> Response:
        if lists.given("key") is not None:
            return _of_key(parts)
        limit, state, after = _limit(), lists.state(*_STATES), cursor_said(lists.given("after"))
        with parts.database.snapshot() as reading:
            found = knowledge_lists.listed(
                reading, _scope(reading), limit=limit, after=after, forgotten=state == "forgotten"
            )
        headers: dict[str, str] = {}
        if found.more and found.entries:
            headers["Link"] = f'<{lists.next_address(after=cursor_text(found.entries[-1]))}>; rel="next"'
        return json_answer([entry_shape(entry) for entry in found.entries], headers=headers)

    @routes.get("/search")
    @needs("read")
    @takes("host", "device", "inode", "workspace", "project", "q", "limit")
    def _search() -> Response:
        query = checked_query(lists.given("q") or "")
        with parts.database.snapshot() as reading:
            found = knowledge_lists.searched(
                reading, _scope(reading), query, now=parts.clock.now_us(), limit=_limit()
            )
        return json_answer([entry_shape(entry) for entry in found.entries])

    @routes.get("/recall")
    @needs("read")
    @takes("host", "device", "inode", "workspace", "project", "entries", "bytes", "confidence")
    def _recall() -> Response:
        wished = [lists.given(name) for name in ("entries", "bytes", "confidence")]
        check_said(*wished)
        said = bounds_said(*wished)
        within = bounds.tightened(said)
        with parts.database.snapshot() as reading:
            found = knowledge_lists.recalled(reading, _scope(reading), within, now=parts.clock.now_us())
        source = f"{found[0].workspace}/{found[0].project}, {rfc3339(parts.clock.now_us())}" if found else ""
        return json_answer(
            {
                "entries": [{"key": entry.key, "content": entry.content} for entry in found],
                "confidence": within.confidence,
                # Data to weigh, no instructions: as it can be put before an agent.
                "markdown": section(found, source),
            }
        )


def _of_key(parts: Parts) -> Response:
    if lists.given("state") is not None or lists.given("after") is not None:
        raise Invalid("key names an entry, known or forgotten: neither state nor after goes with it")
    with parts.database.snapshot() as reading:
        found = knowledge_lists.of_key(reading, _scope(reading), lists.given("key") or "", limit=_limit())
    return json_answer([entry_shape(entry) for entry in found.entries])


def _entries(routes: Blueprint, parts: Parts) -> None:
    @routes.get("/<text>")
    @needs("read")
    @takes("host", "device", "inode", "workspace", "project")
    def _one(text: str) -> Response:
        with parts.database.snapshot() as reading:
            entry = _found(reading, text)
            version = knowledge.version(reading, entry.id, entry.version)
            tombstones = knowledge.tombstones(reading, entry.id, limit=limits.KNOWLEDGE_LIST_MAX)
        return json_answer(
            entry_shape(entry)
            | {
                "source": _source(version.provenance if version else None),
                "tombstones": [tombstone_shape(row) for row in tombstones],
            }
        )

    @routes.get("/<text>/history")
    @needs("read")
    @takes("host", "device", "inode", "workspace", "project", "before", "limit")
    def _history(text: str) -> Response:
        limit, before = _limit(), lists.number("before")
        with parts.database.snapshot() as reading:
            entry = _found(reading, text)
            found = knowledge.history(
                reading,
                entry.id,
                before=limits.KNOWLEDGE_VERSION_MAX + 1 if before is None else before,
                limit=limit,
            )
        shown = [version_shape(version, entry) for version in _within_bytes(found)]
        headers: dict[str, str] = {}
        if found and (len(shown) < len(found) or len(found) == limit):
            headers["Link"] = f'<{lists.next_address(before=found[len(shown) - 1].version)}>; rel="next"'
        return json_answer(shown, headers=headers)


def _changes(routes: Blueprint, parts: Parts) -> None:
    @routes.post("/remember")
    @needs("write")
    def _remember() -> Response:
        given = _given(key=str, content=str, pinned=bool, session_id=str)
        return submit(
            parts,
            Remember(
                where=_where(given),
                key=_needed(given, "key"),
                content=_needed(given, "content"),
                pinned=given.get("pinned"),
                session_id=given.get("session_id"),
            ),
        )

    @routes.post("/<text>/activate")
    @needs("write")
    def _activate(text: str) -> Response:
        given = _given(version=int)
        return submit(
            parts,
            ActivateKnowledge(where=_where(given), entry=text, version=_needed(given, "version")),
        )

    @routes.post("/<text>/pin")
    @needs("write")
    def _pin(text: str) -> Response:
        return submit(parts, PinKnowledge(where=_where(_given()), entry=text, pinned=True))

    @routes.post("/<text>/unpin")
    @needs("write")
    def _unpin(text: str) -> Response:
        return submit(parts, PinKnowledge(where=_where(_given()), entry=text, pinned=False))

    @routes.post("/<text>/forget")
    @needs("write")
    def _forget(text: str) -> Response:
        return submit(parts, ForgetKnowledge(where=_where(_given()), entry=text))


# --- what is asked -------------------------------------------------------------------------------


def _limit() -> int:
    return lists.limit(limits.KNOWLEDGE_LIST_DEFAULT, limits.KNOWLEDGE_LIST_MAX)


def _asked_place() -> Where:
    names = ("host", "device", "inode", "workspace", "project")
    return Where(**{name: lists.given(name) for name in names})


def _scope(reading: Snapshot) -> Scope:
    return scope_of(reading, _asked_place())


def _found(reading: Snapshot, text: str) -> Entry:
    """One entry; where the query names a directory or project, it must be in there."""
    entry = knowledge.by_id(reading, id_bytes(text))
    place = _asked_place()
    if entry is None or (place != Where() and not scope_of(reading, place).holds(entry)):
        raise NotFound("nothing is known under that id there")
    return entry


def cursor_text(entry: Entry) -> str:
    return f"{int(entry.pinned)}.{entry.updated_at}.{id_text(entry.id)}"


def cursor_said(text: str | None) -> Cursor | None:
    if text is None:
        return None
    pinned, _, rest = text.partition(".")
    updated_at, _, last = rest.partition(".")
    if pinned not in ("0", "1") or not (
        updated_at.isascii() and updated_at.isdigit() and len(updated_at) < 19
    ):
        raise Invalid("after is what the Link header of the list before says")
    return Cursor(pinned=pinned == "1", updated_at=int(updated_at), id=id_bytes(last))


def _given(**known: type[Any]) -> dict[str, Any]:
    """The body: one object of these fields and those that say where."""
    body: Any = parse_json(read_body(request))
    names = (*_PLACE, *known)
    if not isinstance(body, dict) or set(body) - set(names):
        raise Invalid(f"the body is a JSON object with: {', '.join(names)}")
    given: dict[str, Any] = body
    for name, wanted in {**known, "workspace": str, "project": str}.items():
        if given.get(name) is not None and type(given[name]) is not wanted:
            raise Invalid(f"{name} is of type {wanted.__name__}")
    return given


def _needed(given: Mapping[str, Any], name: str) -> Any:
    if given.get(name) is None:
        raise Invalid(f"{name} is missing")
    return given[name]


def _where(given: Mapping[str, Any]) -> Where:
    directory: Any = given.get("directory") or {}
    if not isinstance(directory, dict) or set(directory) - set(_DIRECTORY):
        raise Invalid(f"directory is an object with: {', '.join(_DIRECTORY)}")
    parts: dict[str, Any] = directory
    if not all(isinstance(value, str) for value in parts.values()):
        raise Invalid("directory: host, device, inode and path are texts")
    return Where(**parts, workspace=given.get("workspace"), project=given.get("project"))


# --- what is told --------------------------------------------------------------------------------


def entry_shape(entry: Entry) -> dict[str, Any]:
    return {
        "id": id_text(entry.id),
        "key": entry.key,
        "content": entry.content,
        "version": entry.version,
        "confidence": entry.confidence,
        "origin": str(entry.origin),
        "pinned": entry.pinned,
        "forgotten_at": time_text(entry.tombstoned_at),
        "workspace": entry.workspace,
        "project": entry.project,
        "path": entry.page_path if entry.page_is_live else None,
        "expires_at": time_text(entry.page_expires_at),
        "directory": {
            "host": entry.directory.host,
            "device": entry.directory.device,
            "inode": entry.directory.inode,
        },
        "legacy": entry.is_legacy,
        "created_at": rfc3339(entry.created_at),
        "updated_at": rfc3339(entry.updated_at),
    }


def version_shape(version: Version, entry: Entry) -> dict[str, Any]:
    return {
        "version": version.version,
        "active": version.version == entry.version,
        "content": version.content,
        "confidence": version.confidence,
        "origin": str(version.origin),
        "actor": version.actor,
        "source": _source(version.provenance),
        #: Null: drawn from no session, or the session is deleted.
        "session": id_text(version.source_session_id) if version.source_session_id else None,
        "job": id_text(version.job_id) if version.job_id else None,
        "candidate": version.candidate_index,
        "created_at": rfc3339(version.created_at),
    }


def tombstone_shape(row: Row) -> dict[str, Any]:
    return {
        "origin": row["origin"],
        "confidence": row["confidence"],
        "actor": row["actor"],
        "source": _source(provenance_of(row)),
        "job": id_text(row["job_id"]) if row["job_id"] else None,
        "created_at": rfc3339(row["created_at"]),
    }


def _source(provenance: Provenance | None) -> dict[str, Any] | None:
    if provenance is None:
        return None
    return {
        "session": id_text(provenance.session_id),
        "first_sequence": provenance.first_sequence,
        "last_sequence": provenance.last_sequence,
        "sha256": provenance.sha256.hex(),
    }


def _within_bytes(versions: list[Version]) -> list[Version]:
    """The first versions that fit into one answer, one at least."""
    left, shown = limits.KNOWLEDGE_LIST_MAX_BYTES, list[Version]()
    for version in versions:
        left -= len(version.content.encode())
        if shown and left < 0:
            break
        shown.append(version)
    return shown
