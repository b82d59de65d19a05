"""`python -m workers.writer`: the one process that applies commands."""

from __future__ import annotations

import gc
import json
import logging
import signal
import sys
import threading

from memory_core import bootstrap, config, limits
from memory_core.clock import Clock, SystemClock
from memory_core.config import Settings
from memory_core.errors import Conflict, Invalid, NotAlone, NotFound, SchemaTooNew, StorageStopped
from memory_core.ids import IdSource
from workers import exit_codes, logs
from workers.heartbeat import Heartbeat, hang_file, heartbeat_file
from workers.writer.clean_stop import note_clean_stop
from workers.writer.engine import Stopping
from workers.writer.mark import MarkFile
from workers.writer.ownership import WriterLock
from workers.writer.process import assemble
from workers.writer.startup import Owned, acquire, is_readable

logger = logging.getLogger(__name__)

#: A migration or a lock test may take so long without a sign of life.
_PREPARING_SECONDS = 600.0


def main() -> int:
    with exit_codes.said_in_a_line():
        settings = config.load()
    logs.configure(settings, "writer")
    clock = SystemClock()
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    try:
        lock = WriterLock(settings.run_dir)
        heart = Heartbeat(heartbeat_file(settings.run_dir, "writer"), clock)
        heart.beat(_PREPARING_SECONDS, ready=False)
        lock.self_test()
        return _write(settings, clock, heart, stopping)
    except NotAlone as error:
        return _ended(error, exit_codes.NOT_ALONE)
    except (Conflict, Invalid, NotFound, SchemaTooNew) as error:
        return _ended(error, exit_codes.REFUSED)
    except StorageStopped as error:
        # After a failed write nobody knows what the connection holds: a new process looks afresh.
        return _ended(error, exit_codes.CRASHED)


def _write(settings: Settings, clock: Clock, heart: Heartbeat, stopping: threading.Event) -> int:
    bootstrap.load_commands()
    bootstrap.load_jobs()
    ids = IdSource(clock)
    owned = _acquire(settings, clock, ids, heart, stopping)
    if owned is None:
        return exit_codes.OK
    mark = MarkFile(settings.run_dir / "writer.inprogress", hung_pid=_hung_pid(settings))
    # It is counted now. In a container each writer has the same number: the next one's death is no hang.
    hang_file(settings.run_dir, "writer").unlink(missing_ok=True)
    writer = assemble(settings, clock, ids, owned, mark, heart, stopping)
    # What was loaded until here stays: no need to look through it again and again.
    gc.collect()
    gc.freeze()
    try:
        writer.loop.start()
        heart.beat()
        writer.consumer.start()
        writer.history.start()
        writer.start_looking()
        writer.loop.run()
        writer.history.finish(writer.loop.originate)
    except Stopping:
        pass
    finally:
        stopping.set()
        writer.consumer.end()
        writer.stop_looking()
        writer.history.stop()
    # In order: all that was begun is committed, and the next process has nothing to be careful about.
    owned.connection.truncate()
    owned.connection.close()
    mark.clear()
    note_clean_stop(settings.run_dir, owned.install.epoch)
    logger.info("the writer ends", extra={"action": "writer_ended"})
    return exit_codes.OK


def _acquire(
    settings: Settings, clock: Clock, ids: IdSource, heart: Heartbeat, stopping: threading.Event
) -> Owned | None:
    """Wait, alive, until the disk takes the first write; None when told to stop before."""
    while not stopping.is_set():
        try:
            return acquire(settings, clock, ids)
        except StorageStopped as error:
            logger.error("the writer cannot start yet: %s", error, extra={"action": "storage_stopped"})
            settings.ballast_file.unlink(missing_ok=True)
            heart.beat(_PREPARING_SECONDS, ready=is_readable(settings))
            stopping.wait(limits.STORAGE_RETRY_SECONDS)
    return None


def _hung_pid(settings: Settings) -> int | None:
    """The process that the supervisor last killed for hanging."""
    try:
        return int(json.loads(hang_file(settings.run_dir, "writer").read_bytes())["pid"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _ended(error: Exception, code: int) -> int:
    logger.critical("the writer does not work here: %s", error, extra={"action": "writer_refused"})
    return code


if __name__ == "__main__":
    sys.exit(main())
