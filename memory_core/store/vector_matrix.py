"""The vectors of the configured model in the memory of this process, read as they come.

Units are never numbered twice, so what was read up to a number stays true, and what is gone is known by its absence.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlalchemy import LargeBinary, bindparam, cast, func, select

from memory_core import limits
from memory_core.errors import StorageFailed
from memory_core.store.statement import Row, Statement
from memory_core.store.tables_vectors import embeddings, vector_units
from memory_core.store.transaction import Reading

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

_u, _e = vector_units.c, embeddings.c
_NUMBERS = Statement(select(_u.number).where(_u.model_number == bindparam("model")).order_by(_u.number))
_COUNT = Statement(
    select(func.count().label("count"), func.coalesce(func.max(_u.number), 0).label("newest"))
    .select_from(vector_units)
    .where(_u.model_number == bindparam("model"))
)


@dataclass(kw_only=True)
class _Held:
    """Parallel arrays, `length` of each in use; ascending numbers."""

    model: int
    dimensions: int
    created_at: int
    vectors: NDArray[numpy.float32] = field(repr=False)
    numbers: NDArray[numpy.int64] = field(repr=False)
    projects: NDArray[numpy.int64] = field(repr=False)
    #: Of the units that have no usable vector too, so that all can be counted.
    usable: NDArray[numpy.bool_] = field(repr=False)
    length: int = 0
    through: int = 0


class VectorMatrix:
    """Safe to share between threads. One per process and database."""

    def __init__(self, max_bytes: int = limits.VECTOR_MATRIX_MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._held: _Held | None = None

    def nearest(
        self,
        read: Reading,
        model: Row,
        vector: NDArray[numpy.float32],
        limit: int,
        *,
        only: Sequence[int] | None = None,
        projects: Sequence[int] | None = None,
        hidden: Sequence[int] = (),
    ) -> list[tuple[float, int]]:
        """similarity (cosine) and number of the nearest units, best first: of the numbers in `only`, else of `projects`
        (None: all) without those in `hidden`. Raises `StorageFailed` where there are more than memory may take."""
        import numpy

        with self._lock:
            held = self._current(read, model)
            numbers, vectors = held.numbers[: held.length], held.vectors[: held.length]
            mask = held.usable[: held.length].copy()
            of_projects = held.projects[: held.length]
        if only is not None:
            mask &= numpy.isin(numbers, numpy.asarray(only, dtype=numpy.int64), assume_unique=True)
        else:
            if projects is not None:
                mask &= numpy.isin(of_projects, numpy.asarray(projects, dtype=numpy.int64))
            if hidden:
                mask &= ~numpy.isin(numbers, numpy.asarray(hidden, dtype=numpy.int64))
        at = numpy.flatnonzero(mask)
        if not at.size:
            return []
        scores = vectors @ vector if at.size == numbers.size else vectors[at] @ vector
        if limit < at.size:
            best = numpy.argpartition(-scores, limit)[:limit]
            # What ties with the last one is taken by number, as the index does.
            best = numpy.flatnonzero(scores >= scores[best].min())
        else:
            best = numpy.arange(at.size)
        chosen = sorted((-float(scores[i]), int(numbers[at[i]])) for i in best)[:limit]
        return [(-negative, number) for negative, number in chosen]

    def _current(self, read: Reading, model: Row) -> _Held:
        """What this snapshot has. Later units that another thread has read already are hidden by nobody's list: they are cut."""
        counted: Any = read.row(_COUNT, model=model["number"])
        held = self._held
        if held is None or (held.model, held.dimensions, held.created_at) != (
            model["number"],
            model["dimensions"],
            model["created_at"],
        ):
            held = self._held = _empty(model)
        if counted["count"] * model["dimensions"] * 4 > self._max_bytes:
            raise StorageFailed("there are more vectors than this process may hold in memory")
        self._read_on(read, held)
        if held.through > counted["newest"] or held.length != counted["count"]:
            held = self._held = self._without_what_is_gone(read, held)
        return held

    def _read_on(self, read: Reading, held: _Held) -> None:
        while rows := read.rows(
            _AFTER_WITH_ALL, model=held.model, after=held.through, limit=limits.VECTOR_MATRIX_ROWS
        ):
            _append(held, rows)
            if len(rows) < limits.VECTOR_MATRIX_ROWS:
                return

    def _without_what_is_gone(self, read: Reading, held: _Held) -> _Held:
        """A new one, so that who is just looking at the old arrays is not disturbed."""
        import numpy

        alive = numpy.array(
            [row["number"] for row in read.rows(_NUMBERS, model=held.model)], dtype=numpy.int64
        )
        keep = numpy.isin(held.numbers[: held.length], alive, assume_unique=True)
        return _Held(
            model=held.model,
            dimensions=held.dimensions,
            created_at=held.created_at,
            vectors=held.vectors[: held.length][keep],
            numbers=held.numbers[: held.length][keep],
            projects=held.projects[: held.length][keep],
            usable=held.usable[: held.length][keep],
            length=int(keep.sum()),
            # Not what another snapshot has read past this one.
            through=int(alive[-1]) if alive.size else 0,
        )


#: As `vector_units.after`, with the units that have no vector.
_AFTER_WITH_ALL = Statement(
    select(_u.number, _u.project_number, cast(_e.vector, LargeBinary).label("vector"))
    .outerjoin_from(vector_units, embeddings, (_e.model_number == _u.model_number) & (_e.digest == _u.digest))
    # Plus 0: by the number alone, as in `vector_units`.
    .where(_u.model_number + 0 == bindparam("model"), _u.number > bindparam("after"))
    .order_by(_u.number)
    .limit(bindparam("limit"))
)


def _empty(model: Row) -> _Held:
    import numpy

    return _Held(
        model=model["number"],
        dimensions=model["dimensions"],
        created_at=model["created_at"],
        vectors=numpy.empty((0, model["dimensions"]), dtype=numpy.float32),
        numbers=numpy.empty(0, dtype=numpy.int64),
        projects=numpy.empty(0, dtype=numpy.int64),
        usable=numpy.empty(0, dtype=numpy.bool_),
    )


def _append(held: _Held, rows: Sequence[Row]) -> None:
    import numpy

    size = 4 * held.dimensions
    read = numpy.zeros((len(rows), held.dimensions), dtype=numpy.float32)
    usable = numpy.zeros(len(rows), dtype=numpy.bool_)
    for index, row in enumerate(rows):
        # A vector that was damaged on disk is not found; it must not stop the others.
        if row["vector"] is not None and len(row["vector"]) == size:
            read[index] = numpy.frombuffer(row["vector"], dtype="<f4")
            usable[index] = True
    with numpy.errstate(over="ignore", invalid="ignore"):
        squares = numpy.einsum("ij,ij->i", read, read)
    usable &= numpy.abs(squares - 1.0) < limits.VECTOR_LENGTH_ERROR_MAX
    read[~usable] = 0.0
    needed = held.length + len(rows)
    if needed > len(held.numbers):
        _grow(held, max(needed, len(held.numbers) * 3 // 2))
    place = slice(held.length, needed)
    held.vectors[place] = read
    held.numbers[place] = [row["number"] for row in rows]
    held.projects[place] = [row["project_number"] for row in rows]
    held.usable[place] = usable
    held.length, held.through = needed, rows[-1]["number"]


def _grow(held: _Held, capacity: int) -> None:
    import numpy

    for name in ("vectors", "numbers", "projects", "usable"):
        old = getattr(held, name)
        new = numpy.empty((capacity, *old.shape[1:]), dtype=old.dtype)
        new[: held.length] = old[: held.length]
        setattr(held, name, new)
