"""Knowledge of another program: entries with every version, tombstone and pin, under the ids and times that they have there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from memory_core import limits
from memory_core.commands import Answer, command, knowledge_entries
from memory_core.commands.durable_lease import refusing
from memory_core.commands.imported_sessions import SOURCE, moment
from memory_core.commands.scopes import ScopeRequest, ensure, resolve
from memory_core.domain import legacy_identity
from memory_core.domain.command import Refusal
from memory_core.domain.directory import Directory, DirectoryId
from memory_core.domain.knowledge import (
    Origin,
    Provenance,
    checked_confidence,
    checked_content,
    checked_key,
)
from memory_core.errors import Conflict, Invalid, NotFound
from memory_core.ids import id_text
from memory_core.store import imports, knowledge, knowledge_sources
from memory_core.store.audit import record
from memory_core.store.imports import KNOWLEDGE
from memory_core.store.knowledge_changes import Said
from memory_core.store.transaction import Reading, Transaction

#: Versions and tombstones of one command.
_PARTS_MAX: Final = limits.IMPORT_PARTS_PER_COMMAND


@dataclass(frozen=True, kw_only=True)
class ImportedSource:
    """The events that something was drawn from; `sha256` as the other program counts it."""

    session: bytes
    first_sequence: int
    last_sequence: int
    sha256: bytes


@dataclass(frozen=True, kw_only=True)
class ImportedVersion:
    version: int
    content: str
    confidence: float
    created_at: int
    session: bytes | None = None
    source: ImportedSource | None = None
    job: bytes | None = None
    candidate_index: int | None = None


@dataclass(frozen=True, kw_only=True)
class ImportedTombstone:
    id: bytes
    confidence: float
    origin: str
    created_at: int
    source: ImportedSource | None = None
    job: bytes | None = None
    candidate_index: int | None = None


@dataclass(frozen=True, kw_only=True)
class ImportKnowledge:
    """An entry of `count` versions, with the one that holds, the newest, and as many others as fit; `is_whole`: that is all."""

    id: bytes
    directory: Directory
    key: str
    is_legacy: bool
    pinned: bool
    tombstoned_at: int | None
    created_at: int
    active_version: int
    count: int
    is_whole: bool
    versions: tuple[ImportedVersion, ...]
    tombstones: tuple[ImportedTombstone, ...] = ()
    workspace: str | None = None
    project: str | None = None
    again: bool = False


@dataclass(frozen=True, kw_only=True)
class ImportVersions:
    """More of an entry whose import is under way; `is_last`: that is the rest."""

    id: bytes
    count: int
    is_last: bool
    versions: tuple[ImportedVersion, ...] = ()
    tombstones: tuple[ImportedTombstone, ...] = ()


@command(ImportKnowledge, name="import_knowledge")
@refusing
def take(body: ImportKnowledge, tx: Transaction) -> Answer | Refusal:
    """Answer: `{"state", "collided"}`: `taken`, `coming` (send the other versions), `there`, or `deleted` (here, since). `collided`: another
    entry has its identity here and keeps it; this one is known as one of a directory that is gone."""
    _check(body)
    known, is_here = imports.one(tx, SOURCE, KNOWLEDGE, body.id), imports.has_entry(tx, body.id)
    if known is None and is_here:
        raise Conflict(f"the id {id_text(body.id)} is that of another entry here")
    if known is not None and known["principal"] != tx.principal:
        raise Conflict("somebody else imported that entry")
    is_done = known is not None and known["finished_at"] is not None
    if is_here:
        return {"state": "there" if is_done else "coming", "collided": False}
    if is_done and not body.again:
        return {"state": "deleted", "collided": False}
    directory, collided = _identity(tx, body)
    _enter(tx, body, directory, is_legacy=body.is_legacy or collided)
    imports.begin(tx, SOURCE, KNOWLEDGE, body.id)
    if body.is_whole:
        imports.finish(tx, SOURCE, KNOWLEDGE, body.id, body.count)
    record(tx, "import_knowledge", detail={"entry": id_text(body.id), "versions": body.count})
    return {"state": "taken" if body.is_whole else "coming", "collided": collided}


@command(ImportVersions, name="import_knowledge_versions")
@refusing
def take_versions(body: ImportVersions, tx: Transaction) -> Answer | Refusal:
    """Answer: `{"state"}`, `taken` or `coming`."""
    known = imports.one(tx, SOURCE, KNOWLEDGE, body.id)
    if known is None or known["principal"] != tx.principal or not imports.has_entry(tx, body.id):
        raise NotFound("no import of that entry is under way; begin it first")
    _check_parts(body.versions, body.tombstones)
    if known["finished_at"] is None:
        _enter_parts(tx, body.id, body.versions, body.tombstones)
        if body.is_last:
            imports.finish(tx, SOURCE, KNOWLEDGE, body.id, body.count)
    return {"state": "taken" if body.is_last else "coming"}


def _check(body: ImportKnowledge) -> None:
    body.directory.check()
    checked_key(body.key)
    moment("created_at", body.created_at)
    if body.tombstoned_at is not None:
        moment("tombstoned_at", body.tombstoned_at)
    _check_parts(body.versions, body.tombstones)
    if body.active_version not in {version.version for version in body.versions}:
        raise Invalid("the version that holds comes with the entry")


def _check_parts(versions: tuple[ImportedVersion, ...], tombstones: tuple[ImportedTombstone, ...]) -> None:
    if len(versions) + len(tombstones) > _PARTS_MAX:
        raise Invalid(f"one request takes {_PARTS_MAX} versions and tombstones")
    if len({version.version for version in versions}) < len(versions):
        raise Invalid("a version comes twice")
    for version in versions:
        checked_content(version.content)
        if not 0 < version.version <= limits.KNOWLEDGE_VERSION_MAX:
            raise Invalid("versions are counted from 1")
    for tombstone in tombstones:
        if tombstone.origin not in set(Origin):
            raise Invalid(f"origin: one of {', '.join(Origin)}")
    for part in (*versions, *tombstones):
        checked_confidence(part.confidence)
        moment("created_at", part.created_at)
        _check_source(part)


def _check_source(part: ImportedVersion | ImportedTombstone) -> None:
    source = part.source
    if source is not None and (
        len(source.sha256) != 32 or not 0 < source.first_sequence <= source.last_sequence
    ):
        raise Invalid("a source is events of a session, counted from 1, and a digest of 32 bytes")
    if (part.job is None) != (part.candidate_index is None) or (part.candidate_index or 0) < 0:
        raise Invalid("a job and the number of its candidate go together")


def _identity(read: Reading, body: ImportKnowledge) -> tuple[DirectoryId, bool]:
    """Under which directory the entry is known, and whether another entry is known under its own."""
    own = body.directory.id
    if knowledge.by_identity(read, own, body.key) is None:
        return own, False

    def at(inode: str) -> DirectoryId:
        return DirectoryId(host=own.host, device=legacy_identity.DEVICE, inode=inode)

    device, inode = legacy_identity.of_row(
        id_text(body.id), lambda number: knowledge.by_identity(read, at(number), body.key) is not None
    )
    return DirectoryId(host=own.host, device=device, inode=inode), True


def _enter(tx: Transaction, body: ImportKnowledge, directory: DirectoryId, *, is_legacy: bool) -> None:
    project_id = _project(tx, body)
    active = next(version for version in body.versions if version.version == body.active_version)
    is_known = body.tombstoned_at is None
    said = _said(tx, active)
    page_id = None
    if is_known:
        entry = knowledge_entries.unwritten(body.id, project_id, directory, body.key, said)
        page_id = knowledge_entries.show(tx, entry, active.version, said, pinned=body.pinned)
    imports.add_entry(
        tx,
        id=body.id,
        project_id=project_id,
        owner=None,
        token_scope=tx.token_scope,
        host=directory.host,
        device=directory.device,
        inode=directory.inode,
        key=body.key,
        page_id=page_id,
        active_version=active.version,
        pinned=int(body.pinned and is_known),
        tombstoned_at=body.tombstoned_at,
        is_legacy=int(is_legacy),
        created_at=body.created_at,
        # It ages from the import on.
        updated_at=tx.now,
    )
    _enter_parts(tx, body.id, body.versions, body.tombstones)


def _enter_parts(
    tx: Transaction,
    entry_id: bytes,
    versions: tuple[ImportedVersion, ...],
    tombstones: tuple[ImportedTombstone, ...],
) -> None:
    for version in versions:
        said = _said(tx, version)
        imports.add_version(
            tx,
            knowledge_id=entry_id,
            version=version.version,
            content=said.content,
            confidence=said.confidence,
            origin=str(said.origin),
            source_session_id=said.source_session_id,
            **_source_columns(said.provenance, version),
            actor=SOURCE,
            token_scope=tx.token_scope,
            created_at=version.created_at,
        )
    for tombstone in tombstones:
        imports.add_tombstone(
            tx,
            id=tombstone.id,
            knowledge_id=entry_id,
            confidence=float(tombstone.confidence),
            origin=tombstone.origin,
            **_source_columns(_provenance(tx, tombstone.source), tombstone),
            actor=SOURCE,
            created_at=tombstone.created_at,
        )


def _said(read: Reading, version: ImportedVersion) -> Said:
    session = version.session
    return Said(
        content=version.content,
        confidence=float(version.confidence),
        origin=Origin.MANUAL if version.job is None else Origin.DISTILLATION,
        provenance=_provenance(read, version.source),
        source_session_id=session if session and imports.session(read, session) is not None else None,
    )


def _provenance(read: Reading, source: ImportedSource | None) -> Provenance | None:
    """With this database's digest of the events, where they are here; else with what the other program knew."""
    if source is None:
        return None
    event = imports.event_at(read, source.session, source.last_sequence)
    return Provenance(
        session_id=source.session,
        first_sequence=source.first_sequence,
        last_sequence=source.last_sequence,
        sha256=source.sha256 if event is None else event["digest"],
    )


def _source_columns(
    provenance: Provenance | None, part: ImportedVersion | ImportedTombstone
) -> dict[str, object]:
    return {
        "provenance_session_id": provenance.session_id if provenance else None,
        "source_first_sequence": provenance.first_sequence if provenance else None,
        "source_last_sequence": provenance.last_sequence if provenance else None,
        "source_sha256": provenance.sha256 if provenance else None,
        "job_id": part.job,
        "candidate_index": part.candidate_index,
    }


def _project(tx: Transaction, body: ImportKnowledge) -> bytes:
    """The named one, that of the last session in the directory, or the one that its path means."""
    if body.project is None:
        found = knowledge_sources.project_of_directory(tx, body.directory)
        if found is not None:
            return found
    return ensure(
        tx, resolve(tx, ScopeRequest(workspace=body.workspace, project=body.project, cwd=body.directory.path))
    )
