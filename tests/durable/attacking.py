"""Values that no field takes, put wherever a body has a value, and ids that are none."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.durable.working import nested

#: What no field takes, and what some do: too large for 64 bits, of another type, half a character, a path, too long, too deep.
WRONG: tuple[Any, ...] = (
    *(None, True, -1, 2**63, 2**64, 2**70, 1.5),
    *("", "\ud800", "a\u0000b", "../../etc/passwd", "x" * 300_000),
    *([], [1], {}, {"a": 1}, nested(300)),
)
NO_IDS = ("..", "%2e%2e%2fetc%2fpasswd", "%00", "x" * 5_000, "%ff%fe", "\u0661" * 32, "9" * 32, "-1")


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where something stands in a JSON value."""
    yield at
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, item in inside:
        yield from places(item, (*at, name))


def changed(value: Any, at: tuple[Any, ...], wrong: Any) -> Any:
    if not at:
        return wrong
    copy = json.loads(json.dumps(value))
    inner = copy
    for name in at[:-1]:
        inner = inner[name]
    inner[at[-1]] = wrong
    return copy


def is_sound(answer: Any) -> bool:
    """A value, or an error that says what is wrong; nothing broke."""
    told = answer.get_json(silent=True)
    return answer.status_code < 500 and isinstance(told, dict) and (answer.status_code < 400 or told["error"])
