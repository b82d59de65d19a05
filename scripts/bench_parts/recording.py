"""What statements a real batch executes, recorded at the driver's connection and run again without anything around them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

#: One call of the driver: the statement and its parameters; a list of them, where it ran once for each.
Call = tuple[str, Any]


class Recorder:
    """Stands where the driver's connection stood and passes everything on."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self.calls: list[Call] = []

    def execute(self, sql: str, parameters: Any = ()) -> Any:
        self.calls.append((sql, parameters))
        return self._connection.execute(sql, parameters)

    def executemany(self, sql: str, parameters: Sequence[Any]) -> Any:
        self.calls.append((sql, list(parameters)))
        return self._connection.executemany(sql, parameters)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


def replay(connection: Any, calls: Sequence[Call]) -> None:
    """The statements again, answers read, in the same transactions."""
    execute, execute_many = connection.execute, connection.executemany
    for sql, parameters in calls:
        if type(parameters) is list:
            execute_many(sql, parameters)
        else:
            execute(sql, parameters).fetchall()
