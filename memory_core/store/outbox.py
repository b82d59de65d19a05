"""The file outbox: what the wiki's files are promised to become. One row per file; a newer promise joins an older one."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from sqlalchemy import bindparam, delete, func, insert, select, update

from memory_core.store.statement import Row, Statement, text_statement
from memory_core.store.tables_wiki import file_outbox
from memory_core.store.transaction import Reading, Transaction

#: In place of a hash: no file is there.
ABSENT = "absent"


@dataclass(frozen=True, kw_only=True)
class Promise:
    """One row: `file` (relative to the wiki root) is to hold `sha256` of version `version_id`, or to be gone (both None).

    `expected` are the states that the writer itself left or promised there; anything else is
    somebody's edit.
    """

    seq: int
    project_id: bytes
    page_id: bytes
    file: str
    #: Hex SHA-256, or `ABSENT`.
    expected: frozenset[str]
    version_id: bytes | None
    sha256: bytes | None
    #: When the file was first promised to become something else, UTC microseconds.
    created_at: int


_PROMISES = select(file_outbox).order_by(file_outbox.c.seq)
_ALL = Statement(_PROMISES.where(file_outbox.c.seq > bindparam("after")).limit(bindparam("limit")))
_BY_FILE = Statement(_PROMISES.where(file_outbox.c.file == bindparam("file")))
_COUNT = Statement(select(func.count().label("rows")).select_from(file_outbox))
_ADD = Statement(
    insert(file_outbox).values(
        project_id=bindparam("project_id"),
        owner=bindparam("owner"),
        token_scope=bindparam("token_scope"),
        page_id=bindparam("page_id"),
        file=bindparam("file"),
        expected=bindparam("expected"),
        version_id=bindparam("version_id"),
        sha256=bindparam("sha256"),
        created_at=bindparam("now"),
    )
)
_JOIN = Statement(
    update(file_outbox)
    .where(file_outbox.c.seq == bindparam("row_seq"))
    .values(
        page_id=bindparam("page"),
        expected=bindparam("states"),
        version_id=bindparam("version"),
        sha256=bindparam("hash"),
    )
)
_REFOLDER = text_statement(
    "UPDATE file_outbox SET file = :new_folder || substr(file, length(:old_folder) + 1)"
    " WHERE project_id = :project_id AND substr(file, 1, length(:old_folder) + 1) = :old_folder || '/'"
)
_CLEAR = Statement(delete(file_outbox).where(file_outbox.c.seq == bindparam("row_seq")))


def _promise(row: Row) -> Promise:
    return Promise(
        seq=row["seq"],
        project_id=row["project_id"],
        page_id=row["page_id"],
        file=row["file"],
        expected=frozenset(json.loads(row["expected"])),
        version_id=row["version_id"],
        sha256=row["sha256"],
        created_at=row["created_at"],
    )


def promises(reading: Reading, *, after: int = 0, limit: int) -> list[Promise]:
    """Rows in their order, those behind the row `after`."""
    return [_promise(row) for row in reading.rows(_ALL, after=after, limit=limit)]


def promise_for(reading: Reading, file: str) -> Promise | None:
    row = reading.row(_BY_FILE, file=file)
    return None if row is None else _promise(row)


def promise_count(reading: Reading) -> int:
    row: Any = reading.row(_COUNT)
    return row["rows"]


def promise_file(
    tx: Transaction,
    project_id: bytes,
    *,
    page_id: bytes,
    file: str,
    found: str,
    version_id: bytes | None,
    sha256: bytes | None,
) -> None:
    """Promise that `file` becomes `sha256` (None: goes away); `found` is what it holds by our books now.

    An older row of the same file is joined: all its states stay expected, and it keeps its number,
    because the files that an interrupted installation left behind are named by it.
    """
    older = promise_for(tx, file)
    if older is None:
        tx.run(
            _ADD,
            project_id=project_id,
            owner=None,
            token_scope=tx.token_scope,
            page_id=page_id,
            file=file,
            expected=json.dumps([found]),
            version_id=version_id,
            sha256=sha256,
            now=tx.now,
        )
    else:
        states = {*older.expected, found, state_of(older.sha256)}
        tx.run(
            _JOIN,
            row_seq=older.seq,
            page=page_id,
            states=json.dumps(sorted(states)),
            version=version_id,
            hash=sha256,
        )
    tx.files.add(file)


def clear_promise(tx: Transaction, seq: int) -> None:
    tx.run(_CLEAR, row_seq=seq)


def refolder(tx: Transaction, project_id: bytes, old_folder: str, new_folder: str) -> None:
    """A project's folder has another name: what is promised in it lies there now, leftovers of an installation too."""
    if tx.run(_REFOLDER, project_id=project_id, old_folder=old_folder, new_folder=new_folder):
        tx.files.add(new_folder)


def state_of(sha256: bytes | None) -> str:
    """A hash as it stands in `expected`."""
    return ABSENT if sha256 is None else sha256.hex()
