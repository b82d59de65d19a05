"""How a process of the tree ends, and what its end means to the supervisor and to a shell (numbers of sysexits.h)."""

from __future__ import annotations

from typing import Final

OK: Final = 0
#: A fault of ours.
CRASHED: Final = 70
#: The broker is not there, or its port or program is not.
UNAVAILABLE: Final = 69
#: Another supervisor or writer owns the data directory.
NOT_ALONE: Final = 75
#: It refuses to work with this directory, database or setting, and a restart does not cure that.
REFUSED: Final = 78
