"""`python -m workers.pool`: one pool worker."""

from __future__ import annotations

import logging
import sys

from memory_core import config
from memory_core.clock import SystemClock
from memory_core.errors import CoreError, Forbidden, Invalid
from workers import exit_codes, logs
from workers.pool.worker import assemble

logger = logging.getLogger(__name__)


def main() -> int:
    with exit_codes.said_in_a_line():
        settings = config.load()
    logs.configure(settings, "pool")
    try:
        worker = assemble(settings, SystemClock())
    except CoreError as error:
        logger.error("this worker cannot start: %s", error, extra={"action": "pool_refused"})
        is_final = isinstance(error, Invalid | Forbidden)
        return exit_codes.REFUSED if is_final else exit_codes.UNAVAILABLE
    return worker.run()


if __name__ == "__main__":
    sys.exit(main())
