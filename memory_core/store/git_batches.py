"""What the wiki's history holds and what it is still to hold: open changes, closed batches, commits."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from sqlalchemy import BigInteger, bindparam, delete, func, insert, literal, select, update

from memory_core import limits
from memory_core.store.statement import Row, Statement, text_statement
from memory_core.store.tables import page_versions, pages, projects, workspaces
from memory_core.store.tables_git import git_batches, git_changes
from memory_core.store.tables_wiki import file_outbox
from memory_core.store.transaction import Reading, Transaction

BATCH = "batch"
CHECKPOINT = "checkpoint"
BASELINE = "baseline"
_OPEN = 0


@dataclass(frozen=True, kw_only=True)
class Batch:
    """One commit that is, or is to be. `commit_id` is None until it is made."""

    seq: int
    id: bytes
    kind: str
    message: str
    version_seq: int
    commit_id: str | None
    closed_at: int


@dataclass(frozen=True, kw_only=True)
class Change:
    """One page file of a batch; `version_id` None means that it goes away."""

    workspace: str
    project: str
    project_id: bytes
    path: str
    version_id: bytes | None
    #: Why the version was made; None where there is none.
    cause: str | None
    #: Of its project, see there.
    folder: str | None = None
    earlier_folders: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class OpenChanges:
    """Changes that no batch has taken yet; times in UTC microseconds."""

    count: int
    first_at: int
    last_at: int


_OPEN_CHANGES = Statement(
    select(
        func.count().label("count"),
        func.min(git_changes.c.changed_at).label("first_at"),
        func.max(git_changes.c.changed_at).label("last_at"),
    ).where(git_changes.c.batch_seq == _OPEN)
)
_NEWEST_VERSION = Statement(select(func.coalesce(func.max(page_versions.c.seq), 0).label("seq")))
_ADD = Statement(
    insert(git_batches).values(
        **{
            name: bindparam(name)
            for name in (
                "id",
                "kind",
                "message",
                "version_seq",
                "commit_id",
                "files",
                "closed_at",
                "committed_at",
            )
        }
    )
)
_TAKE = Statement(
    update(git_changes).where(git_changes.c.batch_seq == _OPEN).values(batch_seq=bindparam("taken_by"))
)
_BATCHES = select(git_batches)
_BY_ID = Statement(_BATCHES.where(git_batches.c.id == bindparam("id")))
_NEWEST = Statement(_BATCHES.order_by(git_batches.c.seq.desc()).limit(1))
_NEWEST_COMMITTED = Statement(
    _BATCHES.where(git_batches.c.commit_id.is_not(None))
    .order_by(git_batches.c.seq.desc())
    .limit(bindparam("count"))
)
_WAITING = Statement(
    _BATCHES.where(git_batches.c.commit_id.is_(None)).order_by(git_batches.c.seq).limit(bindparam("count"))
)
_PENDING = Statement(select(func.count().label("count")).select_from(git_changes))
_CHANGES = Statement(
    select(
        workspaces.c.name.label("workspace"),
        projects.c.name.label("project"),
        projects.c.folder,
        projects.c.earlier_folders,
        git_changes.c.project_id,
        git_changes.c.path,
        git_changes.c.version_id,
        page_versions.c.cause,
    )
    .outerjoin(page_versions, page_versions.c.id == git_changes.c.version_id)
    .join(projects, projects.c.id == git_changes.c.project_id)
    .join(workspaces, workspaces.c.id == projects.c.workspace_id)
    .where(git_changes.c.batch_seq == bindparam("batch_seq"))
    .order_by(git_changes.c.project_id, git_changes.c.path)
)
_SYNCED = Statement(
    select(func.max(git_batches.c.version_seq).label("seq")).where(git_batches.c.commit_id.is_not(None))
)
_COMMITTED = Statement(
    update(git_batches)
    .where(git_batches.c.id == bindparam("batch_id"), git_batches.c.commit_id.is_(None))
    .values(commit_id=bindparam("commit"), files=bindparam("count"), committed_at=bindparam("now"))
)
_FORGET_CHANGES = Statement(
    delete(git_changes).where(
        git_changes.c.batch_seq != _OPEN,
        git_changes.c.batch_seq.in_(select(git_batches.c.seq).where(git_batches.c.commit_id.is_not(None))),
    )
)
_FORGET_OLD = Statement(
    delete(git_batches).where(
        git_batches.c.commit_id.is_not(None),
        git_batches.c.seq <= bindparam("newest") - limits.GIT_BATCHES_KEPT,
    )
)
_ALL_OF_PROJECT = text_statement(
    "INSERT OR REPLACE INTO git_changes(batch_seq, project_id, path, version_id, changed_at)"
    " SELECT 0, project_id, path, version_id, :changed_at FROM pages"
    " WHERE project_id = :project_id AND tombstoned_at IS NULL"
)
_PROMISED = Statement(select(file_outbox.c.file).limit(bindparam("count")))
_LIVE = Statement(
    select(
        pages.c.number,
        workspaces.c.name.label("workspace"),
        projects.c.name.label("project"),
        projects.c.folder,
        projects.c.earlier_folders,
        pages.c.project_id,
        pages.c.path,
        pages.c.version_id,
        page_versions.c.cause,
    )
    .join(page_versions, page_versions.c.id == pages.c.version_id)
    .join(projects, projects.c.id == pages.c.project_id)
    .join(workspaces, workspaces.c.id == projects.c.workspace_id)
    .where(pages.c.tombstoned_at.is_(None), pages.c.number > bindparam("after"))
    .order_by(pages.c.number)
    .limit(bindparam("count"))
)


_NOTE_AGAIN = Statement(
    insert(git_changes)
    .prefix_with("OR REPLACE")
    .from_select(
        ["batch_seq", "project_id", "path", "version_id", "changed_at"],
        select(
            literal(_OPEN),
            pages.c.project_id,
            pages.c.path,
            pages.c.version_id,
            bindparam("now", type_=BigInteger),
        ).where(pages.c.id == bindparam("page_id"), pages.c.tombstoned_at.is_(None)),
    )
)


def _batch(row: Row) -> Batch:
    names = ("seq", "id", "kind", "message", "version_seq", "commit_id", "closed_at")
    return Batch(**{name: row[name] for name in names})


def _only(row: Row | None) -> Batch | None:
    return None if row is None else _batch(row)


def open_changes(reading: Reading) -> OpenChanges | None:
    """What waits to be taken into a batch; None when nothing does."""
    row: Any = reading.row(_OPEN_CHANGES)
    if not row["count"]:
        return None
    return OpenChanges(count=row["count"], first_at=row["first_at"], last_at=row["last_at"])


def note_all(tx: Transaction, project_id: bytes) -> None:
    """Every page of a project has its file elsewhere now."""
    tx.run(_ALL_OF_PROJECT, project_id=project_id, changed_at=tx.now)


def note_again(tx: Transaction, page_id: bytes) -> None:
    """A live page's file is to be committed as it is now; nothing comes of it where it is committed already."""
    tx.run(_NOTE_AGAIN, page_id=page_id, now=tx.now)


def newest_version(reading: Reading) -> int:
    """The newest row of `page_versions`, 0 when there is none."""
    row: Any = reading.row(_NEWEST_VERSION)
    return row["seq"]


def close_open(tx: Transaction, kind: str, message: str = "") -> Batch | None:
    """Close the open changes as one batch; None when there are none."""
    if open_changes(tx) is None:
        return None
    batch_id = tx.new_id()
    tx.run(
        _ADD,
        id=batch_id,
        kind=kind,
        message=message,
        version_seq=newest_version(tx),
        commit_id=None,
        files=None,
        closed_at=tx.now,
        committed_at=None,
    )
    row: Any = tx.row(_BY_ID, id=batch_id)
    tx.run(_TAKE, taken_by=row["seq"])
    return _batch(row)


def add_committed(tx: Transaction, batch: Batch, *, files: int) -> None:
    """Enter a commit that no batch stood for (a baseline); nothing when it is there already."""
    if by_id(tx, batch.id) is None:
        tx.run(
            _ADD,
            id=batch.id,
            kind=batch.kind,
            message=batch.message,
            version_seq=batch.version_seq,
            commit_id=batch.commit_id,
            files=files,
            closed_at=batch.closed_at,
            committed_at=tx.now,
        )


def mark_committed(tx: Transaction, batch_id: bytes, commit_id: str, *, files: int) -> bool:
    """Note the commit of a batch and forget its changes; false when it was noted before."""
    is_new = bool(tx.run(_COMMITTED, batch_id=batch_id, commit=commit_id, count=files, now=tx.now))
    if is_new:
        tx.run(_FORGET_CHANGES)
        last = newest(tx)
        tx.run(_FORGET_OLD, newest=last.seq if last else 0)
    return is_new


def by_id(reading: Reading, batch_id: bytes) -> Batch | None:
    return _only(reading.row(_BY_ID, id=batch_id))


def newest(reading: Reading) -> Batch | None:
    """The batch that was closed last, committed or not."""
    return _only(reading.row(_NEWEST))


def newest_committed(reading: Reading, count: int = 1) -> list[Batch]:
    return [_batch(row) for row in reading.rows(_NEWEST_COMMITTED, count=count)]


def waiting(reading: Reading, count: int) -> list[Batch]:
    """Closed batches that are not committed yet, oldest first."""
    return [_batch(row) for row in reading.rows(_WAITING, count=count)]


def changes_of(reading: Reading, batch: Batch) -> list[Change]:
    return [_change(row) for row in reading.rows(_CHANGES, batch_seq=batch.seq)]


def _change(row: Row) -> Change:
    names = ("workspace", "project", "project_id", "path", "version_id", "cause", "folder")
    return Change(
        **{name: row[name] for name in names}, earlier_folders=tuple(json.loads(row["earlier_folders"]))
    )


def pending_files(reading: Reading) -> int:
    """Page files whose newest state is not committed yet."""
    row: Any = reading.row(_PENDING)
    return row["count"]


def synced_version(reading: Reading) -> int:
    """All rows of `page_versions` up to this one are in a commit that is synced to disk."""
    row: Any = reading.row(_SYNCED)
    return row["seq"] or 0


def promised_files(reading: Reading, count: int) -> set[str]:
    """Files (relative to the wiki root) that are not on disk yet as promised."""
    return {row["file"] for row in reading.rows(_PROMISED, count=count)}


def live_pages(reading: Reading, *, after: int, count: int) -> tuple[list[Change], int]:
    """The next pages behind the page number `after` as changes, and the last one's number."""
    rows = reading.rows(_LIVE, after=after, count=count)
    return [_change(row) for row in rows], rows[-1]["number"] if rows else after
