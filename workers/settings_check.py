"""Whether the tables of the configuration that belong to single rooms can be read: `[models]`, `[budget]`, `[memory]`, `[schedules]`,
`[retention]`."""

from __future__ import annotations

import json
import sys

from memory_core import bootstrap, config, job_kind
from memory_core.config import Settings
from memory_core.errors import CoreError
from memory_core.models.budget_settings import read_budget
from memory_core.models.settings import read_settings
from memory_core.recall.knowledge import read_bounds
from memory_core.retention_settings import read_retention


def check_settings(settings: Settings) -> None:
    """Raises `Invalid` that names table and key for the first setting that is refused. Connects to nothing, reads no key."""
    bootstrap.load_jobs()
    read_settings(settings)
    read_bounds(settings)
    read_budget(settings, kinds=job_kind.kinds.names())
    job_kind.schedules(settings)
    read_retention(settings)


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
