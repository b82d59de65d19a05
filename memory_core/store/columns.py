"""The columns that every kept row has, in one place."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, ForeignKey, LargeBinary, Text


def row_id() -> Column[bytes]:
    """A UUIDv7 as 16 bytes."""
    return Column("id", LargeBinary(16), nullable=False, unique=True)


def provenance() -> tuple[Column[bytes], Column[str], Column[str]]:
    """Where a row belongs and by whose authority it came.

    `project_id` is the isolation key: the workspace follows from it, so a row cannot name a project of
    another workspace. `owner` is the principal that it belongs to (NULL: shared). `token_scope` is
    the scope of the token that wrote it: text captured by a hook never gains a person's authority.
    """
    return (
        Column("project_id", LargeBinary(16), ForeignKey("projects.id", ondelete="CASCADE"), nullable=False),
        Column("owner", Text, nullable=True),
        Column("token_scope", Text, nullable=False),
    )


def at(name: str, *, nullable: bool = False) -> Column[int]:
    """A point in time: UTC microseconds since the epoch."""
    return Column(name, BigInteger, nullable=nullable)
