"""The SQLite driver, chosen here and nowhere else: `sqlean.py`, one SQLite build on every platform, and its vector extension.

`sqlite-vec` is loaded on every connection, so that no query works on one and fails on the next. Where it cannot be loaded at
all (`has_vectors` is then False), whoever searches vectors does it by itself.
"""

from __future__ import annotations

import importlib
import importlib.util
from functools import cache
from pathlib import Path
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
    if has_vectors():
        _load(connection)
    return connection


@cache
def has_vectors() -> bool:
    """Whether this process can use the virtual table `vec0`."""
    if _extension() is None:
        return False
    trial = module.connect(":memory:")
    try:
        _load(trial)
    except (Error, AttributeError):  # a driver that was built without extensions has no such method
        return False
    finally:
        trial.close()
    return True


def _load(connection: Any) -> None:
    connection.enable_load_extension(True)
    try:
        connection.load_extension(_extension())
    finally:
        connection.enable_load_extension(False)


@cache
def _extension() -> str | None:
    """Where the extension lies, without its file name's ending; None where it is not installed."""
    # Found and not imported: its module brings numpy along.
    found = importlib.util.find_spec("sqlite_vec")
    if found is None or found.origin is None:
        return None
    return str(Path(found.origin).with_name("vec0"))
