"""What stands behind the `?` of an address: each route says what it takes, and anything else is refused by name.

A misspelt filter that is ignored looks like an answer to the question that was asked.
"""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from typing import TypeVar

from flask import Flask, current_app, request

from memory_core.errors import Invalid

V = TypeVar("V", bound=Callable[..., object])

#: Parameters of a route, noted on its view; a route without the note takes none, and None is for one that only says that it is not there.
_NOTE = "query_parameters"
#: Hooks are not among them: what their clients put there is the clients' own.
_PREFIXES = ("/api/v1", "/ui", "/mcp", "/pool")
#: The only one that may be said several times.
_MANY = frozenset({"scope"})


def takes(*names: str) -> Callable[[V], V]:
    """Decorator of a view: the query parameters that it knows."""

    def decorate(view: V) -> V:
        setattr(view, _NOTE, names)
        return view

    return decorate


def takes_anything(view: V) -> V:
    """Decorator of a view that answers for addresses that there are not."""
    setattr(view, _NOTE, None)
    return view


def install(app: Flask) -> None:
    """Refuse query parameters that a route does not know, and those that are said twice."""
    app.before_request(_check)


def _check() -> None:
    if request.endpoint is None or not request.path.startswith(_PREFIXES):
        return
    known: tuple[str, ...] | None = getattr(current_app.view_functions[request.endpoint], _NOTE, ())
    if known is None:
        return
    for name, values in request.args.lists():
        if name not in known:
            raise Invalid(_unknown(name[:64], known))
        if len(values) > 1 and name not in _MANY:
            raise Invalid(f"the parameter {name} is given {len(values)} times; give it once")


def _unknown(name: str, known: tuple[str, ...]) -> str:
    if not known:
        return f"there is no parameter {name!r} here; this address takes none"
    meant = get_close_matches(name, known, n=1)
    hint = f" (did you mean {meant[0]}?)" if meant else ""
    return f"there is no parameter {name!r} here{hint}; known are: {', '.join(known)}"
