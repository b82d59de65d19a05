"""What was brought in from another program's database: nothing comes twice, and nothing comes back that was deleted here."""

from __future__ import annotations

from sqlalchemy import CheckConstraint, Column, Integer, LargeBinary, PrimaryKeyConstraint, Table, Text

from memory_core.store.columns import at
from memory_core.store.tables import metadata

imports = Table(
    "imports",
    metadata,
    #: The other program.
    Column("source", Text, nullable=False),
    Column("kind", Text, nullable=False),
    #: The id that it has there, and here.
    Column("id", LargeBinary(16), nullable=False),
    Column("principal", Text, nullable=False),
    #: Of a session: how many of its events are here. Of an entry of knowledge: how many versions it had.
    Column("through", Integer, nullable=False),
    at("created_at"),
    #: NULL: a part of it is still to come.
    at("finished_at", nullable=True),
    PrimaryKeyConstraint("source", "kind", "id"),
    CheckConstraint("kind IN ('session','knowledge')", name="kind"),
    CheckConstraint("through >= 0", name="through"),
    CheckConstraint("length(id) = 16", name="id"),
    sqlite_with_rowid=False,
)
