"""Knowledge: entries with their active version, and everything that was said under their keys. Lists are in `knowledge_lists`,
what is written in `knowledge_changes`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, and_, bindparam, exists, func, select

from memory_core.domain.directory import DirectoryId
from memory_core.domain.knowledge import Origin, Provenance, Standing
from memory_core.ids import id_text
from memory_core.store.statement import Row, Statement
from memory_core.store.tables import page_versions, pages, projects, workspaces
from memory_core.store.tables_knowledge import knowledge, knowledge_tombstones, knowledge_versions
from memory_core.store.transaction import Reading

_k, _v = knowledge.c, knowledge_versions.c


@dataclass(frozen=True, kw_only=True)
class Entry:
    """An entry with its active version; times are UTC microseconds."""

    id: bytes
    project_id: bytes
    workspace: str
    project: str
    directory: DirectoryId
    key: str
    version: int
    content: str
    confidence: float
    origin: Origin
    pinned: bool
    tombstoned_at: int | None
    is_legacy: bool
    created_at: int
    updated_at: int
    #: The page that shows it: None where it was purged; `page_is_live` is false where it was deleted.
    page_id: bytes | None
    page_path: str | None
    page_is_live: bool
    page_expires_at: int | None

    @property
    def is_forgotten(self) -> bool:
        return self.tombstoned_at is not None


@dataclass(frozen=True, kw_only=True)
class Version:
    """One thing that was said under a key."""

    version: int
    content: str
    confidence: float
    origin: Origin
    provenance: Provenance | None
    #: None: it was drawn from no session, or the session is deleted.
    source_session_id: bytes | None
    job_id: bytes | None
    candidate_index: int | None
    actor: str
    created_at: int


def entries() -> Select[Any, Any, Any, Any, Any]:
    """What `entry_of` reads."""
    return (
        select(
            *(_k[name] for name in _PLAIN),
            _k.host,
            _k.device,
            _k.inode,
            _k.pinned,
            _k.is_legacy,
            _v.version,
            _v.content,
            _v.confidence,
            _v.origin,
            workspaces.c.name.label("workspace"),
            projects.c.name.label("project"),
            pages.c.path.label("page_path"),
            pages.c.expires_at.label("page_expires_at"),
            pages.c.tombstoned_at.label("page_gone_at"),
        )
        .join_from(
            knowledge,
            knowledge_versions,
            and_(_v.knowledge_id == _k.id, _v.version == _k.active_version),
        )
        .join(projects, projects.c.id == _k.project_id)
        .join(workspaces, workspaces.c.id == projects.c.workspace_id)
        .outerjoin(pages, pages.c.id == _k.page_id)
    )


_PLAIN = ("id", "project_id", "key", "page_id", "tombstoned_at", "created_at", "updated_at")


def entry_of(row: Row) -> Entry:
    return Entry(
        **{name: row[name] for name in _PLAIN},
        workspace=row["workspace"],
        project=row["project"],
        directory=DirectoryId(host=row["host"], device=row["device"], inode=row["inode"]),
        version=row["version"],
        content=row["content"],
        confidence=row["confidence"],
        origin=Origin(row["origin"]),
        pinned=bool(row["pinned"]),
        is_legacy=bool(row["is_legacy"]),
        page_path=row["page_path"],
        page_is_live=row["page_path"] is not None and row["page_gone_at"] is None,
        page_expires_at=row["page_expires_at"],
    )


_BY_ID = Statement(entries().where(_k.id == bindparam("id")))
_BY_PAGE = Statement(entries().where(_k.page_id == bindparam("page_id")))
_BY_IDENTITY = Statement(
    entries().where(
        _k.host == bindparam("host"),
        _k.device == bindparam("device"),
        _k.inode == bindparam("inode"),
        _k.key == bindparam("key"),
    )
)
_BY_KEY = Statement(
    entries()
    .where(_k.project_id == bindparam("project_id"), _k.key == bindparam("key"), _k.is_legacy == 0)
    .order_by(_k.updated_at.desc(), _k.id)
    .limit(bindparam("limit"))
)
_BURIED_AT = Statement(
    entries()
    .where(
        # An entry whose page is deleted is forgotten. There are few of these, and an index of them; deleted pages are many,
        # so theirs is kept out of the plan.
        _k.project_id == bindparam("project_id"),
        _k.tombstoned_at.is_not(None),
        pages.c.project_id == bindparam("project_id"),
        pages.c.path_key == bindparam("path_key"),
        func.coalesce(pages.c.tombstoned_at, 0) > 0,
    )
    .order_by(pages.c.tombstoned_at.desc(), _k.id)
    .limit(1)
)
# Every page of the project is looked at, up to its front matter: for the rare file that is gone.
_OTHER_PAGE = Statement(
    select(pages.c.id)
    .join(page_versions, page_versions.c.id == pages.c.version_id)
    .where(
        pages.c.project_id == bindparam("project_id"),
        pages.c.tombstoned_at.is_(None),
        func.instr(
            func.substr(page_versions.c.content, 1, page_versions.c.body_start), bindparam("entry_text")
        )
        > 0,
        ~exists().where(_k.page_id == pages.c.id),
    )
    .order_by(pages.c.updated_at.desc())
    .limit(1)
)
_VERSION = Statement(
    select(knowledge_versions).where(
        _v.knowledge_id == bindparam("knowledge_id"), _v.version == bindparam("version")
    )
)
_HISTORY = Statement(
    select(knowledge_versions)
    .where(_v.knowledge_id == bindparam("knowledge_id"), _v.version < bindparam("before"))
    .order_by(_v.version.desc())
    .limit(bindparam("limit"))
)
_NEWEST = Statement(
    select(func.max(_v.version).label("version")).where(_v.knowledge_id == bindparam("knowledge_id"))
)
_SAYS = Statement(
    select(_v.version)
    .where(_v.knowledge_id == bindparam("knowledge_id"), _v.content == bindparam("content"))
    .limit(1)
)
_LAST_TOMBSTONE = Statement(
    select(knowledge_tombstones)
    .where(knowledge_tombstones.c.knowledge_id == bindparam("knowledge_id"))
    .order_by(knowledge_tombstones.c.created_at.desc(), knowledge_tombstones.c.id.desc())
    .limit(bindparam("limit"))
)


def by_id(reading: Reading, entry_id: bytes) -> Entry | None:
    return _entry(reading.row(_BY_ID, id=entry_id))


def by_page(reading: Reading, page_id: bytes) -> Entry | None:
    """The entry that a page shows, also a deleted page."""
    return _entry(reading.row(_BY_PAGE, page_id=page_id))


def by_identity(reading: Reading, directory: DirectoryId, key: str) -> Entry | None:
    return _entry(reading.row(_BY_IDENTITY, **parts_of(directory), key=key))


def by_key(reading: Reading, project_id: bytes, key: str, *, limit: int = 2) -> list[Entry]:
    """Entries of that key in the directories of a project, the last changed first."""
    return [entry_of(row) for row in reading.rows(_BY_KEY, project_id=project_id, key=key, limit=limit)]


def buried_at(reading: Reading, project_id: bytes, path_key: str) -> Entry | None:
    """The entry whose page was deleted last at a path."""
    return _entry(reading.row(_BURIED_AT, project_id=project_id, path_key=path_key))


def other_page(reading: Reading, project_id: bytes, entry_id: bytes) -> bytes | None:
    """A page of a project that names an entry in its front matter and shows none."""
    row = reading.row(_OTHER_PAGE, project_id=project_id, entry_text=f'"{id_text(entry_id)}"')
    return None if row is None else row["id"]


def standing(reading: Reading, entry: Entry) -> Standing:
    last = reading.row(_LAST_TOMBSTONE, knowledge_id=entry.id, limit=1) if entry.is_forgotten else None
    return Standing(
        content=entry.content,
        confidence=entry.confidence,
        origin=entry.origin,
        is_pinned=entry.pinned,
        is_forgotten=entry.is_forgotten,
        is_forgotten_by_hand=last is not None and last["origin"] == Origin.MANUAL.value,
    )


def version(reading: Reading, entry_id: bytes, number: int) -> Version | None:
    row = reading.row(_VERSION, knowledge_id=entry_id, version=number)
    return None if row is None else _version(row)


def history(reading: Reading, entry_id: bytes, *, before: int, limit: int) -> list[Version]:
    """Versions below the number `before`, the newest first."""
    rows = reading.rows(_HISTORY, knowledge_id=entry_id, before=before, limit=limit)
    return [_version(row) for row in rows]


def tombstones(reading: Reading, entry_id: bytes, *, limit: int) -> list[Row]:
    """Each time that an entry was taken away, the last one first."""
    return reading.rows(_LAST_TOMBSTONE, knowledge_id=entry_id, limit=limit)


def newest_version(reading: Reading, entry_id: bytes) -> int:
    row: Any = reading.row(_NEWEST, knowledge_id=entry_id)
    return row["version"] or 0


def was_said(reading: Reading, entry_id: bytes, content: str) -> bool:
    """Whether some version of an entry says exactly that."""
    return reading.row(_SAYS, knowledge_id=entry_id, content=content) is not None


def _entry(row: Row | None) -> Entry | None:
    return None if row is None else entry_of(row)


def parts_of(directory: DirectoryId) -> dict[str, str]:
    return {"host": directory.host, "device": directory.device, "inode": directory.inode}


def provenance_of(row: Row) -> Provenance | None:
    if row["provenance_session_id"] is None:
        return None
    return Provenance(
        session_id=row["provenance_session_id"],
        first_sequence=row["source_first_sequence"],
        last_sequence=row["source_last_sequence"],
        sha256=row["source_sha256"],
    )


def _version(row: Row) -> Version:
    return Version(
        version=row["version"],
        content=row["content"],
        confidence=row["confidence"],
        origin=Origin(row["origin"]),
        provenance=provenance_of(row),
        **{
            name: row[name]
            for name in ("source_session_id", "job_id", "candidate_index", "actor", "created_at")
        },
    )
