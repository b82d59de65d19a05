"""How a process of the tree ends, and what its end means to the supervisor and to a shell (numbers of sysexits.h)."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from memory_core.errors import CoreError, Forbidden, Invalid, NotAlone, Unavailable

OK: Final = 0
#: A fault of ours.
CRASHED: Final = 70
#: The broker is not there, or its port or program is not.
UNAVAILABLE: Final = 69
#: Another supervisor or writer owns the data directory.
NOT_ALONE: Final = 75
#: It refuses to work with this directory, database or setting, and a restart does not cure that.
REFUSED: Final = 78

_CODES: Final[tuple[tuple[type[CoreError], int], ...]] = (
    (NotAlone, NOT_ALONE),
    (Unavailable, UNAVAILABLE),
    (Invalid, REFUSED),
    (Forbidden, REFUSED),
)


def code_of(error: CoreError) -> int:
    return next((code for kind, code in _CODES if isinstance(error, kind)), CRASHED)


@contextmanager
def said_in_a_line() -> Generator[None]:
    """A `CoreError` inside ends the process: one line on stderr, and the code that tells whether a restart may help."""
    try:
        yield
    except CoreError as error:
        sys.stderr.write(f"memoryd: {error}\n")
        sys.exit(code_of(error))
