"""Shapes of the tool list for clients that refuse what the protocol allows; a client's address says which: `/mcp?flavor=…`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qs

from memory_core import limits
from memory_core.errors import Invalid

Schema = dict[str, Any]
_CHOICES = ("anyOf", "oneOf", "allOf")


def without_root_choices(schema: Schema) -> Schema:
    """The schema without choices at its root: Kimi (Moonshot) refuses a list of tools in which one has them."""
    return {key: value for key, value in schema.items() if key not in _CHOICES}


def as_it_is(schema: Schema) -> Schema:
    return schema


FLAVORS: Mapping[str, Callable[[Schema], Schema]] = {"": as_it_is, "moonshot": without_root_choices}


def input_shape(query_string: str) -> Callable[[Schema], Schema]:
    """What becomes of each input schema; `Invalid` for a flavor that there is not."""
    given = parse_qs(query_string, keep_blank_values=True, max_num_fields=limits.QUERY_FIELDS_MAX)
    name = given.get("flavor", [""])[0]
    if name not in FLAVORS:
        raise Invalid(f"there is no flavor {name[:64]!r}; there are: {', '.join(filter(None, FLAVORS))}")
    return FLAVORS[name]
