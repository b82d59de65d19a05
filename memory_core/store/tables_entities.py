"""What pages name: names of a project, the places where a question's word may begin in them, and which page names what."""

from __future__ import annotations

from sqlalchemy import Column, ForeignKey, Index, Integer, PrimaryKeyConstraint, Table, Text, UniqueConstraint

from memory_core.store.tables import metadata


def _entity() -> Column[int]:
    return Column("entity_number", Integer, ForeignKey("entities.number", ondelete="CASCADE"), nullable=False)


def _project() -> Column[int]:
    return Column(
        "project_number", Integer, ForeignKey("projects.number", ondelete="CASCADE"), nullable=False
    )


#: Names that pages of a project declare or say, folded; one that no page says any more goes.
entities = Table(
    "entities",
    metadata,
    Column("number", Integer, primary_key=True),
    _project(),
    Column("name", Text, nullable=False),
    UniqueConstraint("project_number", "name"),
)

#: The ends of a name that begin where one of its words begins, itself among them: a range of it is all names with a word that begins so.
entity_starts = Table(
    "entity_starts",
    metadata,
    _project(),
    Column("start", Text, nullable=False),
    _entity(),
    PrimaryKeyConstraint("project_number", "start", "entity_number"),
    sqlite_with_rowid=False,
)
Index(None, entity_starts.c.entity_number)

#: Which page names what: of the latest version of each page that is not tombstoned.
page_entities = Table(
    "page_entities",
    metadata,
    _entity(),
    Column("page_number", Integer, ForeignKey("pages.number", ondelete="CASCADE"), nullable=False),
    #: Where its body names it first, characters; NULL: it declares it or is called so.
    Column("text_at", Integer, nullable=True),
    PrimaryKeyConstraint("entity_number", "page_number"),
    sqlite_with_rowid=False,
)
Index(None, page_entities.c.page_number)
