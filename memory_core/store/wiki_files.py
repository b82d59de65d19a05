"""What was last seen of the wiki's files, and the questions that a comparison with the disk asks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import bindparam, delete, func, select
from sqlalchemy.dialects.sqlite import insert

from memory_core.domain.wiki_file import FileStat
from memory_core.store.statement import Statement, text_statement
from memory_core.store.tables import page_versions, pages
from memory_core.store.tables_wiki import file_outbox, wiki_files
from memory_core.store.transaction import Reading, Transaction


@dataclass(frozen=True, slots=True)
class SeenFile:
    """A file when it was last read; `problem` is what is wrong with it."""

    stat: FileStat
    sha256: bytes
    problem: str | None


@dataclass(frozen=True, slots=True)
class PageRow:
    """A live page as far as its file is concerned."""

    id: bytes
    path: str
    key: str
    version_id: bytes


_SEEN = Statement(select(wiki_files).where(wiki_files.c.project_id == bindparam("project_id")))
_PAGES = Statement(
    select(pages.c.id, pages.c.path, pages.c.path_key, pages.c.version_id).where(
        pages.c.project_id == bindparam("project_id"), pages.c.tombstoned_at.is_(None)
    )
)
_PROMISED = Statement(select(file_outbox.c.file).where(file_outbox.c.project_id == bindparam("project_id")))
_HASH_OF = Statement(select(page_versions.c.sha256).where(page_versions.c.id == bindparam("version_id")))
_PAGE_COUNT = Statement(
    select(func.count().label("n")).select_from(pages).where(pages.c.tombstoned_at.is_(None))
)
_put = insert(wiki_files).values(
    **{
        name: bindparam(name)
        for name in ("file", "project_id", "size", "mtime_ns", "inode", "sha256", "problem", "seen_at")
    }
)
_NOTE = Statement(
    _put.on_conflict_do_update(
        index_elements=["file"],
        set_={
            name: _put.excluded[name]
            for name in ("project_id", "size", "mtime_ns", "inode", "sha256", "problem", "seen_at")
        },
    )
)
_FORGET = Statement(
    delete(wiki_files).where(
        wiki_files.c.file == bindparam("gone_file"), wiki_files.c.project_id == bindparam("of_project")
    )
)
_REFOLDER = text_statement(
    "UPDATE OR REPLACE wiki_files SET file = :new_folder || substr(file, length(:old_folder) + 1)"
    " WHERE project_id = :project_id AND substr(file, 1, length(:old_folder) + 1) = :old_folder || '/'"
)
_ANY_OF = Statement(
    select(wiki_files.c.file).where(wiki_files.c.project_id == bindparam("project_id")).limit(1)
)
_ANY = Statement(select(wiki_files.c.file).limit(1))


def seen_files(reading: Reading, project_id: bytes) -> dict[str, SeenFile]:
    """Files of a project (relative to the wiki root) as they were last read."""
    return {
        row["file"]: SeenFile(
            FileStat(row["size"], row["mtime_ns"], row["inode"]), row["sha256"], row["problem"]
        )
        for row in reading.rows(_SEEN, project_id=project_id)
    }


def page_rows(reading: Reading, project_id: bytes) -> list[PageRow]:
    return [
        PageRow(row["id"], row["path"], row["path_key"], row["version_id"])
        for row in reading.rows(_PAGES, project_id=project_id)
    ]


def promised_files(reading: Reading, project_id: bytes) -> set[str]:
    """Files that the outbox is about to change."""
    return {row["file"] for row in reading.rows(_PROMISED, project_id=project_id)}


def hash_of_version(reading: Reading, version_id: bytes) -> bytes | None:
    """The SHA-256 that the file of a version has."""
    row = reading.row(_HASH_OF, version_id=version_id)
    return None if row is None else row["sha256"]


def live_pages(reading: Reading) -> int:
    row = reading.row(_PAGE_COUNT)
    return row["n"] if row else 0


def note(tx: Transaction, project_id: bytes, file: str, seen: SeenFile) -> None:
    """Remember how a file looks: it is not read again while it looks like that."""
    tx.run(
        _NOTE,
        file=file,
        project_id=project_id,
        size=seen.stat.size,
        mtime_ns=seen.stat.mtime_ns,
        inode=seen.stat.inode,
        sha256=seen.sha256,
        problem=seen.problem,
        seen_at=tx.now,
    )


def forget(tx: Transaction, project_id: bytes, files: Iterable[str]) -> None:
    for file in files:
        tx.run(_FORGET, gone_file=file, of_project=project_id)


def refolder(tx: Transaction, project_id: bytes, old_folder: str, new_folder: str) -> None:
    """A project's folder has another name: its files are known there, and are still no new project's."""
    tx.run(_REFOLDER, project_id=project_id, old_folder=old_folder, new_folder=new_folder)


def is_any_known(reading: Reading, project_id: bytes | None = None) -> bool:
    """Whether any file was ever seen, of one project or at all: then its folder was there."""
    if project_id is None:
        return reading.row(_ANY) is not None
    return reading.row(_ANY_OF, project_id=project_id) is not None
