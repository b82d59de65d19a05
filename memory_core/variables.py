"""Names of environment variables that look like memoryd's and are nobody's: a misspelt one is said, not passed over."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from difflib import get_close_matches

PREFIX = "MEMORYD_"
#: What the command line and the shim read.
CLIENT = ("URL", "TOKEN", "TOKEN_FILE", "CLIENT_CONFIG", "IGNORE_MARKER", "HOST_ID")
#: What the compose file reads.
_COMPOSE = ("BIND", "PUBLISHED_PORT")
#: What tests say to the programs they start, and what container engines say of a service by that name.
_OTHERS = re.compile(r"TEST_.*|SERVICE_(HOST|PORT).*|(.*_)?PORT_\d+_(TCP|UDP).*")
#: Under this likeness a name is somebody else's rather than misspelt.
_LIKENESS = 0.75


def unknown(
    environ: Mapping[str, str], settings: Collection[str], sections: Collection[str]
) -> dict[str, str | None]:
    """Variable → the one that is probably meant (None: none is near), of all that begin with the prefix and are not known.

    `settings` are names of single ones, `sections` those that stand before `__` and a key.
    """
    known = {*(name.upper() for name in settings), *CLIENT, *_COMPOSE}
    tables = {name.upper() for name in sections}
    found: dict[str, str | None] = {}
    for variable in sorted(environ):
        name = variable.removeprefix(PREFIX)
        table, is_of_table, key = name.partition("__")
        if name == variable or _OTHERS.fullmatch(name) or (table in tables if is_of_table else name in known):
            continue
        near = get_close_matches(
            table if is_of_table else name, tables if is_of_table else known, 1, _LIKENESS
        )
        meant = f"{PREFIX}{near[0]}{is_of_table}{key}" if near else None
        found[variable] = meant
    return found
