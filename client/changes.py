"""Changes to configuration files: planned as values, shown as a diff, applied atomically with a backup."""

from __future__ import annotations

import difflib
import os
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from memory_core.durable import sync_directory
from memory_core.errors import Conflict, Invalid

BACKUP_WORD = ".memoryd-backup-"


@dataclass(frozen=True, kw_only=True)
class FileChange:
    """What one file holds and what it is to hold; None is an absent file."""

    path: Path
    before: str | None
    after: str | None
    #: Permissions of a new file. A file that holds a token is taken from group and others in any case.
    mode: int = 0o600
    holds_token: bool = False
    is_ours: bool = False

    @property
    def is_needed(self) -> bool:
        return self.before != self.after

    @property
    def action(self) -> str:
        if not self.is_needed:
            return "unchanged"
        if self.after is None:
            return "remove"
        return "create" if self.before is None else "change"

    @property
    def size(self) -> str:
        """How many lines come and go, in words."""
        before, after = (self.before or "").splitlines(), (self.after or "").splitlines()
        marks = [line[:1] for line in difflib.ndiff(before, after)]
        told = [(marks.count("+"), "added"), (marks.count("-"), "removed")]
        return (
            ", ".join(f"{count} line{'s' * (count != 1)} {what}" for count, what in told if count) or "mode"
        )


def read_text(path: Path) -> str | None:
    """The text of a configuration file, None if there is none; `Invalid` when it is no UTF-8 text."""
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise Invalid(f"{path} cannot be read: {error}") from error


def preview(changes: Iterable[FileChange], *, hide: Iterable[str] = ()) -> str:
    """The changes as a unified diff, with each text of `hide` (tokens) shown as dots."""
    pieces: list[str] = []
    for change in changes:
        if change.is_needed:
            lines = difflib.unified_diff(
                (change.before or "").splitlines(keepends=True),
                (change.after or "").splitlines(keepends=True),
                fromfile=str(change.path) if change.before is not None else "(none)",
                tofile=str(change.path) if change.after is not None else "(removed)",
            )
            pieces.extend(line if line.endswith("\n") else f"{line}\n" for line in lines)
    text = "".join(pieces)
    for secret in hide:
        text = text.replace(secret, "…") if secret else text
    return text


def apply(changes: Iterable[FileChange], *, now_us: int) -> list[Path]:
    """Make the changes, each file atomically and after a backup; returns the backups made.

    Raises `Conflict` before the first write when a file is no longer what the plan was made from.
    """
    needed = [change for change in changes if change.is_needed]
    for change in needed:
        if read_text(change.path) != change.before:
            raise Conflict(f"{change.path} has changed meanwhile; run the command again")
    backups = [_apply(change, now_us) for change in needed]
    return [backup for backup in backups if backup is not None]


def _apply(change: FileChange, now_us: int) -> Path | None:
    # Through a symlink (dotfiles kept elsewhere) the file behind it is replaced, never the link.
    target = Path(os.path.realpath(change.path))
    backup = _backup(target, change, now_us)
    if change.after is None:
        target.unlink(missing_ok=True)
    else:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _replace(target, change.after.encode("utf-8"), _mode(target, change))
    return backup


def _backup(target: Path, change: FileChange, now_us: int) -> Path | None:
    """A copy beside the file. What is wholly ours needs none, nor what is removed because only ours was in it."""
    if change.before is None or change.after is None or change.is_ours:
        return None
    stamp = datetime.fromtimestamp(now_us // 1_000_000, tz=UTC).strftime("%Y%m%dT%H%M%SZ")
    backup = target.with_name(f"{target.name}{BACKUP_WORD}{stamp}")
    count = 1
    while backup.exists():
        backup = target.with_name(f"{target.name}{BACKUP_WORD}{stamp}-{count}")
        count += 1
    _replace(backup, change.before.encode("utf-8"), target.stat().st_mode & 0o777)
    return backup


def _mode(target: Path, change: FileChange) -> int:
    if change.is_ours or not target.exists():
        return change.mode
    mode = target.stat().st_mode & 0o777
    return mode & 0o700 if change.holds_token else mode


def _replace(target: Path, data: bytes, mode: int) -> None:
    tmp = target.with_name(f".{target.name[:60]}.{secrets.token_hex(4)}.tmp")
    descriptor = os.open(tmp, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(descriptor, mode)
            os.fsync(descriptor)
        tmp.replace(target)
    except OSError:
        tmp.unlink(missing_ok=True)
        raise
    sync_directory(target.parent)
