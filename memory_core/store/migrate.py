"""Bringing a database to this code's schema: a backup file first, then each revision in one transaction.

Runs in the writer's hands only, before it owns the database. The migration library is loaded only when there
is something to do, and by `migrate_apart` in a child process, so that its memory goes with it.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from memory_core import limits
from memory_core.clock import MICROSECONDS, Clock, SystemClock
from memory_core.durable import sync_directory
from memory_core.errors import CoreError, StorageFailed, StorageStopped
from memory_core.store import driver, schema
from memory_core.store.database import Snapshot, create_database, open_reader, open_writer, translated

logger = logging.getLogger(__name__)

_SCRIPTS = Path(__file__).parent / "migrations"
_BACKUP_PREFIX = "before-"


def is_current(path: Path) -> bool:
    """Whether the database has this code's revision; `SchemaTooNew` when a newer memoryd wrote it."""
    connection = open_reader(path)
    try:
        revision = schema.revision_of(Snapshot(connection))
    finally:
        connection.close()
    schema.refuse_newer(revision)
    return revision == schema.HEAD


def migrate(path: Path, backups: Path, clock: Clock) -> Path | None:
    """Bring the database at `path` to `schema.HEAD`; the backup file that was made, if one was.

    A kill at any moment leaves a whole revision, the old one or the next. Raises `SchemaTooNew` before
    anything is touched, `StorageStopped` when the disk is full (try again later), `StorageFailed`.
    """
    connection = open_writer(path)
    try:
        revision = schema.revision_of(Snapshot(connection))
        schema.refuse_newer(revision)
        if revision == schema.HEAD:
            return None
        backup = None if revision is None else back_up(connection, backups, revision, clock)
        connection.execute("PRAGMA foreign_keys=OFF")
        _run_scripts(connection)
        logger.info("schema is current", extra={"action": "schema_migrated", "revision": schema.HEAD})
        return backup
    except driver.Error as error:
        raise translated(error) from error
    finally:
        connection.close()


def migrate_apart(path: Path, backups: Path) -> None:
    """`migrate` in a child process, only when there is something to do; raises the same errors."""
    if is_current(path):
        return
    argv = [sys.executable, "-m", "memory_core.store.migrate", str(path), str(backups)]
    # The child ends itself when its input ends, so that it does not outlive this process.
    with subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as child:
        said = child.stdout.read() if child.stdout else ""
        if child.wait() == 0:
            return
    try:
        refusal = json.loads(said.splitlines()[-1])
        kind = StorageStopped if refusal["code"] == StorageStopped.code else StorageFailed
    except (ValueError, KeyError, IndexError):
        raise StorageFailed(f"the migration ended with {child.returncode}: {said[-2000:]}") from None
    raise kind(refusal["message"])


def back_up(connection: Any, backups: Path, revision: str, clock: Clock) -> Path:
    """Copy the whole database into a file of `backups` by the online backup interface; older ones go."""
    moment = datetime.fromtimestamp(clock.now_us() / MICROSECONDS, tz=UTC)
    path = backups / f"{_BACKUP_PREFIX}{moment:%Y%m%dT%H%M%S%f}Z-from-{revision}.sqlite"
    aside = path.with_suffix(".part")
    aside.unlink(missing_ok=True)
    create_database(aside)
    target = driver.connect(f"{aside.resolve().as_uri()}?mode=rw")
    try:
        connection.backup(target)
    finally:
        target.close()
    _sync(aside)
    aside.replace(path)
    sync_directory(backups)
    for old in sorted(backups.glob(f"{_BACKUP_PREFIX}*.sqlite"))[: -limits.SCHEMA_BACKUPS_KEPT]:
        old.unlink()
    return path


def _run_scripts(connection: Any) -> None:
    # Loaded here: readers and a writer with a current schema never need it.
    from alembic import command
    from alembic.config import Config
    from alembic.util.exc import CommandError
    from sqlalchemy import create_engine, event
    from sqlalchemy.exc import DBAPIError
    from sqlalchemy.pool import StaticPool

    connection.row_factory = None
    engine = create_engine(
        "sqlite://", module=driver.module, creator=lambda: connection, poolclass=StaticPool
    )
    # The driver is in autocommit mode: transactions begin where we say so, and take the write lock at once.
    event.listen(engine, "begin", _begin)
    config = Config()
    config.set_main_option("script_location", str(_SCRIPTS).replace("%", "%%"))
    with engine.connect() as alembic_connection:
        config.attributes["connection"] = alembic_connection
        config.attributes["on_version_apply"] = (_check_references,)
        try:
            command.upgrade(config, "head")
        except DBAPIError as error:
            raise translated(error.orig or error) from error  # pyright: ignore[reportArgumentType]
        except CommandError as error:
            raise StorageFailed(f"the migration failed: {error}") from error


def _begin(connection: Any) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def _check_references(*, ctx: Any, **_more: Any) -> None:
    """Inside the transaction of each revision: what is broken here is not committed."""
    broken = ctx.connection.exec_driver_sql("PRAGMA foreign_key_check").fetchmany(5)
    if broken:
        raise StorageFailed(f"the migration would leave broken references: {broken}")


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _end_with_input() -> None:
    """A kill in mid-migration is harmless; two processes that write are not."""
    sys.stdin.read()
    os._exit(1)


def main() -> int:
    path, backups = Path(sys.argv[1]), Path(sys.argv[2])
    threading.Thread(target=_end_with_input, daemon=True).start()
    try:
        migrate(path, backups, SystemClock())
    except CoreError as error:
        sys.stdout.write(json.dumps({"code": error.code, "message": str(error)}))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
