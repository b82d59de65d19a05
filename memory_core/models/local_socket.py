"""The address of the process that runs local models: a socket file in the run directory, however long its path is."""

from __future__ import annotations

import os
import socket
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from memory_core.errors import Invalid

#: sun_path holds 108 bytes on Linux and 104 on macOS, with the zero at its end.
_PATH_MAX_BYTES: Final = 100


@contextmanager
def address(place: Path) -> Generator[str]:
    """A name for the socket that is short enough. Raises `Invalid` where this system has none."""
    if len(os.fsencode(place)) <= _PATH_MAX_BYTES:
        yield str(place)
        return
    if not Path("/proc/self/fd").is_dir():
        raise Invalid(f"the path {place} is too long for a socket; choose a shorter data_dir")
    directory = os.open(place.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{directory}/{place.name}"
    finally:
        os.close(directory)


def connected(place: Path, seconds: float) -> socket.socket:
    """Raises `OSError` where nobody listens."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(max(seconds, 0.001))
    try:
        with address(place) as name:
            connection.connect(name)
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def bound(place: Path) -> Generator[socket.socket]:
    """Listening there in place of whoever did before."""
    place.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        mask = os.umask(0o177)
        try:
            with address(place) as name:
                listener.bind(name)
        finally:
            os.umask(mask)
        listener.listen(32)
        yield listener
    finally:
        listener.close()
