"""Lists of the HTTP API: what a query says, and the bare array with its cursor in a `Link` header."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

from flask import Response, request

from memory_core import limits
from memory_core.errors import Invalid
from memory_core.recall.scope import Asker, project_for
from memory_core.store.database import Snapshot
from web.answers import json_answer
from web.auth import current

_MOMENT_AND_ID = re.compile(r"([0-9]{1,18})\.([0-9a-f]{32})", re.ASCII)


def given(name: str) -> str | None:
    return request.args.get(name, "").strip() or None


def state(*known: str) -> str | None:
    text = given("state")
    if text is not None and text not in known:
        raise Invalid(f"state is one of: {', '.join(known)}")
    return text


def limit(default: int = limits.LIST_DEFAULT, most: int = limits.LIST_MAX) -> int:
    asked = number("limit")
    if asked is not None and not 1 <= asked <= most:
        raise Invalid(f"limit is a number from 1 to {most}, not {asked}")
    return min(default, most) if asked is None else asked


def number(name: str) -> int | None:
    text = given(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise Invalid(f"{name} is a whole number, not {text[:40]!r}")
    return int(text)


def flag(name: str) -> bool:
    """Whether the query says `true` or `1` of it; not said is false."""
    text = given(name)
    if text not in (None, "true", "false", "1", "0"):
        raise Invalid(f"{name} is true or false, not {text[:40]!r}")
    return text in ("true", "1")


def moment_and_id() -> tuple[int, bytes] | None:
    """The cursor of a list by time, whose rows of one time are told apart by their ids."""
    text = given("cursor")
    if text is None:
        return None
    found = _MOMENT_AND_ID.fullmatch(text)
    if found is None:
        raise Invalid("cursor: as the Link header of the list gave it")
    return int(found[1]), bytes.fromhex(found[2])


def after_row(at: int, row_id: bytes) -> str:
    """What `moment_and_id` reads."""
    return f"{at}.{row_id.hex()}"


def pair(name: str) -> tuple[str, str]:
    """A cursor `workspace/project`; empty texts where none is given."""
    text = given(name)
    if text is None:
        return "", ""
    workspace, slash, project = text.partition("/")
    if not (slash and workspace and project):
        raise Invalid(f"{name} is workspace/project as the list before gave it, not {text[:64]!r}")
    return workspace, project


def project(reading: Snapshot) -> bytes | None:
    """The project that the query names; None where it names none: then all are meant."""
    workspace, name = given("workspace"), given("project")
    if workspace is None and name is None:
        return None
    return project_for(reading, Asker(principal=current().principal), workspace, name).id


def next_address(**cursor: int | str) -> str:
    """The address of this very list, gone on from a cursor."""
    query = {**request.args.to_dict(), **{name: str(value) for name, value in cursor.items()}}
    return f"{quote(request.path)}?{urlencode(query)}"


def listed(
    items: list[dict[str, Any]],
    limit: int,
    *,
    headers: Mapping[str, str] | None = None,
    **cursor: int | str | None,
) -> Response:
    """A bare array; where the list may go on, the address of its next part."""
    (name, value), *_ = cursor.items()
    link: dict[str, str] = {}
    if len(items) >= limit and value is not None:
        link["Link"] = f'<{next_address(**{name: value})}>; rel="next"'
    return json_answer(items, headers={**(headers or {}), **link})
