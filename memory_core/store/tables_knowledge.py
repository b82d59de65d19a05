"""Knowledge: what is known under a key in one directory, everything that was ever said of it, and who took it away."""

from __future__ import annotations

from sqlalchemy import (
    CheckConstraint,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
)

from memory_core import limits
from memory_core.store.columns import at, provenance
from memory_core.store.tables import metadata


def _octets(column: str) -> str:
    return f"length(CAST({column} AS BLOB))"


def _knowledge() -> Column[bytes]:
    return Column(
        "knowledge_id", LargeBinary(16), ForeignKey("knowledge.id", ondelete="CASCADE"), nullable=False
    )


def _source() -> tuple[Column[bytes], Column[int], Column[int], Column[bytes], Column[bytes], Column[int]]:
    """What it was drawn from: events of a session (no foreign key: it outlives the session), and the candidate of a job."""
    return (
        Column("provenance_session_id", LargeBinary(16), nullable=True),
        Column("source_first_sequence", Integer, nullable=True),
        Column("source_last_sequence", Integer, nullable=True),
        Column("source_sha256", LargeBinary(32), nullable=True),
        Column("job_id", LargeBinary(16), nullable=True),
        Column("candidate_index", Integer, nullable=True),
    )


def _source_checks() -> tuple[CheckConstraint, ...]:
    return (
        CheckConstraint(
            "(provenance_session_id IS NULL) = (source_first_sequence IS NULL)"
            " AND (provenance_session_id IS NULL) = (source_last_sequence IS NULL)"
            " AND (provenance_session_id IS NULL) = (source_sha256 IS NULL)"
            " AND (provenance_session_id IS NULL OR (length(source_sha256) = 32 AND source_first_sequence > 0"
            " AND source_last_sequence >= source_first_sequence))",
            name="source",
        ),
        CheckConstraint(
            "(job_id IS NULL) = (candidate_index IS NULL) AND (candidate_index IS NULL OR candidate_index >= 0)",
            name="candidate",
        ),
        CheckConstraint("typeof(confidence) = 'real' AND confidence BETWEEN 0 AND 1", name="confidence"),
    )


#: The identity of a fact: a directory and a key. Its text is that of the active version, which its page shows.
knowledge = Table(
    "knowledge",
    metadata,
    Column("id", LargeBinary(16), primary_key=True),
    *provenance(),
    Column("host", Text, nullable=False),
    Column("device", Text, nullable=False),
    Column("inode", Text, nullable=False),
    Column("key", Text, nullable=False),
    #: NULL: the page was purged; the next version makes a new one.
    Column("page_id", LargeBinary(16), ForeignKey("pages.id", ondelete="SET NULL"), nullable=True),
    Column("active_version", Integer, nullable=False),
    Column("pinned", Integer, nullable=False),
    at("tombstoned_at", nullable=True),
    #: Of a directory that is not known any more: it matches none.
    Column("is_legacy", Integer, nullable=False),
    at("created_at"),
    at("updated_at"),
    UniqueConstraint("host", "device", "inode", "key", name="uq_knowledge_identity"),
    CheckConstraint(f"{_octets('host')} BETWEEN 1 AND 255", name="host"),
    CheckConstraint(
        "device <> '' AND inode <> '' AND device NOT GLOB '*[^0-9]*' AND inode NOT GLOB '*[^0-9]*'",
        name="numbers",
    ),
    CheckConstraint(f"{_octets('key')} BETWEEN 1 AND {limits.KNOWLEDGE_KEY_MAX_BYTES}", name="key"),
    CheckConstraint(f"active_version BETWEEN 1 AND {limits.KNOWLEDGE_VERSION_MAX}", name="active_version"),
    CheckConstraint("pinned IN (0, 1) AND is_legacy IN (0, 1)", name="flags"),
    CheckConstraint("pinned = 0 OR tombstoned_at IS NULL", name="pinned"),
)
_k = knowledge.c
Index(
    "ix_knowledge_directory",
    _k.host,
    _k.device,
    _k.inode,
    _k.tombstoned_at,
    _k.pinned.desc(),
    _k.updated_at.desc(),
)
Index("ix_knowledge_project", _k.project_id, _k.tombstoned_at, _k.pinned.desc(), _k.updated_at.desc())
Index("uq_knowledge_page", _k.page_id, unique=True, sqlite_where=_k.page_id.is_not(None))
Index("ix_knowledge_age", _k.updated_at, sqlite_where=_k.tombstoned_at.is_(None))
Index("ix_knowledge_tombstones", _k.tombstoned_at, sqlite_where=_k.tombstoned_at.is_not(None))

#: Everything that was said under a key; never edited.
knowledge_versions = Table(
    "knowledge_versions",
    metadata,
    _knowledge(),
    Column("version", Integer, nullable=False),
    Column("content", Text, nullable=False),
    Column("confidence", Float, nullable=False),
    Column("origin", Text, nullable=False),
    Column(
        "source_session_id", LargeBinary(16), ForeignKey("sessions.id", ondelete="SET NULL"), nullable=True
    ),
    *_source(),
    #: Who wrote it, and with what authority.
    Column("actor", Text, nullable=False),
    Column("token_scope", Text, nullable=False),
    at("created_at"),
    PrimaryKeyConstraint("knowledge_id", "version"),
    CheckConstraint(f"version BETWEEN 1 AND {limits.KNOWLEDGE_VERSION_MAX}", name="version"),
    CheckConstraint(
        f"{_octets('content')} BETWEEN 1 AND {limits.KNOWLEDGE_STORED_MAX_BYTES}", name="content"
    ),
    CheckConstraint("origin IN ('manual','distillation')", name="origin"),
    *_source_checks(),
)
_v = knowledge_versions.c
Index(
    "uq_knowledge_versions_job",
    _v.job_id,
    _v.candidate_index,
    unique=True,
    sqlite_where=_v.job_id.is_not(None),
)
Index("ix_knowledge_versions_session", _v.source_session_id, sqlite_where=_v.source_session_id.is_not(None))

#: Each time that a key was taken away.
knowledge_tombstones = Table(
    "knowledge_tombstones",
    metadata,
    Column("id", LargeBinary(16), primary_key=True),
    _knowledge(),
    Column("confidence", Float, nullable=False),
    Column("origin", Text, nullable=False),
    *_source(),
    Column("actor", Text, nullable=False),
    at("created_at"),
    CheckConstraint("origin IN ('manual','distillation','age')", name="origin"),
    *_source_checks(),
)
_t = knowledge_tombstones.c
Index(
    "uq_knowledge_tombstones_job",
    _t.job_id,
    _t.candidate_index,
    unique=True,
    sqlite_where=_t.job_id.is_not(None),
)
Index(None, _t.knowledge_id)
