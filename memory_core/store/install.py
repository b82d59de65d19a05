"""Who this database is: its install id, where it lies, and the epoch of the writer that owns it.

The marker file remembers the install id outside the database, so that a database that vanished is
missed and never quietly made anew. The database remembers machine, device and inode of itself, so that a
copied data directory is seen before it touches anything that belongs to the original.
"""

from __future__ import annotations

import json
import os
import secrets
import uuid
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from sqlalchemy import bindparam, insert, select, update

from memory_core.durable import sync_directory
from memory_core.errors import Conflict, Invalid, NotFound
from memory_core.machine import system_id
from memory_core.store.database import Snapshot, create_database, open_reader
from memory_core.store.statement import Statement, text_statement
from memory_core.store.tables import install
from memory_core.store.transaction import Reading, Transaction

_READ = Statement(select(install))
_EPOCH = Statement(select(install.c.epoch))
_HAS_TABLE = text_statement("SELECT 1 AS found FROM sqlite_master WHERE type = 'table' AND name = 'install'")
_INSERT = Statement(
    insert(install).values(
        only=1,
        epoch=bindparam("epoch"),
        id=bindparam("id"),
        machine=bindparam("machine"),
        device=bindparam("device"),
        inode=bindparam("inode"),
        created_at=bindparam("created_at"),
    )
)
_MOVE = Statement(
    update(install).values(
        id=bindparam("id"),
        machine=bindparam("machine"),
        device=bindparam("device"),
        inode=bindparam("inode"),
    )
)
_RAISE_EPOCH = Statement(update(install).values(epoch=install.c.epoch + 1))

#: Before the name of a machine that the operator named.
_NAMED = "named:"


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a database file lies: what a copy of it cannot have."""

    #: The operating system's machine id, or the operator's name for it; empty when there is none (then it is not compared).
    machine: str
    #: 0 on a machine that was named, where a volume may come back with another number (then it is not compared).
    device: int
    inode: int


@dataclass(frozen=True, kw_only=True)
class Install:
    """The row of `install`; `id` is 16 bytes, hexadecimal on the broker."""

    id: bytes
    epoch: int
    place: Place

    @property
    def text(self) -> str:
        return self.id.hex()


def read_install(reading: Reading) -> Install | None:
    """Who the database is, None while its writer has not yet made it."""
    if reading.row(_HAS_TABLE) is None:
        return None
    row = reading.row(_READ)
    return None if row is None else _install(row)


def epoch_of(reading: Reading) -> int:
    """The epoch in the database; a writer with another one must write nothing."""
    row = reading.row(_EPOCH)
    if row is None:
        raise Conflict("the database does not say which install it is")
    return int(row["epoch"])


def place_of(database: Path, machine: str) -> Place:
    stat = database.stat()
    device = 0 if machine.startswith(_NAMED) else stat.st_dev
    return Place(machine=machine, device=device, inode=stat.st_ino)


def machine_id(named: str = "") -> str:
    """The operating system's id of this machine, or what stands for it where the operator gave the machine a name."""
    return _NAMED + named if named else system_id()


@dataclass(frozen=True, kw_only=True)
class Permission:
    """What the operator allowed for a data directory that is not where it was."""

    #: Keep the install id: the original is gone.
    take_over: bool = False
    #: Make a new install id: the original lives on.
    new_install: bool = False
    #: Begin with an empty database although the marker knows of one: it is lost.
    new_database: bool = False


def verify(database: Path, marker: Path, machine: str, permission: Permission) -> None:
    """Look, without writing anything, whether this data directory may be used; make an empty database on a first start.

    Raises `NotFound` for a database that vanished, `Conflict` for a copy and for a database that is not
    the one the marker names; the message says what to do.
    """
    known = marked_install(marker)
    if not database.exists() and not database.is_symlink():
        if known is not None and not permission.new_database:
            raise NotFound(
                f"the database {database} is gone, but {marker} says that this data directory had one (install "
                f"{known}). Nothing was made anew. Put the file back, or restore a backup from "
                f"{database.parent / 'backups'}. If it is lost, start once with --new-database and run `memoryd reindex`: "
                f"pages come back from the wiki's files. To begin with an empty memory, remove {marker}"
            )
        create_database(database)
        return
    found = _look(database)
    if found is None:
        if known is not None and not permission.new_database:
            raise NotFound(
                f"the database {database} lost its content, though {marker} names install {known}. Restore a backup "
                f"from {database.parent / 'backups'}, or start once with --new-database and run `memoryd reindex`; to begin "
                "with an empty memory, remove both files"
            )
        return
    if known is not None and known != found.text and not (permission.take_over or permission.new_install):
        raise Conflict(
            f"the database is install {found.text}, but {marker} names {known}: they do not belong together. "
            f"If the database was put there on purpose, start once with --take-over"
        )
    _refuse_copy(found.place, place_of(database, machine), permission)


def establish(
    tx: Transaction, database: Path, machine: str, permission: Permission, *, known: str | None = None
) -> Install:
    """In the writer's transaction: the row is there and names this place; the epoch is one higher and ours.

    A new database in place of a lost one (`permission.new_database`) keeps the id `known` of the install, so that
    commands which wait in the stream still reach it, and begins with an epoch above all that were before.
    """
    here = place_of(database, machine)
    found = read_install(tx)
    place = asdict(here)
    if found is None:
        replaces = known is not None and permission.new_database
        tx.run(
            _INSERT,
            id=bytes.fromhex(known) if known is not None and replaces else secrets.token_bytes(16),
            # Epochs count starts; seconds since 1970 are more than any install has had.
            epoch=tx.now // 1_000_000 if replaces else 0,
            created_at=tx.now,
            **place,
        )
    elif _differs(found.place, here):
        _refuse_copy(found.place, here, permission)
        # A new id only where the place changed: the setting left on must not change it at each start.
        identity = found.id if permission.take_over else secrets.token_bytes(16)
        tx.run(_MOVE, id=identity, **place)
    elif (known_better := replace(here, machine=here.machine or found.place.machine)) != found.place:
        tx.run(_MOVE, id=found.id, **asdict(known_better))
    tx.run(_RAISE_EPOCH)
    return _install(tx.row(_READ))


def marked_install(marker: Path) -> str | None:
    """The install id that the marker file names (hexadecimal), None when it names none yet."""
    try:
        content: Any = json.loads(marker.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise Invalid(f"{marker} cannot be read: {error}") from error
    value = content.get("install") if isinstance(content, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return value if isinstance(value, str) else None


def mark(marker: Path, identity: Install) -> None:
    """Write the install id into the marker file, whole and synced, beside what the file says already."""
    if marked_install(marker) == identity.text:
        return
    content: dict[str, Any] = json.loads(marker.read_text(encoding="utf-8")) if marker.exists() else {}
    content["install"] = identity.text
    replace_synced(marker, json.dumps(content) + "\n")


def replace_synced(path: Path, text: str, *, mode: int = 0o600) -> None:
    """Replace a small file: after a power cut it has the old or the new content."""
    aside = path.with_name(f".new-{uuid.uuid4().hex}")
    descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        # Not at the opening: the umask has no say.
        os.fchmod(descriptor, mode)
        file.write(text)
        file.flush()
        os.fsync(descriptor)
    aside.replace(path)
    sync_directory(path.parent)


def _look(database: Path) -> Install | None:
    connection = open_reader(database)
    try:
        return read_install(Snapshot(connection))
    finally:
        connection.close()


def _refuse_copy(recorded: Place, here: Place, permission: Permission) -> None:
    if not _differs(recorded, here) or permission.take_over or permission.new_install:
        return
    raise Conflict(
        "this data directory was copied or moved: its database last lay on machine "
        f"{recorded.machine or 'unknown'}, device {recorded.device}, inode {recorded.inode}, and now lies on machine "
        f"{here.machine or 'unknown'}, device {here.device}, inode {here.inode}. Nothing was changed. "
        "If the original is gone (moved, restored, a container or volume made anew), start once with --take-over "
        "to keep its identity; if the original is still in use, start with --new-install to make this one its own"
    )


def _differs(recorded: Place, here: Place) -> bool:
    same_machine = not recorded.machine or not here.machine or recorded.machine == here.machine
    same_device = not recorded.device or not here.device or recorded.device == here.device
    return not (same_machine and same_device and recorded.inode == here.inode)


def _install(row: Any) -> Install:
    place = Place(machine=row["machine"], device=row["device"], inode=row["inode"])
    return Install(id=row["id"], epoch=row["epoch"], place=place)
