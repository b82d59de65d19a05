"""What is written to knowledge: entries, versions, tombstones. Who calls this keeps the page in step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import bindparam, delete, insert, update

from memory_core.domain.directory import DirectoryId
from memory_core.domain.knowledge import Origin, Provenance
from memory_core.store.knowledge import parts_of
from memory_core.store.statement import Statement
from memory_core.store.tables_knowledge import knowledge, knowledge_tombstones, knowledge_versions
from memory_core.store.transaction import Transaction

_k, _v = knowledge.c, knowledge_versions.c


@dataclass(frozen=True, kw_only=True)
class Said:
    """A version to be: what `Version` has, but its number and time."""

    content: str
    confidence: float
    origin: Origin
    provenance: Provenance | None = None
    source_session_id: bytes | None = None
    job_id: bytes | None = None
    candidate_index: int | None = None


_ADD = Statement(
    insert(knowledge).values(
        **{
            name: bindparam(name)
            for name in (
                "id",
                "project_id",
                "owner",
                "token_scope",
                "host",
                "device",
                "inode",
                "key",
                "page_id",
                "active_version",
                "pinned",
                "is_legacy",
                "created_at",
                "updated_at",
            )
        }
    )
)
_ADD_VERSION = Statement(
    insert(knowledge_versions).values(**{column.name: bindparam(column.name) for column in _v})
)
_ADD_TOMBSTONE = Statement(
    insert(knowledge_tombstones).values(
        **{column.name: bindparam(column.name) for column in knowledge_tombstones.c}
    )
)
_ACTIVATE = Statement(
    update(knowledge)
    .where(_k.id == bindparam("entry_id"))
    .values(
        active_version=bindparam("to_version"),
        page_id=bindparam("shown_by"),
        pinned=bindparam("is_pinned"),
        tombstoned_at=None,
        updated_at=bindparam("now"),
    )
)
_BURY = Statement(
    update(knowledge)
    .where(_k.id == bindparam("entry_id"))
    .values(tombstoned_at=bindparam("now"), pinned=0, updated_at=bindparam("now"))
)
_DELETE = Statement(delete(knowledge).where(_k.id == bindparam("entry_id")))


def add(
    tx: Transaction,
    entry_id: bytes,
    *,
    project_id: bytes,
    directory: DirectoryId,
    key: str,
    page_id: bytes | None,
    active_version: int,
    pinned: bool,
    is_legacy: bool = False,
    created_at: int | None = None,
) -> None:
    """A new entry; its active version is to be added with it."""
    tx.run(
        _ADD,
        id=entry_id,
        project_id=project_id,
        owner=None,
        token_scope=tx.token_scope,
        **parts_of(directory),
        key=key,
        page_id=page_id,
        active_version=active_version,
        pinned=int(pinned),
        is_legacy=int(is_legacy),
        created_at=created_at or tx.now,
        updated_at=tx.now,
    )


def add_version(
    tx: Transaction, entry_id: bytes, number: int, said: Said, *, actor: str, at: int | None = None
) -> None:
    tx.run(
        _ADD_VERSION,
        knowledge_id=entry_id,
        version=number,
        content=said.content,
        confidence=said.confidence,
        origin=str(said.origin),
        source_session_id=said.source_session_id,
        **_source(said.provenance, said.job_id, said.candidate_index),
        actor=actor,
        token_scope=tx.token_scope,
        created_at=at or tx.now,
    )


def activate(tx: Transaction, entry_id: bytes, number: int, *, page_id: bytes | None, pinned: bool) -> None:
    """The version that holds from now on; an entry that was forgotten is known again."""
    tx.run(
        _ACTIVATE, entry_id=entry_id, to_version=number, shown_by=page_id, is_pinned=int(pinned), now=tx.now
    )


def bury(
    tx: Transaction,
    entry_id: bytes,
    origin: Origin,
    confidence: float,
    *,
    provenance: Provenance | None = None,
    job_id: bytes | None = None,
    candidate_index: int | None = None,
) -> None:
    """Hide an entry, take its pin away, and write down who did so. Its versions stay."""
    tx.run(_BURY, entry_id=entry_id, now=tx.now)
    tx.run(
        _ADD_TOMBSTONE,
        id=tx.new_id(),
        knowledge_id=entry_id,
        confidence=confidence,
        origin=str(origin),
        **_source(provenance, job_id, candidate_index),
        actor=tx.principal,
        created_at=tx.now,
    )


def remove(tx: Transaction, entry_id: bytes) -> None:
    """Delete an entry with its versions and tombstones."""
    tx.run(_DELETE, entry_id=entry_id)


def _source(provenance: Provenance | None, job_id: bytes | None, index: int | None) -> dict[str, Any]:
    return {
        "provenance_session_id": provenance.session_id if provenance else None,
        "source_first_sequence": provenance.first_sequence if provenance else None,
        "source_last_sequence": provenance.last_sequence if provenance else None,
        "source_sha256": provenance.sha256 if provenance else None,
        "job_id": job_id,
        "candidate_index": index,
    }
