"""The whole schema, of all areas; for migrations and for what compares with it."""

from __future__ import annotations

from memory_core.store.tables import metadata
from memory_core.store.tables_access import page_access

#: Tables that lie beside `tables.py`; naming them here puts them into `metadata`.
FURTHER = (page_access,)

__all__ = ["FURTHER", "metadata"]
