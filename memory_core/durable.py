"""What makes a file's name outlast a power cut; its content is synced by whoever writes it."""

from __future__ import annotations

import os


def sync_directory(directory: str | os.PathLike[str]) -> None:
    """The names in it, new, gone or changed, are on the disk when this returns. Raises `OSError`."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
