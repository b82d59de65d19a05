"""Statements compiled once: SQLAlchemy Core is the language, the driver's cursor runs them.

Measured: executing Core expressions one by one costs several times the statement itself; the
writer's hot path runs half a dozen of them per event. Columns therefore hold plain values only
(bytes, int, float, str, None): nothing here converts types.
"""

from __future__ import annotations

import re
from typing import Any

from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.sql import ClauseElement

_DIALECT = SQLiteDialect_pysqlite(paramstyle="named")

#: One row of an answer: attributes by column name.
Row = Any


class Statement:
    """One statement with named parameters (`bindparam`), compiled once, when it is first used.

    Not when its module is imported: a process runs a part of the statements that it loads, and compiling all of them takes longer
    than the rest of its start.

    `is_apart` promises that it neither reads nor writes what a transaction may hold back (`Transaction.write_held`), so
    that it may run before that is written.
    """

    __slots__ = ("_defaults", "_expression", "is_apart", "sql", "writes")

    sql: str
    is_apart: bool
    writes: bool
    #: Values that the expression itself carries (literals become bound parameters too).
    _defaults: dict[str, Any]

    def __init__(self, expression: ClauseElement, *, is_apart: bool = False) -> None:
        self._expression = expression
        self.writes = not getattr(expression, "is_select", False)
        self.is_apart = is_apart

    def __getattr__(self, name: str) -> Any:
        """Called only for what is not there yet. Two threads that come at once compile the same."""
        if name not in ("_defaults", "sql"):
            raise AttributeError(name)
        self._compile()
        return getattr(self, name)

    def _compile(self) -> None:
        compiled: Any = self._expression.compile(dialect=_DIALECT)
        own = {name: value for name, value in compiled.params.items() if not compiled.binds[name].required}
        self._defaults = {name: value for name, value in own.items() if type(value) is not int}
        self.sql = _with_one_plan(_with_numbers(str(compiled), own))

    def parameters(self, given: dict[str, Any]) -> dict[str, Any]:
        return {**self._defaults, **given} if self._defaults else given

    def __repr__(self) -> str:
        return f"Statement({self.sql[:60]!r}…)"


def _with_numbers(sql: str, own: dict[str, Any]) -> str:
    """The expression's own whole numbers written out: SQLite takes a partial index only for a number that it can see."""
    for name, value in own.items():
        if type(value) is int:
            sql = re.sub(rf":{name}\b", str(value), sql)
    return sql


def _with_one_plan(sql: str) -> str:
    """The same with limits that SQLite does not look at when it plans.

    It plans a statement anew each time a value is bound that it looked at: twice the time of a short one, and more than half a
    millisecond of one that walks a graph. Of a sum it knows nothing.
    """
    return re.sub(r"\bLIMIT :(\w+)(?! \+ 0)", r"LIMIT :\1 + 0", sql)


def text_statement(sql: str) -> Statement:
    """A statement that Core has no words for (full-text MATCH and the like); parameters as `:name`."""
    statement = Statement.__new__(Statement)
    statement.sql = _with_one_plan(sql)
    statement._defaults = {}  # pyright: ignore[reportPrivateUsage]
    statement.is_apart = False
    statement.writes = not sql.lstrip().lower().startswith(("select", "with"))
    return statement
