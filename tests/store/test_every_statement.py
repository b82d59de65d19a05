"""Statements are compiled when they are first used; here each of them is."""

from __future__ import annotations

import gc
import importlib
import pkgutil
import re

import memory_core.store
from memory_core.store.statement import Statement


def _statements() -> list[Statement]:
    for found in pkgutil.iter_modules(memory_core.store.__path__):
        importlib.import_module(f"memory_core.store.{found.name}")
    # Those that were there before the collected tests were frozen are not told otherwise.
    gc.unfreeze()
    # Not by the names of modules: some lie in tables of statements.
    # `isinstance` would ask proxies for their class, and those of Celery make tasks then.
    statements = [made for made in gc.get_objects() if type(made) is Statement]
    assert len(statements) > 300
    return statements


def test_every_statement_of_the_store_can_be_compiled():
    assert all(statement.sql for statement in _statements())


def test_no_statement_is_planned_anew_for_each_value_of_its_limit():
    looked_at = re.compile(r"\bLIMIT\s+:\w+\b(?!\s*\+)", re.IGNORECASE)

    assert [statement.sql for statement in _statements() if looked_at.search(statement.sql)] == []
