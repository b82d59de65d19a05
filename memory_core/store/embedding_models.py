"""The models that embeddings are of: which one is configured, and how far it has got."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Float, Integer, bindparam, func, or_, select

from memory_core import limits
from memory_core.domain.embedding import EmbeddingModel, Progress
from memory_core.store.statement import Row, Statement, text_statement
from memory_core.store.tables_vectors import embedding_models, embeddings, vector_units
from memory_core.store.transaction import Reading, Transaction

_m = embedding_models.c
_SAME = (
    _m.provider == bindparam("provider"),
    _m.endpoint == bindparam("endpoint"),
    _m.model == bindparam("model"),
    _m.document_prefix == bindparam("document_prefix"),
)
_WANTED: ColumnElement[int] = bindparam("dimensions", type_=Integer())
_PROJECT: ColumnElement[int] = bindparam("project", type_=Integer())
_RATE: ColumnElement[float] = bindparam("new_rate", type_=Float())
_ACTIVE = Statement(select(embedding_models).where(_m.is_active == 1))
_ONE = Statement(select(embedding_models).where(_m.number == bindparam("number")))
_ALL = Statement(select(embedding_models).order_by(_m.number))
_FIND = Statement(
    select(embedding_models)
    .where(
        *_SAME,
        _m.is_superseded == 0,
        or_(_WANTED == 0, _m.dimensions == 0, _m.dimensions == _WANTED),
    )
    .order_by(_m.number.desc())
    .limit(1)
)
_ADD = Statement(
    embedding_models.insert().values(
        **{
            c.name: bindparam(c.name)
            for c in _m
            if c.name not in ("number", "rate", "complete_at", "is_superseded")
        }
    )
)
_LAY_DOWN = Statement(embedding_models.update().where(_m.is_active == 1).values(is_active=0))
_TAKE_UP = Statement(embedding_models.update().where(_m.number == bindparam("of_number")).values(is_active=1))
_SET_DIMENSIONS = Statement(
    embedding_models.update()
    .where(_m.number == bindparam("of_number"))
    .values(dimensions=bindparam("new_dimensions"))
)
_ADVANCE = Statement(
    embedding_models.update()
    .where(_m.number == bindparam("of_number"))
    .values(
        chunks_through=bindparam("new_chunks"),
        turns_through=bindparam("new_turns"),
        rate=func.coalesce(_RATE, _m.rate),
        complete_at=bindparam("new_complete_at"),
    )
)
_BEGIN_ANEW = Statement(
    embedding_models.update()
    .where(_m.number == bindparam("of_number"))
    .values(chunks_through=0, turns_through=0, complete_at=None)
)
_INDEXED = Statement(
    embedding_models.update()
    .where(_m.number == bindparam("of_number"))
    .values(indexed_through=bindparam("new_through"))
)
_SUPERSEDE = Statement(
    embedding_models.update().where(_m.number == bindparam("of_number")).values(is_active=0, is_superseded=1)
)
_FORGET = Statement(embedding_models.delete().where(_m.number == bindparam("of_number")))
_DONE = Statement(
    select(func.count().label("units")).where(
        vector_units.c.model_number == bindparam("number"),
        vector_units.c.piece == 0,
        or_(_PROJECT.is_(None), vector_units.c.project_number == _PROJECT),
    )
)
_FAILED = Statement(
    select(func.count().label("texts"))
    .select_from(embeddings)
    .where(embeddings.c.model_number == bindparam("number"), embeddings.c.error.is_not(None))
)
_PENDING_CHUNKS = text_statement(
    "SELECT count(*) AS units FROM page_chunks AS c WHERE c.number > :through"
    " AND (:project IS NULL OR c.project_number = :project) AND NOT EXISTS"
    " (SELECT 1 FROM vector_units AS u WHERE u.is_turn = 0 AND u.unit_number = c.number AND u.model_number = :number)"
)
_PENDING_TURNS = text_statement(
    "SELECT count(*) AS units FROM (SELECT 1 FROM observations AS o WHERE o.seq > :through"
    " AND (:project IS NULL OR o.project_id = (SELECT id FROM projects WHERE number = :project)) AND o.speaker IN ('user', 'agent') AND o.body <> ''"
    " AND NOT EXISTS (SELECT 1 FROM vector_units AS u WHERE u.is_turn = 1 AND u.unit_number = o.seq AND u.model_number = :number)"
    " LIMIT :at_most)"
)


def active(read: Reading) -> Row | None:
    """The configured model's row; None where no embedder is configured."""
    return read.row(_ACTIVE)


def one(read: Reading, number: int) -> Row | None:
    return read.row(_ONE, number=number)


def every(read: Reading) -> list[Row]:
    """All models that ever made a vector that is still here."""
    return read.rows(_ALL)


def value_of(row: Row) -> EmbeddingModel:
    return EmbeddingModel(
        provider=row["provider"],
        endpoint=row["endpoint"],
        model=row["model"],
        dimensions=row["dimensions"],
        document_prefix=row["document_prefix"],
    )


def same(read: Reading, model: EmbeddingModel) -> Row | None:
    """The row of that model; where its dimensions are not said, the newest of that name."""
    return read.row(_FIND, **_identity(model))


def activate(tx: Transaction, model: EmbeddingModel | None) -> bool:
    """Make it the configured one, and None for none; whether that changes anything. What others made is kept."""
    now = active(tx)
    found = None if model is None else same(tx, model)
    if (None if now is None else now["number"]) == (None if found is None else found["number"]) and (
        model is None or found is not None
    ):
        return False
    tx.run(_LAY_DOWN)
    if model is None:
        return True
    if found is None:
        tx.run(
            _ADD,
            **_identity(model),
            is_active=1,
            chunks_through=0,
            turns_through=0,
            indexed_through=0,
            created_at=tx.now,
        )
    else:
        tx.run(_TAKE_UP, of_number=found["number"])
        if model.dimensions and not found["dimensions"]:
            set_dimensions(tx, found["number"], model.dimensions)
    return True


def set_dimensions(tx: Transaction, number: int, dimensions: int) -> None:
    tx.run(_SET_DIMENSIONS, of_number=number, new_dimensions=dimensions)


def advance(
    tx: Transaction,
    number: int,
    *,
    chunks_through: int,
    turns_through: int,
    rate: float | None,
    complete_at: int | None,
) -> None:
    """How far the units are made; `rate` None leaves the last one."""
    tx.run(
        _ADVANCE,
        of_number=number,
        new_chunks=chunks_through,
        new_turns=turns_through,
        new_rate=rate,
        new_complete_at=complete_at,
    )


def begin_anew(tx: Transaction, number: int) -> None:
    """Look at every chunk and turn again; what has its vector keeps it."""
    tx.run(_BEGIN_ANEW, of_number=number)


def supersede(tx: Transaction, number: int) -> None:
    """Begin with a new row of the same model; the old one's vectors answer nothing any more."""
    row = one(tx, number)
    if row is not None:
        tx.run(_SUPERSEDE, of_number=number)
        activate(tx, value_of(row))


def indexed(tx: Transaction, number: int, through: int) -> None:
    tx.run(_INDEXED, of_number=number, new_through=through)


def forget(tx: Transaction, number: int) -> None:
    tx.run(_FORGET, of_number=number)


def progress(read: Reading, model: Row, project: int | None = None) -> Progress:
    """How many units have their vectors, of one project (its number) or of all. Texts that failed are counted of all."""
    of: dict[str, Any] = {"number": model["number"], "project": project}
    counted: Any = read.row(_DONE, **of)
    chunks: Any = read.row(_PENDING_CHUNKS, **of, through=model["chunks_through"])
    turns: Any = read.row(
        _PENDING_TURNS, **of, through=model["turns_through"], at_most=limits.EMBED_COUNTED_MAX
    )
    failed: Any = read.row(_FAILED, number=model["number"])
    done = counted["units"]
    return Progress(
        done=done,
        total=done + chunks["units"] + turns["units"],
        failed=failed["texts"],
        rate=model["rate"],
    )


def _identity(model: EmbeddingModel) -> dict[str, Any]:
    return {
        "provider": model.provider,
        "endpoint": model.endpoint,
        "model": model.model,
        "document_prefix": model.document_prefix,
        "dimensions": model.dimensions,
    }
