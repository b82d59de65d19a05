"""Embeddings of page chunks and turns, by the model that made them."""

from __future__ import annotations

from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for statement in _DDL.split(";\n\n"):
        op.get_bind().exec_driver_sql(statement)


_DDL = """
CREATE TABLE embedding_models (
    number INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    provider TEXT NOT NULL,
    endpoint TEXT NOT NULL,
    model TEXT NOT NULL,
    document_prefix TEXT NOT NULL,
    dimensions INTEGER NOT NULL,
    is_active INTEGER NOT NULL,
    is_superseded INTEGER DEFAULT 0 NOT NULL,
    chunks_through BIGINT NOT NULL,
    turns_through BIGINT NOT NULL,
    indexed_through BIGINT NOT NULL,
    rate FLOAT,
    created_at BIGINT NOT NULL,
    complete_at BIGINT,
    CONSTRAINT ck_embedding_models_dimensions CHECK (dimensions >= 0)
);

CREATE UNIQUE INDEX ix_embedding_models_active ON embedding_models (is_active) WHERE is_active = 1;

CREATE UNIQUE INDEX uq_embedding_models_identity ON embedding_models (provider, endpoint, model, document_prefix, dimensions) WHERE is_superseded = 0;

CREATE TABLE embeddings (
    model_number INTEGER NOT NULL,
    digest BLOB NOT NULL,
    vector BLOB,
    error TEXT,
    created_at BIGINT NOT NULL,
    CONSTRAINT pk_embeddings PRIMARY KEY (model_number, digest),
    CONSTRAINT ck_embeddings_outcome CHECK ((vector IS NULL) <> (error IS NULL)),
    CONSTRAINT fk_embeddings_model_number FOREIGN KEY(model_number) REFERENCES embedding_models (number) ON DELETE CASCADE
);

CREATE TABLE vector_units (
    number INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    model_number INTEGER NOT NULL,
    project_number INTEGER NOT NULL,
    is_turn INTEGER NOT NULL,
    unit_number BIGINT NOT NULL,
    piece INTEGER NOT NULL,
    owner TEXT,
    digest BLOB NOT NULL,
    CONSTRAINT uq_vector_units_is_turn_unit_number_model_number_piece UNIQUE (is_turn, unit_number, model_number, piece),
    CONSTRAINT fk_vector_units_model_number FOREIGN KEY(model_number) REFERENCES embedding_models (number) ON DELETE CASCADE
);

CREATE INDEX ix_vector_units_digest_model_number ON vector_units (digest, model_number);

CREATE INDEX ix_vector_units_model_number_project_number ON vector_units (model_number, project_number);

CREATE INDEX ix_vector_units_owned ON vector_units (owner) WHERE owner IS NOT NULL;

CREATE TABLE vector_removals (
    number INTEGER NOT NULL,
    model_number INTEGER NOT NULL,
    CONSTRAINT pk_vector_removals PRIMARY KEY (number)
);

CREATE TRIGGER page_chunks_lose_vectors AFTER DELETE ON page_chunks BEGIN
    DELETE FROM vector_units WHERE is_turn = 0 AND unit_number = old.number;
END;

CREATE TRIGGER observations_lose_vectors AFTER DELETE ON observations BEGIN
    DELETE FROM vector_units WHERE is_turn = 1 AND unit_number = old.seq;
END;

CREATE TRIGGER vector_units_go AFTER DELETE ON vector_units BEGIN
    INSERT INTO vector_removals(number, model_number) VALUES (old.number, old.model_number);
END
"""
