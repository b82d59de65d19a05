"""Bodies of `/api/v1/imports`: what they hold, and as commands carry it."""

from __future__ import annotations

from typing import Any

import msgspec

from memory_core.commands.durable_turns import EventAsset
from memory_core.commands.imported_events import ImportedEvent
from memory_core.commands.imported_jobs import ImportedJob, ImportedResult
from memory_core.commands.imported_journals import ImportedCall
from memory_core.commands.imported_knowledge import ImportedSource, ImportedTombstone, ImportedVersion
from memory_core.ids import id_bytes
from web.durable import Place, digest_of


class _Strict(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A body: what is not known in it is refused."""


class Session(_Strict):
    session_id: str
    directory: Place
    last_sequence: int
    started_at: int
    updated_at: int
    title: str | None = None
    model_reference: str | None = None
    workspace: str | None = None
    project: str | None = None
    again: bool = False
    restart: bool = False


class Asset(_Strict):
    sha256: str
    bytes: int
    kind: str


class Event(_Strict):
    id: str
    turn_id: str
    turn_index: int
    turn_size: int
    kind: str
    payload: Any
    created_at: int
    assets: list[Asset] = []


class Events(_Strict):
    after: int
    events: list[Event]


class SnapshotBody(_Strict):
    schema_version: int
    config: Any
    authority: Any
    created_at: int
    updated_at: int


class Call(_Strict):
    call_id: str
    name: str
    arguments: dict[str, Any]
    state: str
    result: dict[str, Any] | None = None
    origin: str | None = None
    is_error: bool | None = None


class Journal(_Strict):
    turn_id: str
    input: dict[str, Any]
    checkpoint_count: int
    event_count: int
    event_bytes: int
    message: dict[str, Any] | None = None
    audit: list[dict[str, Any]] = []
    calls: list[Call] = []


class Result(_Strict):
    candidate_index: int
    knowledge_id: str
    version: int
    action: str


class Job(_Strict):
    id: str
    kind: str
    through_sequence: int
    state: str
    failures: int
    last_error: str | None
    created_at: int
    updated_at: int
    summary_event_id: str | None = None
    results: list[Result] = []


class Jobs(_Strict):
    jobs: list[Job]


class Publish(_Strict):
    last_sequence: int
    substance: int
    last_event_at: int


class Source(_Strict):
    session_id: str
    first_sequence: int
    last_sequence: int
    sha256: str


class Version(_Strict):
    version: int
    content: str
    confidence: float
    created_at: int
    session_id: str | None = None
    source: Source | None = None
    job_id: str | None = None
    candidate_index: int | None = None


class Tombstone(_Strict):
    id: str
    confidence: float
    origin: str
    created_at: int
    source: Source | None = None
    job_id: str | None = None
    candidate_index: int | None = None


class Entry(_Strict):
    id: str
    directory: Place
    key: str
    is_legacy: bool
    pinned: bool
    tombstoned_at: int | None
    created_at: int
    active_version: int
    count: int
    is_whole: bool
    versions: list[Version]
    tombstones: list[Tombstone] = []
    workspace: str | None = None
    project: str | None = None
    again: bool = False


class Versions(_Strict):
    count: int
    is_last: bool
    versions: list[Version] = []
    tombstones: list[Tombstone] = []


class AskedEntry(_Strict):
    id: str
    directory: Place
    key: str


class Known(_Strict):
    sessions: list[str] = []
    knowledge: list[AskedEntry] = []


def event_of(event: Event) -> ImportedEvent:
    """As a command carries it. Raises `Invalid`, as all of these."""
    return ImportedEvent(
        id=id_bytes(event.id),
        turn=id_bytes(event.turn_id),
        turn_index=event.turn_index,
        turn_size=event.turn_size,
        kind=event.kind,
        payload=event.payload,
        created_at=event.created_at,
        assets=tuple(
            EventAsset(sha256=digest_of(each.sha256), bytes=each.bytes, kind=each.kind)
            for each in event.assets
        ),
    )


def call_of(call: Call) -> ImportedCall:
    fields = {name: getattr(call, name) for name in call.__struct_fields__}
    del fields["call_id"]
    return ImportedCall(call=id_bytes(call.call_id), **fields)


def job_of(job: Job) -> ImportedJob:
    fields = {name: getattr(job, name) for name in job.__struct_fields__}
    summary = fields.pop("summary_event_id")
    results = tuple(
        ImportedResult(
            candidate_index=each.candidate_index,
            knowledge=id_bytes(each.knowledge_id),
            version=each.version,
            action=each.action,
        )
        for each in job.results
    )
    return ImportedJob(**fields | {"id": id_bytes(job.id), "summary": _id(summary), "results": results})


def parts_of(asked: Entry | Versions) -> dict[str, Any]:
    """`versions` and `tombstones`."""
    return {
        "versions": tuple(
            ImportedVersion(
                version=each.version,
                content=each.content,
                confidence=each.confidence,
                created_at=each.created_at,
                session=_id(each.session_id),
                **_origin(each),
            )
            for each in asked.versions
        ),
        "tombstones": tuple(
            ImportedTombstone(
                id=id_bytes(each.id),
                confidence=each.confidence,
                origin=each.origin,
                created_at=each.created_at,
                **_origin(each),
            )
            for each in asked.tombstones
        ),
    }


def _origin(part: Version | Tombstone) -> dict[str, Any]:
    told = part.source
    source = None
    if told is not None:
        source = ImportedSource(
            session=id_bytes(told.session_id),
            first_sequence=told.first_sequence,
            last_sequence=told.last_sequence,
            sha256=digest_of(told.sha256),
        )
    return {"source": source, "job": _id(part.job_id), "candidate_index": part.candidate_index}


def _id(text: str | None) -> bytes | None:
    return None if text is None else id_bytes(text)
