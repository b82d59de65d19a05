"""Pages and their versions. A page's row is its identity; what is counted of it outlives its versions."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from sqlalchemy import bindparam, insert, select, update

from memory_core.domain.entities import entities_of
from memory_core.domain.knowledge import Head
from memory_core.domain.page import PagePath, Tier
from memory_core.domain.project import Project
from memory_core.store import entities, links, page_chunks, rendered
from memory_core.store.statement import Row, Statement
from memory_core.store.tables import page_versions, pages
from memory_core.store.transaction import Reading, Transaction


@dataclass(frozen=True, kw_only=True)
class StoredPage:
    """A page with its latest version."""

    id: bytes
    number: int
    project_id: bytes
    path: str
    version_id: bytes
    title: str
    kind: str
    tier: Tier
    tags: tuple[str, ...]
    pinned: bool
    #: The whole file, front matter included, redacted.
    content: str
    #: Where the body begins in `content`, characters.
    body_start: int
    #: Of the file's bytes.
    sha256: bytes
    created_at: int
    updated_at: int
    expires_at: int | None

    @property
    def body(self) -> str:
        return self.content[self.body_start :]


@dataclass(frozen=True, kw_only=True)
class NewVersion:
    """What a version is made of; `path` is where it will stand."""

    title: str
    kind: str
    tier: Tier
    tags: tuple[str, ...]
    pinned: bool
    expires_at: int | None
    content: str
    body_start: int
    sha256: bytes
    path: str
    cause: str
    session_id: bytes | None
    actor: str
    #: Names of things that it says it is about.
    entities: tuple[str, ...] = ()
    #: The entry of knowledge that its front matter says it shows.
    shows: Head | None = None
    #: UTC microseconds; None: now.
    created_at: int | None = None


_LATEST = (
    select(
        pages.c.id,
        pages.c.number,
        pages.c.project_id,
        pages.c.path,
        pages.c.version_id,
        pages.c.pinned,
        pages.c.created_at,
        pages.c.updated_at,
        pages.c.expires_at,
        page_versions.c.title,
        page_versions.c.kind,
        page_versions.c.tier,
        page_versions.c.tags,
        page_versions.c.content,
        page_versions.c.body_start,
        page_versions.c.sha256,
    )
    .join(page_versions, page_versions.c.id == pages.c.version_id)
    .where(pages.c.tombstoned_at.is_(None))
)
_BY_KEY = Statement(
    _LATEST.where(pages.c.project_id == bindparam("project_id"), pages.c.path_key == bindparam("path_key"))
)
_BY_ID = Statement(_LATEST.where(pages.c.id == bindparam("id")))
_BY_TITLE = Statement(
    _LATEST.where(pages.c.project_id == bindparam("project_id"), page_versions.c.title == bindparam("title"))
    .order_by(pages.c.updated_at.desc())
    .limit(1)
)
_VERSION = Statement(select(page_versions).where(page_versions.c.id == bindparam("id")))
_CHAIN = Statement(
    select(page_versions.c.seq, page_versions.c.sha256)
    .where(page_versions.c.page_id == bindparam("page_id"))
    .order_by(page_versions.c.seq)
)
_CONTENT = Statement(
    select(page_versions.c.content)
    .join(pages, pages.c.id == page_versions.c.page_id)
    .where(
        page_versions.c.id == bindparam("version_id"),
        pages.c.project_id == bindparam("project_id"),
        pages.c.path_key == bindparam("path_key"),
    )
)
_ADD_PAGE = Statement(
    insert(pages).values(
        id=bindparam("id"),
        project_id=bindparam("project_id"),
        owner=bindparam("owner"),
        token_scope=bindparam("token_scope"),
        path=bindparam("path"),
        path_key=bindparam("path_key"),
        version_id=bindparam("version_id"),
        pinned=bindparam("pinned"),
        created_at=bindparam("now"),
        updated_at=bindparam("now"),
        expires_at=bindparam("expires_at"),
    )
)
_MOVE_ON = Statement(
    update(pages)
    .where(pages.c.id == bindparam("page_id"))
    .values(
        version_id=bindparam("new_version_id"),
        pinned=bindparam("is_pinned"),
        updated_at=bindparam("now"),
        expires_at=bindparam("expiry"),
    )
)
_ADD_VERSION = Statement(
    insert(page_versions).values(
        **{
            name: bindparam(name)
            for name in (
                "id",
                "project_id",
                "owner",
                "token_scope",
                "page_id",
                "supersedes",
                "title",
                "kind",
                "tier",
                "tags",
                "content",
                "body_start",
                "sha256",
                "cause",
                "session_id",
                "actor",
                "created_at",
            )
        }
    )
)
_SUPERSEDE = Statement(
    update(page_versions)
    .where(page_versions.c.id == bindparam("old_id"))
    .values(superseded_at=bindparam("now"))
)
_TOMBSTONE = Statement(
    update(pages).where(pages.c.id == bindparam("page_id")).values(tombstoned_at=bindparam("now"))
)
_MOVE = Statement(
    update(pages)
    .where(pages.c.id == bindparam("page_id"))
    .values(path=bindparam("new_path"), path_key=bindparam("new_key"))
    .returning(pages.c.number)
)
_BURIED = Statement(
    select(pages.c.id)
    .where(
        pages.c.project_id == bindparam("project_id"),
        pages.c.path_key == bindparam("path_key"),
        pages.c.tombstoned_at.is_not(None),
    )
    .order_by(pages.c.tombstoned_at.desc())
    .limit(1)
)
_REVIVE = Statement(update(pages).where(pages.c.id == bindparam("page_id")).values(tombstoned_at=None))
_SET_HASH = Statement(
    update(page_versions).where(page_versions.c.id == bindparam("version")).values(sha256=bindparam("hash"))
)
_HASH_KNOWN = Statement(
    select(page_versions.c.seq).where(page_versions.c.sha256 == bindparam("hash")).limit(1)
)


def _stored(row: Row) -> StoredPage:
    return StoredPage(
        **{name: row[name] for name in _PLAIN},
        tier=Tier(row["tier"]),
        tags=tuple(json.loads(row["tags"])),
        pinned=bool(row["pinned"]),
    )


_PLAIN = (
    "id",
    "number",
    "project_id",
    "path",
    "version_id",
    "title",
    "kind",
    "content",
    "body_start",
    "sha256",
    "created_at",
    "updated_at",
    "expires_at",
)


def page_at(reading: Reading, project_id: bytes, path_key: str) -> StoredPage | None:
    """The page at a path key of a project, also an expired one; None if there is none or it was deleted."""
    row = reading.row(_BY_KEY, project_id=project_id, path_key=path_key)
    return None if row is None else _stored(row)


def page_by_id(reading: Reading, page_id: bytes) -> StoredPage | None:
    row = reading.row(_BY_ID, id=page_id)
    return None if row is None else _stored(row)


def page_titled(reading: Reading, project_id: bytes, title: str) -> StoredPage | None:
    """The newest page of a project with exactly that title."""
    row = reading.row(_BY_TITLE, project_id=project_id, title=title)
    return None if row is None else _stored(row)


def version_row(reading: Reading, version_id: bytes) -> Any:
    """One version with all its columns, or None."""
    return reading.row(_VERSION, id=version_id)


def chain(reading: Reading, page_id: bytes) -> list[tuple[int, bytes]]:
    """Row number and file hash of each version of a page, oldest first."""
    return [(row["seq"], row["sha256"]) for row in reading.rows(_CHAIN, page_id=page_id)]


def version_content(reading: Reading, project_id: bytes, path_key: str, version_id: bytes) -> str | None:
    """The whole file of a version, if it is one of the page at that path, or of a deleted one that was there."""
    row = reading.row(_CONTENT, project_id=project_id, path_key=path_key, version_id=version_id)
    return None if row is None else row["content"]


def hash_is_known(reading: Reading, sha256: bytes) -> bool:
    """Whether some version of some page has a file of exactly these bytes."""
    return reading.row(_HASH_KNOWN, hash=sha256) is not None


def add_page(tx: Transaction, project: Project, path: PagePath, version: NewVersion) -> tuple[bytes, bytes]:
    """A new page with its first version, indexed; their ids."""
    page_id, version_id = tx.new_id(), tx.new_id()
    number = tx.insert(
        _ADD_PAGE,
        id=page_id,
        project_id=project.id,
        owner=None,
        token_scope=tx.token_scope,
        path=path.path,
        path_key=path.key,
        version_id=version_id,
        pinned=int(version.pinned),
        now=version.created_at or tx.now,
        expires_at=version.expires_at,
    )
    add_version(tx, project, page_id, version_id, None, version)
    _index(tx, number, project, version)
    return page_id, version_id


def supersede(tx: Transaction, project: Project, page: StoredPage, version: NewVersion) -> bytes:
    """A newer version of a page, indexed in place of the old one, which stays in the chain; its id."""
    version_id = tx.new_id()
    now = version.created_at or tx.now
    tx.run(_SUPERSEDE, old_id=page.version_id, now=now)
    add_version(tx, project, page.id, version_id, page.version_id, version)
    tx.run(
        _MOVE_ON,
        page_id=page.id,
        new_version_id=version_id,
        is_pinned=int(version.pinned),
        now=now,
        expiry=version.expires_at,
    )
    _index(tx, page.number, project, version)
    return version_id


def tombstone(tx: Transaction, page: StoredPage) -> None:
    """Hide a page and take it and its links out of the index; its versions stay."""
    links.drop(tx, page.id)
    rendered.touch(tx, page.project_id)
    tx.run(_SUPERSEDE, old_id=page.version_id, now=tx.now)
    tx.run(_TOMBSTONE, page_id=page.id, now=tx.now)
    page_chunks.drop(tx, page.number)
    entities.drop(tx, page.number)


def move(tx: Transaction, page_id: bytes, path: PagePath) -> None:
    """Give a page another path; who calls this writes a version under it, which brings the index up to date."""
    row = tx.row(_MOVE, page_id=page_id, new_path=path.path, new_key=path.key)
    if row is not None:
        page_chunks.drop(tx, row["number"])


def revive(tx: Transaction, project_id: bytes, path: PagePath) -> StoredPage | None:
    """Bring the page that was last deleted at a path back, with its history; None when there was none.

    Who calls this writes a version of it, which brings it back into the index.
    """
    row = tx.row(_BURIED, project_id=project_id, path_key=path.key)
    if row is None:
        return None
    bring_back(tx, row["id"])
    move(tx, row["id"], path)
    return page_by_id(tx, row["id"])


def bring_back(tx: Transaction, page_id: bytes) -> StoredPage | None:
    """Bring a deleted page back to the path that it had, which must be free; as with `revive`, a version of it follows."""
    tx.run(_REVIVE, page_id=page_id)
    return page_by_id(tx, page_id)


def set_file_hash(tx: Transaction, version_id: bytes, sha256: bytes) -> None:
    """Note the bytes that a version's file has where they are not those of its text."""
    tx.run(_SET_HASH, version=version_id, hash=sha256)


def add_version(
    tx: Transaction,
    project: Project,
    page_id: bytes,
    version_id: bytes,
    supersedes: bytes | None,
    version: NewVersion,
) -> None:
    """One row of a page's chain and nothing else."""
    rendered.touch(tx, project.id)
    tx.run(
        _ADD_VERSION,
        id=version_id,
        project_id=project.id,
        owner=None,
        token_scope=tx.token_scope,
        page_id=page_id,
        supersedes=supersedes,
        title=version.title,
        kind=version.kind,
        tier=str(version.tier),
        tags=json.dumps(version.tags, ensure_ascii=False),
        content=version.content,
        body_start=version.body_start,
        sha256=version.sha256,
        cause=version.cause,
        session_id=version.session_id,
        actor=version.actor,
        created_at=version.created_at or tx.now,
    )


def _index(tx: Transaction, number: int, project: Project, version: NewVersion) -> None:
    body = version.content[version.body_start :]
    page_chunks.write(
        tx,
        page_number=number,
        project_number=project.number,
        path=version.path,
        title=version.title,
        body=body,
    )
    named = entities_of(version.path, body, version.entities)
    entities.write(tx, page_number=number, project_number=project.number, named=named)
