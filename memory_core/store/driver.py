"""The SQLite driver, chosen here and nowhere else: `sqlean.py`, one SQLite build on every platform."""

from __future__ import annotations

import importlib
from typing import Any

#: The DB-API module; it has no type information.
module: Any = importlib.import_module("sqlean.dbapi2")

Error: type[Exception] = module.Error
Row: Any = module.Row
SQLITE_VERSION: str = module.sqlite_version


def connect(uri: str) -> Any:
    """A connection in autocommit mode to an SQLite URI; rows answer to their column names."""
    connection = module.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
    connection.row_factory = Row
    return connection
