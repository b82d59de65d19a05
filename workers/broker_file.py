"""The broker's append-only file: where it lies, and what a power cut left at its end. Standard library only."""

from __future__ import annotations

import logging
import os
from pathlib import Path

from memory_core import limits
from memory_core.durable import sync_directory

logger = logging.getLogger(__name__)

_DIRECTORY = "appendonlydir"
_MANIFEST = "appendonly.aof.manifest"


def lay_out_file(broker_dir: Path) -> None:
    """Make the directory of the broker's files, durably, and make what lies there loadable. Raises `OSError`.

    The broker syncs its files and their names, but not the name of the directory that they lie in.
    """
    directory = broker_dir / _DIRECTORY
    directory.mkdir(mode=0o700, exist_ok=True)
    sync_directory(broker_dir)
    sync_directory(broker_dir.parent)
    path = _appended_file(directory)
    cut = _cut_zeros(path) if path is not None else 0
    if cut:
        logger.warning(
            "%d zero bytes at the end of the broker's file were taken off: the power went while it was written",
            cut,
            extra={"action": "broker_file_cut", "bytes": cut},
        )


def _appended_file(directory: Path) -> Path | None:
    """The file that the broker appends to: the last one of type `i` in its manifest."""
    try:
        lines = (directory / _MANIFEST).read_text(encoding="ascii").splitlines()
    except (FileNotFoundError, UnicodeDecodeError):
        return None
    # file appendonly.aof.1.incr.aof seq 1 type i
    fields = [line.split() for line in lines]
    names = [field[1] for field in fields if len(field) >= 6 and field[0] == "file" and field[5] == "i"]
    path = directory / names[-1] if names else None
    return path if path is not None and path.is_file() else None


def _cut_zeros(path: Path) -> int:
    """Take zero bytes off the end of the file; how many.

    A file system may have entered the new length of a file when the power went and not what was to stand there. The broker forgives
    a file that ends inside an entry and refuses one that ends in zeros. A whole entry ends with a line's end, so
    nothing that was synced is touched; of a torn one it does not matter how much is left.
    """
    with path.open("r+b") as file:
        length = end = file.seek(0, os.SEEK_END)
        while end:
            start = max(0, end - limits.MIB)
            file.seek(start)
            kept = len(file.read(end - start).rstrip(b"\0"))
            end = start + kept
            if kept:
                break
        if end < length:
            file.truncate(end)
            os.fsync(file.fileno())
    return length - end
