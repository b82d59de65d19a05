"""The house keeps its shape: file sizes, names, where SQL may stand."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("memory_core", "workers", "web", "client", "tests", "scripts")
SQL = re.compile(
    r"\s*(select\s.+\sfrom\s|insert\s+(or\s+\w+\s+)?into\s|update\s+\w+\s+set\s|delete\s+from\s|create\s+(virtual\s+)?table\s"
    r"|create\s+(unique\s+)?index\s|pragma\s+\w+|begin\s+immediate|alter\s+table\s|drop\s+table\s)",
    re.IGNORECASE | re.DOTALL,
)
BANNED_NAMES = {"utils", "util", "helpers", "helper", "common", "manager", "base", "misc"}


def sources(*rooms: str) -> list[Path]:
    return [path for room in rooms for path in sorted((ROOT / room).rglob("*.py"))]


def sql_literals(source: str) -> list[str]:
    """String constants that begin like an SQL statement; docstrings do not count."""
    tree = ast.parse(source)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    constants = (n for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str))
    return [n.value for n in constants if id(n) not in docstrings and SQL.match(n.value)]


def test_no_file_is_longer_than_400_lines():
    long = [
        (str(p.relative_to(ROOT)), n) for p in sources(*ROOMS) if (n := len(p.read_text().splitlines())) > 400
    ]

    assert long == []


def test_no_module_has_a_name_that_says_nothing():
    assert [str(p) for p in sources(*ROOMS) if p.stem in BANNED_NAMES] == []


def test_a_limit_is_defined_once():
    """They all end up in one namespace, where the second of a name would replace the first."""
    names = [
        target.id
        for path in sources("memory_core/limits")
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name) and not target.id.startswith("_")
    ]

    assert sorted(name for name in set(names) if names.count(name) > 1) == []


def test_no_sql_stands_outside_the_store():
    store = ROOT / "memory_core" / "store"
    outside = [p for p in sources("memory_core", "workers", "web", "client") if not p.is_relative_to(store)]

    assert {
        str(p.relative_to(ROOT)): sql_literals(p.read_text()) for p in outside if sql_literals(p.read_text())
    } == {}


@pytest.mark.parametrize(
    "planted",
    [
        'x = "select id from pages"',
        'x = """\n  INSERT INTO pages VALUES (1)"""',
        'f("pragma journal_mode")',
        'run("update pages set a = 1")',
        'x = "DELETE FROM pages"',
    ],
)
def test_planted_sql_is_seen(planted: str):
    assert sql_literals(planted)


def test_prose_is_not_taken_for_sql():
    assert sql_literals('x = "select the newest page"; y = "update your client"') == []
