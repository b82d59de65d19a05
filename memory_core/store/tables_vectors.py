"""Embeddings: which model made them, the vectors by what they were made of, and what can be found by them.

Each model also has a table `vectors_<number>` of its own, made with its first vector where the extension is there
(`vector_index.py`): it holds the same vectors once more, in the form that answers fastest, and can be made again at any time.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
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
    text,
)

from memory_core.store.columns import at
from memory_core.store.tables import metadata

#: What makes two vectors comparable, and how far a model has got.
embedding_models = Table(
    "embedding_models",
    metadata,
    Column("number", Integer, primary_key=True),
    Column("provider", Text, nullable=False),
    #: Where it is reached; empty: the provider's own, or on this machine.
    Column("endpoint", Text, nullable=False),
    Column("model", Text, nullable=False),
    #: What is put before a text that is to be found.
    Column("document_prefix", Text, nullable=False),
    #: How long a vector is; 0 until the first one came.
    Column("dimensions", Integer, nullable=False),
    #: Whether this is the one that is configured.
    Column("is_active", Integer, nullable=False),
    #: A person asked for new vectors by the same model; these are kept until those are there.
    Column("is_superseded", Integer, nullable=False, server_default=text("0")),
    #: Numbers up to which chunks and turns have their units, and units their row in the index.
    Column("chunks_through", BigInteger, nullable=False),
    Column("turns_through", BigInteger, nullable=False),
    Column("indexed_through", BigInteger, nullable=False),
    #: Texts by second of late; NULL: not known.
    Column("rate", Float, nullable=True),
    at("created_at"),
    #: When everything that there is was found to have its vector.
    at("complete_at", nullable=True),
    CheckConstraint("dimensions >= 0", name="dimensions"),
    sqlite_autoincrement=True,
)
Index(
    "ix_embedding_models_active",
    embedding_models.c.is_active,
    unique=True,
    sqlite_where=embedding_models.c.is_active == text("1"),
)

Index(
    "uq_embedding_models_identity",
    *(
        embedding_models.c[name]
        for name in ("provider", "endpoint", "model", "document_prefix", "dimensions")
    ),
    unique=True,
    sqlite_where=embedding_models.c.is_superseded == text("0"),
)

#: A vector by the text that it was made of, or why there is none.
embeddings = Table(
    "embeddings",
    metadata,
    Column(
        "model_number", Integer, ForeignKey("embedding_models.number", ondelete="CASCADE"), nullable=False
    ),
    Column("digest", LargeBinary(16), nullable=False),
    #: float32, little endian, of length 1.
    Column("vector", LargeBinary, nullable=True),
    #: The code of the error that is no passing one.
    Column("error", Text, nullable=True),
    at("created_at"),
    PrimaryKeyConstraint("model_number", "digest"),
    CheckConstraint("(vector IS NULL) <> (error IS NULL)", name="outcome"),
)

#: What can be found by a vector: a chunk of a page, or a piece of a turn.
vector_units = Table(
    "vector_units",
    metadata,
    #: Never used twice: what was read up to a number stays true.
    Column("number", Integer, primary_key=True),
    Column(
        "model_number", Integer, ForeignKey("embedding_models.number", ondelete="CASCADE"), nullable=False
    ),
    Column("project_number", Integer, nullable=False),
    Column("is_turn", Integer, nullable=False),
    #: `page_chunks.number`, or `observations.seq`.
    Column("unit_number", BigInteger, nullable=False),
    Column("piece", Integer, nullable=False),
    #: Of a turn, whose it is; NULL: shared.
    Column("owner", Text, nullable=True),
    Column("digest", LargeBinary(16), nullable=False),
    UniqueConstraint("is_turn", "unit_number", "model_number", "piece"),
    sqlite_autoincrement=True,
)
Index(None, vector_units.c.model_number, vector_units.c.project_number)
Index(None, vector_units.c.digest, vector_units.c.model_number)
Index("ix_vector_units_owned", vector_units.c.owner, sqlite_where=vector_units.c.owner.is_not(None))

#: Units that are gone and whose vector may still lie in its model's index.
vector_removals = Table(
    "vector_removals",
    metadata,
    Column("number", Integer, primary_key=True),
    Column("model_number", Integer, nullable=False),
)

_CHUNK_GOES = """CREATE TRIGGER page_chunks_lose_vectors AFTER DELETE ON page_chunks BEGIN
    DELETE FROM vector_units WHERE is_turn = 0 AND unit_number = old.number;
END"""

_TURN_GOES = """CREATE TRIGGER observations_lose_vectors AFTER DELETE ON observations BEGIN
    DELETE FROM vector_units WHERE is_turn = 1 AND unit_number = old.seq;
END"""

_UNIT_GOES = """CREATE TRIGGER vector_units_go AFTER DELETE ON vector_units BEGIN
    INSERT INTO vector_removals(number, model_number) VALUES (old.number, old.model_number);
END"""

#: In the order in which they are made.
TRIGGERS = (_CHUNK_GOES, _TURN_GOES, _UNIT_GOES)
