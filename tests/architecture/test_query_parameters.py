"""What a route of `/api/v1` or `/ui` reads of its query is what it says that it takes: what it does not say is refused before it runs."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

WEB = Path(__file__).parents[2] / "web"
_ALONE = {"limit": {"limit"}, "state": {"state"}, "project": {"workspace", "project"}}
_NAMED = {"given", "number", "pair"}


def api_modules() -> list[Path]:
    return [
        path
        for path in sorted(WEB.glob("*.py"))
        if path.name.startswith("ui") or 'url_prefix="/api/v1' in path.read_text()
    ]


def calls(node: ast.AST) -> Iterator[ast.Call]:
    return (found for found in ast.walk(node) if isinstance(found, ast.Call))


def read_in(node: ast.AST) -> set[str]:
    """Names that are read by `lists.…` in a function."""
    found: set[str] = set()
    for call in calls(node):
        if isinstance(call.func, ast.Attribute) and getattr(call.func.value, "id", "") == "lists":
            found |= _ALONE.get(call.func.attr, set())
            if call.func.attr in _NAMED and isinstance(call.args[0], ast.Constant):
                found.add(str(call.args[0].value))
    for loop in (
        found_in for found_in in ast.walk(node) if isinstance(found_in, ast.GeneratorExp | ast.DictComp)
    ):
        # `lists.given(name) for name in (…)`
        if "lists.given(name)" in ast.unparse(loop):
            found |= {
                str(one.value) for one in ast.walk(loop.generators[0].iter) if isinstance(one, ast.Constant)
            }
    return found


def routes(source: str) -> dict[str, tuple[set[str], set[str]]]:
    """View → what it reads, itself and by functions of its module, and what it says it takes."""
    functions = {node.name: node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)}

    def reads(name: str, seen: frozenset[str] = frozenset()) -> set[str]:
        node = functions[name]
        found = read_in(node)
        for call in calls(node):
            other = call.func.id if isinstance(call.func, ast.Name) else ""
            if other in functions and other not in seen | {name}:
                found |= reads(other, seen | {name})
        return found

    views: dict[str, tuple[set[str], set[str]]] = {}
    for name, node in functions.items():
        told = [item for item in node.decorator_list if isinstance(item, ast.Call)]
        if any(
            isinstance(item.func, ast.Attribute) and getattr(item.func.value, "id", "") == "routes"
            for item in told
        ):
            taken = [item for item in told if isinstance(item.func, ast.Name) and item.func.id == "takes"]
            said = {str(arg.value) for item in taken for arg in item.args if isinstance(arg, ast.Constant)}
            views[name] = (reads(name), said)
    return views


@pytest.mark.parametrize("path", api_modules(), ids=lambda path: path.name)
def test_a_route_says_each_parameter_that_it_reads(path: Path):
    """Say it with `@takes(…)` of `web.query` below the route."""
    missing = {name: sorted(reads - said) for name, (reads, said) in routes(path.read_text()).items()}

    assert {name: names for name, names in missing.items() if names} == {}


@pytest.mark.parametrize("path", api_modules(), ids=lambda path: path.name)
def test_a_query_is_read_by_the_one_way_that_is_known(path: Path):
    text = path.read_text()

    assert text.count("request.args") == text.count('request.args.getlist("scope")')


def test_what_is_read_and_not_said_is_found():
    source = """
@routes.get("/x")
@takes("limit")
def _x():
    return helper(lists.limit())

def helper(n):
    return lists.number("after")
"""

    assert routes(source) == {"_x": ({"limit", "after"}, {"limit"})}
