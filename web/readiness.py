"""What `/readyz` looks at: broker, writer, schema, disk. Each check says what to do when it is not well."""

from __future__ import annotations

from collections.abc import Callable

from memory_core import limits
from memory_core.clock import Clock
from memory_core.config import Settings
from memory_core.errors import CoreError
from memory_core.store.database import Database
from memory_core.store.schema import check_schema
from web.line import Line
from web.meters import writer_figures
from web.probes import Checks
from web.vitals import wiki_state
from workers import heartbeat
from workers.queue.disk import DiskGauge


def checks(settings: Settings, clock: Clock, line: Line, database: Database, disk: DiskGauge) -> Checks:
    return {
        "broker": _told(line.ping),
        "writer": lambda: writer_trouble(settings, clock),
        "database": lambda: _database(database),
        "disk": lambda: _disk(disk),
        "wiki": lambda: _wiki(settings, clock),
    }


def _told(ask: Callable[[], None]) -> Callable[[], str | None]:
    def check() -> str | None:
        try:
            ask()
        except CoreError as error:
            return str(error)
        return None

    return check


def writer_trouble(settings: Settings, clock: Clock) -> str | None:
    """What keeps the writer from its work, and what becomes of events meanwhile; None when it is well."""
    beat = heartbeat.read(heartbeat.heartbeat_file(settings.run_dir, "writer"))
    if beat is None:
        return "the writer has not started; events wait in the queue"
    silent = beat.silent_seconds(clock.monotonic())
    if silent > limits.WRITER_SILENT_SECONDS:
        return f"the writer has been silent for {silent:.0f} s; events wait in the queue"
    figures = writer_figures(settings.run_dir)
    if figures.get("is_stopped"):
        return "the disk takes no writes; events wait in the queue and nothing is lost, make room"
    return None


def _database(database: Database) -> str | None:
    try:
        with database.snapshot(seconds=1.0) as reading:
            check_schema(reading)
    except CoreError as error:
        return str(error)
    return None


def _disk(disk: DiskGauge) -> str | None:
    if disk.backlog_room_bytes() <= 0:
        return "the disk is nearly full; nothing is taken until there is room"
    return None


def _wiki(settings: Settings, clock: Clock) -> str | None:
    state = wiki_state(settings, clock)
    what = [state["away"]] if state.get("away") else []
    what += [
        f"{row['missing']} of {row['pages']} pages of {row['project']}: {row.get('reason', 'no file')}"
        for row in (state.get("held") or [])[:3]
    ]
    if what:
        return (
            f"files vanished ({'; '.join(what)}); nothing was deleted. Mount or restore the wiki, or write them again with "
            "`memoryd heal`, or say that they were deleted with `memoryd heal --accept-deletions`"
        )
    return None
