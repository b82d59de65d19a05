"""`/api/v1/imports/emelex`: what another program's database holds, piece by piece. See docs/import.md.

Who sends has read the database; here each piece is bounded, redacted and checked, and goes the way of every write.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import msgspec
from flask import Blueprint, Response

from memory_core import limits
from memory_core.commands.imported_events import ImportEvents
from memory_core.commands.imported_jobs import ImportJobs
from memory_core.commands.imported_journals import ImportJournal
from memory_core.commands.imported_knowledge import (
    ImportKnowledge,
    ImportVersions,
)
from memory_core.commands.imported_sessions import (
    SOURCE,
    AbandonImport,
    ImportSession,
    ImportSnapshot,
    PublishImport,
    lease_of,
)
from memory_core.domain.directory import DirectoryId
from memory_core.errors import Conflict, Invalid
from memory_core.ids import id_bytes
from memory_core.store import imports, integrity, knowledge
from memory_core.store.database import Snapshot
from web import leftovers
from web.answers import json_answer
from web.auth import current, needs
from web.bodies import read_as
from web.durable import DEPTH_MAX, checked, measured
from web.import_bodies import (
    AskedEntry,
    Entry,
    Events,
    Jobs,
    Journal,
    Known,
    Publish,
    Session,
    SnapshotBody,
    Versions,
    call_of,
    event_of,
    job_of,
    parts_of,
)
from web.ndjson import line, streamed
from web.parts import Parts
from web.submitting import submit

_MAX_BYTES = limits.REQUEST_BODY_MAX_BYTES
_TOGETHER = 2


def blueprint(parts: Parts) -> Blueprint:
    routes = Blueprint("imports", __name__, url_prefix=f"/api/v1/imports/{SOURCE}")
    _session_routes(routes, parts)
    _knowledge_routes(routes, parts)
    looking = threading.Lock()

    @routes.post("/known")
    @needs("write")
    def _known() -> Response:
        asked = read_as(Known, _MAX_BYTES, DEPTH_MAX)
        if len(asked.sessions) + len(asked.knowledge) > limits.IMPORT_KNOWN_MAX:
            raise Invalid(f"one question is about {limits.IMPORT_KNOWN_MAX} sessions and entries at most")
        with parts.database.snapshot() as reading:
            sessions = {text: _session_state(reading, id_bytes(text)) for text in asked.sessions}
            entries = {each.id: _entry_state(parts, reading, each) for each in asked.knowledge}
        return json_answer({"sessions": sessions, "knowledge": entries})

    @routes.get("/check")
    @needs("read")
    def _check() -> Response:
        return streamed(line({"begun": True}), lambda: _looked(parts, looking))

    return routes


def _session_routes(routes: Blueprint, parts: Parts) -> None:
    @routes.post("/sessions")
    @needs("write")
    def _begin() -> Response:
        asked = read_as(Session, _MAX_BYTES)
        fields = {name: getattr(asked, name) for name in asked.__struct_fields__}
        session_id, directory = id_bytes(fields.pop("session_id")), asked.directory.with_path(parts)
        if asked.restart:
            leftovers.clear(parts, session_id, lease_of(session_id))
        return submit(parts, ImportSession(**fields | {"session": session_id, "directory": directory}))

    @routes.post("/sessions/<text>/events")
    @needs("write")
    def _events(text: str) -> Response:
        asked = read_as(Events, _MAX_BYTES, DEPTH_MAX)
        if not 0 < len(asked.events) <= limits.TURN_SLICE_EVENTS_MAX:
            raise Invalid(f"events: 1 to {limits.TURN_SLICE_EVENTS_MAX}")
        sizes = [
            measured(f"events[{index}]: its payload", event.payload, limits.EVENT_PAYLOAD_MAX_BYTES)
            for index, event in enumerate(asked.events)
        ]
        if len(sizes) > 1 and sum(sizes) > limits.TURN_SLICE_MAX_BYTES:
            raise Invalid(
                f"events: {limits.TURN_SLICE_MAX_BYTES} bytes of payloads in one request, or a single event"
            )
        events = tuple(event_of(each) for each in asked.events)
        return submit(parts, ImportEvents(session=id_bytes(text), after=asked.after, events=events))

    @routes.put("/sessions/<text>/snapshot")
    @needs("write")
    def _snapshot(text: str) -> Response:
        asked = read_as(SnapshotBody, _MAX_BYTES, DEPTH_MAX)
        for name in ("config", "authority"):
            measured(name, getattr(asked, name), limits.SNAPSHOT_PART_MAX_BYTES)
        fields = {name: getattr(asked, name) for name in asked.__struct_fields__}
        return submit(parts, ImportSnapshot(session=id_bytes(text), **fields))

    @routes.put("/sessions/<text>/journal")
    @needs("write")
    def _journal(text: str) -> Response:
        asked = read_as(Journal, _MAX_BYTES, DEPTH_MAX)
        measured("the journal", msgspec.to_builtins(asked), _MAX_BYTES)
        fields = {name: getattr(asked, name) for name in asked.__struct_fields__}
        del fields["turn_id"]
        fields |= {"calls": tuple(call_of(call) for call in asked.calls), "audit": tuple(asked.audit)}
        return submit(parts, ImportJournal(session=id_bytes(text), turn=id_bytes(asked.turn_id), **fields))

    @routes.post("/sessions/<text>/jobs")
    @needs("write")
    def _jobs(text: str) -> Response:
        asked = read_as(Jobs, _MAX_BYTES)
        if not 0 < len(asked.jobs) <= limits.IMPORT_JOBS_PER_COMMAND:
            raise Invalid(f"jobs: 1 to {limits.IMPORT_JOBS_PER_COMMAND}")
        return submit(
            parts, ImportJobs(session=id_bytes(text), jobs=tuple(job_of(each) for each in asked.jobs))
        )

    @routes.post("/sessions/<text>/publish")
    @needs("write")
    def _publish(text: str) -> Response:
        asked = read_as(Publish, _MAX_BYTES)
        fields = {name: getattr(asked, name) for name in asked.__struct_fields__}
        return submit(parts, PublishImport(session=id_bytes(text), **fields))

    @routes.delete("/sessions/<text>")
    @needs("write")
    def _abandon(text: str) -> Response:
        return submit(parts, AbandonImport(session=id_bytes(text)))


def _check_bytes(asked: Entry | Versions) -> None:
    """The version that holds and the newest one may be as long as they are."""
    total = sum(len(version.content.encode("utf-8", "replace")) for version in asked.versions)
    if len(asked.versions) > _TOGETHER and total > limits.TURN_SLICE_MAX_BYTES:
        raise Invalid(
            f"versions: {limits.TURN_SLICE_MAX_BYTES} bytes of text in one request, or {_TOGETHER} of them"
        )


def _knowledge_routes(routes: Blueprint, parts: Parts) -> None:
    @routes.post("/knowledge")
    @needs("write")
    def _entry() -> Response:
        asked = read_as(Entry, _MAX_BYTES)
        _check_bytes(asked)
        fields = {name: getattr(asked, name) for name in asked.__struct_fields__}
        fields |= {"id": id_bytes(asked.id), "directory": asked.directory.with_path(parts)} | parts_of(asked)
        return submit(parts, ImportKnowledge(**fields))

    @routes.post("/knowledge/<text>/versions")
    @needs("write")
    def _versions(text: str) -> Response:
        asked = read_as(Versions, _MAX_BYTES)
        _check_bytes(asked)
        return submit(
            parts,
            ImportVersions(id=id_bytes(text), count=asked.count, is_last=asked.is_last, **parts_of(asked)),
        )


# --- what is here already --------------------------------------------------------------------------


def _session_state(reading: Snapshot, session_id: bytes) -> dict[str, Any]:
    """`new`, `taken` (by another session), `coming`, `there` with its number of events then, or `deleted`."""
    known = imports.one(reading, SOURCE, imports.SESSION, session_id)
    row = imports.session(reading, session_id)
    is_here = row is not None and row["durable_id"] is not None and row["deleted_at"] is None
    if row is not None and (known is None or row["owner"] != current().principal):
        return {"state": "taken"}
    if known is None:
        return {"state": "new"}
    if known["finished_at"] is None:
        return {"state": "coming"}
    if row is None or not is_here:
        return {"state": "deleted"}
    return {"state": "there", "through": known["through"], "last_sequence": row["last_sequence"]}


def _entry_state(parts: Parts, reading: Snapshot, asked: AskedEntry) -> dict[str, Any]:
    """`new`, `taken`, `coming`, `there` or `deleted`; and whether another entry is known under its identity here."""
    entry_id = id_bytes(asked.id)
    known = imports.one(reading, SOURCE, imports.KNOWLEDGE, entry_id)
    is_here = imports.has_entry(reading, entry_id)
    directory: DirectoryId = checked(parts, asked.directory.id(parts))
    other = knowledge.by_identity(reading, directory, parts.gate.redact(asked.key))
    state = "new"
    if known is None or known["principal"] != current().principal:
        state = "taken" if is_here or known is not None else "new"
    elif known["finished_at"] is None:
        state = "coming"
    else:
        state = "there" if is_here else "deleted"
    return {"state": state, "collides": state == "new" and other is not None}


def _looked(parts: Parts, looking: threading.Lock) -> Iterator[bytes]:
    """A line for each table, then for the references of all, then the end."""
    if not looking.acquire(blocking=False):
        raise Conflict("somebody has the database looked through already; try again when that is done")
    try:
        wrong = 0
        for look in integrity.look(parts.settings.database):
            wrong += not look.is_whole
            yield line({"table": look.table, "kind": look.kind, "is_whole": look.is_whole})
        yield line({"end": {"wrong": wrong}})
    finally:
        looking.release()
