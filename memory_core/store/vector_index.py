"""The index table of one model: `vectors_<number>`, made by sqlite-vec, a vector for each unit, apart by project.

It can be made again from the embeddings at any time, and is: a process without the extension leaves it behind, and the next one
with it catches up (`embedding_models.indexed_through`). Blocks are small because each belongs to one project: 2,000 vectors (384
numbers each, 3.1 MB) in 200 projects took 317 MB with blocks of 1,024 (sqlite-vec's own choice), 20 MB with 64 and 5.2 MB
with 8; 20,000 in 50 took 40, 35 and 33 MB, a question 0.5, 0.6 and 0.7 ms.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from functools import cache

from memory_core import limits
from memory_core.store import driver, embedding_models, vector_units
from memory_core.store.statement import Row, Statement, text_statement
from memory_core.store.transaction import Reading, Transaction

_IS_THERE = text_statement("SELECT 1 AS found FROM sqlite_master WHERE type = 'table' AND name = :name")


def is_there(read: Reading, number: int) -> bool:
    return read.row(_IS_THERE, name=f"vectors_{number}") is not None


def is_whole(read: Reading, model: Row) -> bool:
    """Whether every unit of the model can be found by the index, here and now."""
    return (
        driver.has_vectors()
        and is_there(read, model["number"])
        and vector_units.newest(read, model["number"]) <= model["indexed_through"]
    )


def catch_up(tx: Transaction, number: int, limit: int = limits.VECTOR_DUTY_ROWS) -> int:
    """Take up to `limit` units into the index that are not in it yet, and out of it what is gone; how many rows that was.

    Does nothing without the extension, and before the first vector came.
    """
    model = embedding_models.one(tx, number)
    if not is_there(tx, number):
        vector_units.take_note(tx, [row["number"] for row in vector_units.removed(tx, limit, number)])
    if not driver.has_vectors() or model is None or not model["dimensions"]:
        return 0
    if not is_there(tx, number):
        tx.run(_create(number, model["dimensions"]))
        if model["indexed_through"]:
            embedding_models.indexed(tx, number, 0)
            model = {**dict(model), "indexed_through": 0}
    size = 4 * model["dimensions"]
    rows = vector_units.after(tx, number, number=model["indexed_through"], limit=limit)
    for row in rows:
        # A vector that was damaged on disk is left out: it must not stop the others.
        if is_usable(row["vector"], size):
            tx.run(_delete(number), number=row["number"])
            tx.run(_insert(number), number=row["number"], project=row["project_number"], vector=row["vector"])
    newest = rows[-1]["number"] if len(rows) == limit else vector_units.newest(tx, number)
    if newest > model["indexed_through"]:
        embedding_models.indexed(tx, number, newest)
    gone = vector_units.removed(tx, limit, number)
    for row in gone:
        tx.run(_delete(number), number=row["number"])
    vector_units.take_note(tx, [row["number"] for row in gone])
    return len(rows) + len(gone)


def is_usable(vector: bytes, size: int) -> bool:
    """Whether that many bytes are a vector of length 1, as all are: what was damaged is not."""
    if len(vector) != size:
        return False
    square = sum(number * number for number in array("f", vector))
    return abs(square - 1.0) < limits.VECTOR_LENGTH_ERROR_MAX


def drop(tx: Transaction, number: int) -> bool:
    """Take the whole index away; False where that cannot be done here, for want of the extension."""
    if not is_there(tx, number):
        return True
    if not driver.has_vectors():
        return False
    tx.run(text_statement(f"DROP TABLE vectors_{number:d}"))
    return True


def nearest(
    read: Reading, number: int, vector: bytes, *, project: int, limit: int, allowed: str, **parameters: object
) -> Iterable[Row]:
    """number and distance (cosine) of the units of one project that are nearest, among those that `allowed` names
    (an SQL query of numbers)."""
    return read.rows(
        _nearest(number, allowed),
        vector=vector,
        project=project,
        neighbours=min(limit, limits.VECTOR_NEIGHBOURS_MAX),
        **parameters,
    )


def _create(number: int, dimensions: int) -> Statement:
    return text_statement(
        f"CREATE VIRTUAL TABLE vectors_{number:d} USING vec0(project INTEGER PARTITION KEY,"
        f" vector FLOAT[{dimensions:d}] distance_metric=cosine, chunk_size={limits.VECTOR_CHUNK_ROWS})"
    )


@cache
def _insert(number: int) -> Statement:
    return text_statement(
        f"INSERT INTO vectors_{number:d}(rowid, project, vector) VALUES (:number, :project, :vector)"
    )


@cache
def _delete(number: int) -> Statement:
    return text_statement(f"DELETE FROM vectors_{number:d} WHERE rowid = :number")


@cache
def _nearest(number: int, allowed: str) -> Statement:
    return text_statement(
        f"SELECT rowid AS number, distance FROM vectors_{number:d}"
        f" WHERE vector MATCH :vector AND k = :neighbours AND project = :project AND rowid IN ({allowed})"
    )
