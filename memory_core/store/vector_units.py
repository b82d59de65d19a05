"""Units that can be found by a vector, and the vectors by what they were made of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy import LargeBinary, bindparam, cast, select
from sqlalchemy.dialects import sqlite

from memory_core.store.statement import Row, Statement, text_statement
from memory_core.store.tables_vectors import embeddings, vector_removals, vector_units
from memory_core.store.transaction import Reading, Transaction

#: What of `observations` is a turn: somebody said it.
IS_TURN: Final = "o.speaker IN ('user', 'agent') AND o.body <> ''"

_u, _e = vector_units.c, embeddings.c
_CHUNKS = text_statement(
    "SELECT c.number, c.project_number, c.heading, c.digest, v.title,"
    " substr(v.content, v.body_start + c.text_start + 1, c.text_end - c.text_start) AS text"
    " FROM page_chunks AS c JOIN pages AS p ON p.number = c.page_number JOIN page_versions AS v ON v.id = p.version_id"
    " WHERE c.number > :after AND c.number <= :through AND NOT EXISTS"
    " (SELECT 1 FROM vector_units AS u WHERE u.is_turn = 0 AND u.unit_number = c.number AND u.model_number = :model)"
    " ORDER BY c.number LIMIT :limit"
)
_TURNS = text_statement(
    "SELECT o.seq AS number, p.number AS project_number, o.owner, o.body AS text"
    " FROM observations AS o JOIN projects AS p ON p.id = o.project_id"
    f" WHERE o.seq > :after AND o.seq <= :through AND {IS_TURN} AND NOT EXISTS"
    " (SELECT 1 FROM vector_units AS u WHERE u.is_turn = 1 AND u.unit_number = o.seq AND u.model_number = :model)"
    " ORDER BY o.seq LIMIT :limit"
)
_ANY_CHUNK = text_statement("SELECT 1 AS found FROM page_chunks WHERE number > :after LIMIT 1")
_ANY_TURN = text_statement(
    f"SELECT 1 AS found FROM observations AS o WHERE o.seq > :after AND {IS_TURN} LIMIT 1"
)
_LAST = text_statement(
    "SELECT (SELECT coalesce(max(number), 0) FROM page_chunks) AS chunk, (SELECT coalesce(max(seq), 0) FROM observations) AS turn"
)
_KNOWN = Statement(
    select(_e.digest).where(_e.model_number == bindparam("model"), _e.digest == bindparam("digest"))
)
_CHUNK_IS_THERE = text_statement(
    "SELECT project_number FROM page_chunks WHERE number = :number AND digest = :digest"
)
_TURN_IS_THERE = text_statement("SELECT 1 AS found FROM observations WHERE seq = :number")
_KEEP = Statement(
    sqlite.insert(embeddings).values({c.name: bindparam(c.name) for c in _e}).on_conflict_do_nothing()
)
_ADD = Statement(
    sqlite.insert(vector_units)
    .values({c.name: bindparam(c.name) for c in _u if c.name != "number"})
    .on_conflict_do_nothing()
)
# Something else than a blob, by whatever damage, would fail the whole question.
_AFTER = Statement(
    select(
        _u.number, _u.project_number, _u.is_turn, _u.unit_number, cast(_e.vector, LargeBinary).label("vector")
    )
    .join_from(
        vector_units,
        embeddings,
        (_e.model_number == _u.model_number) & (_e.digest == _u.digest) & _e.vector.is_not(None),
    )
    # Plus 0: by the number alone. The index of the model would be read whole, and sorted, for each slice.
    .where(_u.model_number + 0 == bindparam("model"), _u.number > bindparam("after"))
    .order_by(_u.number)
    .limit(bindparam("limit"))
)
_NEWEST = Statement(
    select(_u.number).where(_u.model_number + 0 == bindparam("model")).order_by(_u.number.desc()).limit(1)
)
_STRAYS = text_statement(
    "SELECT e.model_number, e.digest FROM embeddings AS e WHERE (e.model_number, e.digest) > (:model, :digest)"
    " AND NOT EXISTS (SELECT 1 FROM vector_units AS u WHERE u.digest = e.digest AND u.model_number = e.model_number)"
    " ORDER BY e.model_number, e.digest LIMIT :limit"
)
_DROP = Statement(
    embeddings.delete().where(_e.model_number == bindparam("of_model"), _e.digest == bindparam("of_digest"))
)
_DROP_FAILED = Statement(
    embeddings.delete().where(_e.model_number == bindparam("of_model"), _e.error.is_not(None))
)
_SOME_UNITS = Statement(
    select(_u.number)
    .where(_u.model_number == bindparam("model"))
    .order_by(_u.number)
    .limit(bindparam("limit"))
)
_SOME_EMBEDDINGS = Statement(
    select(_e.digest).where(_e.model_number == bindparam("model")).limit(bindparam("limit"))
)
_DROP_UNIT = Statement(vector_units.delete().where(_u.number == bindparam("of_number")))
_DROP_PROJECT = Statement(
    vector_units.delete().where(
        _u.model_number == bindparam("of_model"), _u.project_number == bindparam("of_project")
    )
)
_DROP_PROJECT_EMBEDDINGS = text_statement(
    "DELETE FROM embeddings WHERE model_number = :model AND digest IN"
    " (SELECT u.digest FROM vector_units AS u WHERE u.model_number = :model AND u.project_number = :project)"
)
_DROP_FAILED_UNITS = text_statement(
    "DELETE FROM vector_units WHERE model_number = :model AND digest IN"
    " (SELECT e.digest FROM embeddings AS e WHERE e.model_number = :model AND e.error IS NOT NULL)"
)
_TAKE_NOTE_OF = Statement(
    vector_removals.delete().where(vector_removals.c.model_number == bindparam("of_model"))
)
_REMOVED = Statement(
    select(vector_removals)
    .where(vector_removals.c.model_number == bindparam("model"))
    .order_by(vector_removals.c.number)
    .limit(bindparam("limit"))
)
_TAKE_NOTE = Statement(vector_removals.delete().where(vector_removals.c.number == bindparam("of_number")))


@dataclass(frozen=True, kw_only=True)
class Unit:
    """One piece of a chunk (always the only one) or of a turn, as it is to be found."""

    is_turn: bool
    number: int
    project_number: int
    piece: int
    owner: str | None
    digest: bytes


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """A chunk or turn that a model has no unit of yet."""

    is_turn: bool
    number: int
    project_number: int
    owner: str | None
    #: Of a chunk its digest; of a turn it follows from the text.
    digest: bytes | None
    title: str = field(default="", repr=False)
    heading: str = field(default="", repr=False)
    text: str = field(repr=False)


def waiting_chunks(read: Reading, model: int, *, after: int, through: int, limit: int) -> list[Waiting]:
    return [
        Waiting(
            is_turn=False,
            number=row["number"],
            project_number=row["project_number"],
            owner=None,
            digest=row["digest"],
            title=row["title"],
            heading=row["heading"],
            text=row["text"],
        )
        for row in read.rows(_CHUNKS, model=model, after=after, through=through, limit=limit)
    ]


def waiting_turns(read: Reading, model: int, *, after: int, through: int, limit: int) -> list[Waiting]:
    return [
        Waiting(
            is_turn=True,
            number=row["number"],
            project_number=row["project_number"],
            owner=row["owner"],
            digest=None,
            text=row["text"],
        )
        for row in read.rows(_TURNS, model=model, after=after, through=through, limit=limit)
    ]


def has_chunk_after(read: Reading, number: int) -> bool:
    return read.row(_ANY_CHUNK, after=number) is not None


def has_turn_after(read: Reading, number: int) -> bool:
    return read.row(_ANY_TURN, after=number) is not None


def last_numbers(read: Reading) -> tuple[int, int]:
    """The newest chunk and the newest observation."""
    row: Any = read.row(_LAST)
    return row["chunk"], row["turn"]


def is_known(read: Reading, model: int, digest: bytes) -> bool:
    """Whether a text has its vector, or is known to get none."""
    return read.row(_KNOWN, model=model, digest=digest) is not None


def keep(tx: Transaction, model: int, digest: bytes, *, vector: bytes | None, error: str | None) -> None:
    tx.run(_KEEP, model_number=model, digest=digest, vector=vector, error=error, created_at=tx.now)


def add(tx: Transaction, model: int, unit: Unit) -> None:
    """Make a piece findable, unless its chunk or turn is gone or has changed meanwhile, or it is findable already."""
    if unit.is_turn:
        is_there = tx.row(_TURN_IS_THERE, number=unit.number) is not None
    else:
        is_there = tx.row(_CHUNK_IS_THERE, number=unit.number, digest=unit.digest) is not None
    if is_there:
        tx.run(
            _ADD,
            model_number=model,
            project_number=unit.project_number,
            is_turn=int(unit.is_turn),
            unit_number=unit.number,
            piece=unit.piece,
            owner=unit.owner,
            digest=unit.digest,
        )


def after(read: Reading, model: int, *, number: int, limit: int) -> list[Row]:
    """Units past a number that have a vector: number, project_number, is_turn, unit_number, vector."""
    return read.rows(_AFTER, model=model, after=number, limit=limit)


def newest(read: Reading, model: int) -> int:
    row = read.row(_NEWEST, model=model)
    return 0 if row is None else row["number"]


def strays(read: Reading, place: tuple[int, bytes], limit: int) -> list[tuple[int, bytes]]:
    """Embeddings past a place (model, digest) of which nothing is made any more."""
    rows = read.rows(_STRAYS, model=place[0], digest=place[1], limit=limit)
    return [(row["model_number"], row["digest"]) for row in rows]


def drop(tx: Transaction, places: Iterable[tuple[int, bytes]]) -> None:
    tx.run_many(_DROP, [{"of_model": model, "of_digest": digest} for model, digest in places])


def drop_failed(tx: Transaction, model: int) -> int:
    """Forget which texts the model took no vector of, so that they are tried again."""
    return tx.run(_DROP_FAILED, of_model=model)


def drop_some_units(tx: Transaction, model: int, limit: int) -> int:
    """Take a slice of a model's units out; how many."""
    rows = tx.rows(_SOME_UNITS, model=model, limit=limit)
    tx.run_many(_DROP_UNIT, [{"of_number": row["number"]} for row in rows])
    return len(rows)


def drop_some_embeddings(tx: Transaction, model: int, limit: int) -> int:
    rows = tx.rows(_SOME_EMBEDDINGS, model=model, limit=limit)
    drop(tx, [(model, row["digest"]) for row in rows])
    return len(rows)


def removed(read: Reading, limit: int, model: int) -> list[Row]:
    """Units that are gone and were not yet taken out of their model's index: number, model_number."""
    return read.rows(_REMOVED, model=model, limit=limit)


def drop_project(tx: Transaction, model: int, project: int) -> int:
    """Take a project's units out, and the vectors that nothing else is found by; how many units."""
    tx.run(_DROP_PROJECT_EMBEDDINGS, model=model, project=project)
    return tx.run(_DROP_PROJECT, of_model=model, of_project=project)


def drop_failed_units(tx: Transaction, model: int) -> int:
    """Forget which texts the model took no vector of, and their units, so that they are tried again; how many units."""
    count = tx.run(_DROP_FAILED_UNITS, model=model)
    drop_failed(tx, model)
    return count


def take_note_of(tx: Transaction, model: int) -> None:
    """The whole index of a model is gone."""
    tx.run(_TAKE_NOTE_OF, of_model=model)


def take_note(tx: Transaction, numbers: Sequence[int]) -> None:
    """These are out of the index."""
    tx.run_many(_TAKE_NOTE, [{"of_number": number} for number in numbers])
