"""Knowledge of one directory or project: lists, search, recall. The scope is a part of each question, never a filter behind it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import and_, bindparam, func, or_, select

from memory_core import limits
from memory_core.domain.directory import DirectoryId
from memory_core.domain.knowledge import RecallBounds, fitting
from memory_core.errors import Invalid
from memory_core.store.knowledge import Entry, by_id, parts_of
from memory_core.store.statement import Row, Statement
from memory_core.store.tables import pages
from memory_core.store.tables_knowledge import knowledge, knowledge_versions
from memory_core.store.transaction import Reading

_k, _v = knowledge.c, knowledge_versions.c


@dataclass(frozen=True, kw_only=True)
class Scope:
    """Whose knowledge is meant: what is known in one directory, in one project, or in both at once."""

    directory: DirectoryId | None = None
    project_id: bytes | None = None

    def __post_init__(self) -> None:
        if self.directory is None and self.project_id is None:
            raise Invalid(
                "knowledge belongs to a directory: name host, device and inode, or workspace and project"
            )

    def holds(self, entry: Entry) -> bool:
        return self.directory in (None, entry.directory) and self.project_id in (None, entry.project_id)

    @property
    def parameters(self) -> dict[str, Any]:
        directory = {} if self.directory is None else parts_of(self.directory)
        return directory | ({} if self.project_id is None else {"project_id": self.project_id})


@dataclass(frozen=True, kw_only=True)
class Cursor:
    """Behind which entry a list goes on."""

    pinned: bool
    updated_at: int
    id: bytes

    @classmethod
    def behind(cls, entry: Entry) -> Cursor:
        return cls(pinned=entry.pinned, updated_at=entry.updated_at, id=entry.id)


@dataclass(frozen=True, kw_only=True)
class Found:
    """Entries, and whether there are further ones."""

    entries: list[Entry]
    more: bool


_IN_DIRECTORY = and_(
    _k.host == bindparam("host"), _k.device == bindparam("device"), _k.inode == bindparam("inode")
)
_IN_PROJECT = _k.project_id == bindparam("project_id")
_NOT_EXPIRED = or_(pages.c.expires_at.is_(None), pages.c.expires_at > bindparam("now"))
_ORDER = (_k.pinned.desc(), _k.updated_at.desc(), _k.id)
_BEHIND = or_(
    _k.pinned < bindparam("pinned"),
    and_(
        _k.pinned == bindparam("pinned"),
        or_(
            _k.updated_at < bindparam("updated_at"),
            and_(_k.updated_at == bindparam("updated_at"), _k.id > bindparam("behind_id")),
        ),
    ),
)
_HAS_TEXT = or_(
    func.instr(func.lower(_k.key), func.lower(bindparam("query"))) > 0,
    func.instr(func.lower(_v.content), func.lower(bindparam("query"))) > 0,
)
#: (is a directory named, is a project named) → what limits a question to them.
_SCOPES: Mapping[tuple[bool, bool], Any] = {
    (True, False): _IN_DIRECTORY,
    (False, True): _IN_PROJECT,
    (True, True): and_(_IN_DIRECTORY, _IN_PROJECT),
}


def _question(*conditions: Any, order: tuple[Any, ...] = _ORDER) -> dict[tuple[bool, bool], Statement]:
    """Ids and sizes (bytes of the text) of entries, in each way to limit them."""
    chosen = (
        select(_k.id, func.octet_length(_v.content).label("size"))
        .join_from(
            knowledge, knowledge_versions, and_(_v.knowledge_id == _k.id, _v.version == _k.active_version)
        )
        .outerjoin(pages, pages.c.id == _k.page_id)
        .where(*conditions)
        .order_by(*order)
        .limit(bindparam("limit"))
    )
    return {names: Statement(chosen.where(scope)) for names, scope in _SCOPES.items()}


_LISTED = {
    False: _question(_k.tombstoned_at.is_(None), _BEHIND),
    True: _question(_k.tombstoned_at.is_not(None), _BEHIND),
}
_OF_KEY = _question(_k.key == bindparam("key"))
_SEARCHED = _question(
    _k.tombstoned_at.is_(None),
    _NOT_EXPIRED,
    _HAS_TEXT,
    order=(_k.pinned.desc(), (_k.key == bindparam("query")).desc(), _k.updated_at.desc(), _k.id),
)
_RECALLED = _question(_k.tombstoned_at.is_(None), _NOT_EXPIRED, _v.confidence >= bindparam("confidence"))


def listed(
    reading: Reading, scope: Scope, *, limit: int, after: Cursor | None = None, forgotten: bool = False
) -> Found:
    """What is known (or was, and is forgotten): pinned entries first, then the last changed. As many as `limit` and
    `KNOWLEDGE_LIST_MAX_BYTES` allow, one at least."""
    rows = _ask(
        reading,
        _LISTED[forgotten],
        scope,
        limit=limit + 1,
        pinned=2 if after is None else int(after.pinned),
        updated_at=0 if after is None else after.updated_at,
        behind_id=b"" if after is None else after.id,
    )
    return _read(reading, rows, limit)


def of_key(reading: Reading, scope: Scope, key: str, *, limit: int) -> Found:
    """The entries of just that key, known or forgotten: one of a directory; of a project, one for each directory in it."""
    return _read(reading, _ask(reading, _OF_KEY, scope, key=key, limit=limit + 1), limit)


def searched(reading: Reading, scope: Scope, query: str, *, now: int, limit: int) -> Found:
    """Entries whose key or text holds `query`, ASCII letters in either case: pinned ones first, then the one of just that
    key, then the last changed."""
    rows = _ask(reading, _SEARCHED, scope, query=query, now=now, limit=limit + 1)
    return _read(reading, rows, limit)


def recalled(reading: Reading, scope: Scope, bounds: RecallBounds, *, now: int) -> list[Entry]:
    """What is given unasked: pinned entries first, but none below the confidence; up to the first that does not fit."""
    rows = _ask(reading, _RECALLED, scope, confidence=bounds.confidence, now=now, limit=bounds.entries)
    found: list[Entry] = []
    sizes: list[int] = []
    for row in rows:
        entry = by_id(reading, row["id"]) if row["size"] <= bounds.size_bytes else None
        if entry is None:
            break
        sizes.append(len(recall_item(entry).encode()))
        if fitting(sizes, bounds.size_bytes) < len(sizes):
            break
        found.append(entry)
    return found


def recall_item(entry: Entry) -> str:
    """An entry as an item of the JSON array that an agent is given."""
    return json.dumps({"key": entry.key, "content": entry.content}, ensure_ascii=False)


def _ask(
    reading: Reading, statements: Mapping[tuple[bool, bool], Statement], scope: Scope, **parameters: Any
) -> list[Row]:
    statement = statements[scope.directory is not None, scope.project_id is not None]
    return reading.rows(statement, **scope.parameters, **parameters)


def _read(reading: Reading, rows: Sequence[Row], limit: int) -> Found:
    left, found = limits.KNOWLEDGE_LIST_MAX_BYTES, list[Entry]()
    for row in rows[:limit]:
        left -= row["size"]
        if found and left < 0:
            break
        entry = by_id(reading, row["id"])
        if entry is not None:
            found.append(entry)
    return Found(entries=found, more=len(rows) > len(found))
