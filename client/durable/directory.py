"""Which directory a session works in: the host, the disk and the number of the directory on it. The path only describes it."""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
from collections.abc import Mapping
from pathlib import Path

from client.durable.errors import DirectoryGone
from client.settings import state_dir_of
from memory_core.domain.directory import Directory
from memory_core.errors import Invalid, WorkspaceMismatch
from memory_core.machine import system_id

#: Before hashing, so that the system's id cannot be told from ours.
_PURPOSE = b"memoryd durable session host\0"


def verify(directory: Directory) -> None:
    """Look again at its path. Raises `DirectoryGone`, or `WorkspaceMismatch` where another directory lies there."""
    try:
        found = Path(directory.path).stat()
    except OSError as error:
        raise DirectoryGone(f"{directory.path} is not there any more ({error.strerror})") from error
    if (str(found.st_dev), str(found.st_ino)) != (directory.device, directory.inode):
        raise WorkspaceMismatch(
            f"another directory lies at {directory.path} than the one that the session works in",
            detail={"device": str(found.st_dev), "inode": str(found.st_ino)},
        )


def identity_of(directory: str | os.PathLike[str], environ: Mapping[str, str]) -> Directory:
    """The identity of an existing directory. Raises `DirectoryGone`, `Invalid` for what is no directory or no UTF-8."""
    try:
        canonical = Path(directory).resolve(strict=True)
        found = canonical.stat()
    except (OSError, RuntimeError) as error:
        raise DirectoryGone(f"there is no directory {os.fspath(directory)!r}") from error
    if not stat.S_ISDIR(found.st_mode):
        raise Invalid(f"{canonical} is no directory; a session works in one")
    identity = Directory(
        host=host_id(environ), device=str(found.st_dev), inode=str(found.st_ino), path=str(canonical)
    )
    identity.check()
    return identity


def host_id(environ: Mapping[str, str]) -> str:
    """A lasting name of this machine: as declared, derived from the system's id, or made once and kept with the client."""
    declared = environ.get("MEMORYD_HOST_ID", "").strip()
    if declared:
        return declared
    system = system_id()
    if system:
        return hashlib.sha256(_PURPOSE + system.encode()).hexdigest()[:32]
    return _kept(Path(state_dir_of(dict(environ))) / "host-id")


def _kept(file: Path) -> str:
    try:
        text = file.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        return _made(file)
    except (OSError, UnicodeDecodeError) as error:
        raise Invalid(f"{file} cannot be read ({error}); name this host with MEMORYD_HOST_ID") from error
    if not text:
        raise Invalid(f"{file} is empty; remove it, or name this host with MEMORYD_HOST_ID")
    return text


def _made(file: Path) -> str:
    """Whole or not at all, and one for all who come at once: the first link wins."""
    text = secrets.token_hex(16)
    mine = file.with_name(f"{file.name}.{text}")
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(mine, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as written:
            written.write(text + "\n")
            written.flush()
            os.fsync(written.fileno())
        try:
            os.link(mine, file)
        except FileExistsError:
            return _kept(file)
        finally:
            mine.unlink()
    except OSError as error:
        raise Invalid(f"{file} cannot be made ({error}); name this host with MEMORYD_HOST_ID") from error
    return text
