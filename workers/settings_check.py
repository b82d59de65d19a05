"""Whether the tables of the configuration that belong to single rooms can be read.

A table that is not there is not looked at, and its room is not loaded: most rooms take longer to load than the check takes.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping

from memory_core import config
from memory_core.config import Settings
from memory_core.errors import CoreError


def _models(settings: Settings) -> None:
    from memory_core.models.settings import read_settings

    read_settings(settings)


def _memory(settings: Settings) -> None:
    from memory_core.recall.knowledge import read_bounds

    read_bounds(settings)


def _budget(settings: Settings) -> None:
    from memory_core import bootstrap, job_kind
    from memory_core.models.budget_settings import read_budget

    bootstrap.load_jobs()
    read_budget(settings, kinds=job_kind.kinds.names())


def _schedules(settings: Settings) -> None:
    from memory_core import bootstrap, job_kind

    bootstrap.load_jobs()
    job_kind.schedules(settings)


def _retention(settings: Settings) -> None:
    from memory_core.retention_settings import read_retention

    read_retention(settings)


#: What reads a table, by the table's name.
_TABLES: Mapping[str, Callable[[Settings], None]] = {
    "models": _models,
    "memory": _memory,
    "budget": _budget,
    "schedules": _schedules,
    "retention": _retention,
}


def tables(settings: Settings) -> list[str]:
    """The tables that say anything, in the file or in the environment."""
    return [name for name in _TABLES if config.section(settings, name)]


def check_settings(settings: Settings) -> None:
    """Raises `Invalid` that names table and key for the first setting that is refused. Connects to nothing, reads no key."""
    for name in tables(settings):
        _TABLES[name](settings)


def main() -> int:
    """Check the settings of this process; print the reason of a refusal, or nothing in particular, as one JSON object."""
    try:
        check_settings(config.load())
    except CoreError as error:
        sys.stdout.write(json.dumps({"code": error.code, "message": str(error)}) + "\n")
        return 1
    sys.stdout.write("{}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
