"""Becoming the writer of a data directory, in plain code, before any queue library is started."""

from __future__ import annotations

import errno
import logging
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

from memory_core.clock import Clock
from memory_core.config import Settings
from memory_core.domain import token
from memory_core.errors import CoreError, Invalid, StorageStopped
from memory_core.ids import IdSource
from memory_core.store import install, principals
from memory_core.store.install import Install, Permission
from memory_core.store.migrate import is_current, migrate_apart
from memory_core.store.transaction import Transaction
from memory_core.store.writing import WriterConnection
from workers.data_dir import handed_out

logger = logging.getLogger(__name__)

_DISK_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.ENOMEM}


@dataclass(frozen=True, kw_only=True)
class Owned:
    """The database in the hands of its one writer; `install.epoch` is the writer's."""

    connection: WriterConnection
    install: Install


def acquire(settings: Settings, clock: Clock, ids: IdSource, machine: str | None = None) -> Owned:
    """Check, upgrade and take over the database; call it with the file lock held.

    Raises `NotFound` (vanished), `Conflict` (copied), `SchemaTooNew`, and `StorageStopped` when the disk cannot
    take it now: then nothing is half done, and it can be called again.
    """
    machine = install.machine_id(settings.machine) if machine is None else machine
    permission = Permission(
        take_over=settings.take_over,
        new_install=settings.new_install,
        new_database=settings.new_database,
    )
    with _disk_errors():
        install.verify(settings.database, settings.marker_file, machine, permission)
    migrate_apart(settings.database, settings.backups)
    connection = WriterConnection(settings.database)
    try:
        identity, pool_token = _establish(connection, settings, clock, ids, machine, permission)
        with _disk_errors():
            install.mark(settings.marker_file, identity)
            if pool_token is not None:
                install.replace_synced(settings.local_pool_token_file, pool_token + "\n")
            if _known(settings) != identity.text:
                mode = handed_out(settings)[settings.install_file]
                install.replace_synced(settings.install_file, identity.text + "\n", mode=mode)
    except BaseException:
        connection.close()
        raise
    logger.info(
        "this process owns the database",
        extra={"action": "writer_acquired", "install": identity.text, "epoch": identity.epoch},
    )
    return Owned(connection=connection, install=identity)


def is_readable(settings: Settings, machine: str | None = None) -> bool:
    """Whether others may read this database while its writer cannot start yet: it is known to be this install's
    and has the schema that they expect."""
    known = _known(settings)
    if known is None or known != install.marked_install(settings.marker_file):
        return False
    machine = install.machine_id(settings.machine) if machine is None else machine
    try:
        install.verify(settings.database, settings.marker_file, machine, Permission())
        return is_current(settings.database)
    except (CoreError, OSError):
        return False


def _establish(
    connection: WriterConnection,
    settings: Settings,
    clock: Clock,
    ids: IdSource,
    machine: str,
    permission: Permission,
) -> tuple[Install, str | None]:
    """Who the database is now, and a new token for this machine's pool worker where its old one was revoked."""
    tx = Transaction(connection.raw, ids)
    tx.now = clock.now_us()
    connection.begin()
    try:
        identity = install.establish(
            tx,
            settings.database,
            machine,
            permission,
            known=install.marked_install(settings.marker_file),
        )
        if settings.token_file.exists():
            text = settings.token_file.read_text(encoding="ascii").strip()
            principals.ensure_owner(tx, *token.parse(text))
        pool_token = _ensure_pool(tx, settings)
        connection.commit()
    except BaseException:
        connection.rollback()
        raise
    return identity, pool_token


def _ensure_pool(tx: Transaction, settings: Settings) -> str | None:
    try:
        text = settings.local_pool_token_file.read_text(encoding="ascii").strip()
        if principals.ensure_pool(tx, *token.parse(text)):
            return None
    except FileNotFoundError:
        return None  # who runs without it was told so
    except (Invalid, UnicodeDecodeError):
        pass  # not a whole token: another one takes its place
    made = token.mint()
    principals.ensure_pool(tx, made.public_id, made.digest)
    return made.text


def _known(settings: Settings) -> str | None:
    try:
        return settings.install_file.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        return None


@contextmanager
def _disk_errors() -> Generator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in _DISK_ERRORS:
            raise StorageStopped(f"the data directory cannot be written now: {error.strerror}") from error
        raise
