"""Small disks of our own: one that fills, and one whose power can be cut. Both need root and mounts."""

from __future__ import annotations

import fcntl
import os
import struct
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

#: The "going down" ioctl of ext4 and XFS; flag 2: neither data nor journal reach the device any more.
_GOING_DOWN = 0x8004587D
_NO_LOG_FLUSH = 2


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (
        f"this test needs to mount a disk of its own (root, and loop devices for the power cut); "
        f"{' '.join(command)} said: {done.stderr.strip()}"
    )


@contextmanager
def small_disk(folder: Path, mib: int) -> Generator[Path]:
    """A disk in memory with so much room."""
    folder.mkdir(parents=True, exist_ok=True)
    _run("mount", "-t", "tmpfs", "-o", f"size={mib}m,mode=700", "tmpfs", str(folder))
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=False, capture_output=True)


class PowerDisk:
    """A file as a disk with ext4 on it. `cut` is a power failure: only what was synced is there afterwards."""

    def __init__(self, image: Path, folder: Path, mib: int = 256) -> None:
        self.folder = folder
        self._image = image
        with image.open("wb") as file:
            file.truncate(mib * 1024 * 1024)
        _run("mkfs.ext4", "-q", "-F", str(image))
        folder.mkdir(parents=True, exist_ok=True)

    def __enter__(self) -> PowerDisk:
        self.mount()
        return self

    def __exit__(self, *exc: object) -> None:
        subprocess.run(["umount", "-l", str(self.folder)], check=False, capture_output=True)
        self._image.unlink(missing_ok=True)

    def mount(self) -> None:
        _run("mount", "-o", "loop", str(self._image), str(self.folder))

    def unmount(self) -> None:
        """What is mounted next is a copy. A container that was started meanwhile has a copy of every mount and keeps the
        dead file system alive; a mount of the same image would get that one back.
        """
        # A process that is ending may hold it: a git of the writer's is known to nobody and ends by itself.
        end = time.monotonic() + 10
        while subprocess.run(["umount", str(self.folder)], check=False, capture_output=True).returncode:
            if time.monotonic() > end:
                _run("umount", str(self.folder))
            time.sleep(0.05)
        copy = self._image.with_name(f"{self._image.name}+")
        _run("cp", "--sparse=always", str(self._image), str(copy))
        self._image.unlink()
        self._image = copy

    def cut(self) -> None:
        """The power goes while this runs. A sync that was under way may still be told that it succeeded, up to some
        milliseconds after the return, although nothing of it is kept: ext4 does not mark a file whose last block could not be
        entered. So what is answered from the call on was heard by nobody; see `Ledger.deaf`.
        """
        descriptor = os.open(self.folder, os.O_RDONLY)
        try:
            fcntl.ioctl(descriptor, _GOING_DOWN, struct.pack("I", _NO_LOG_FLUSH))
        finally:
            os.close(descriptor)


class Filler:
    """Takes the room of a disk away and gives it back."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "filler"

    def fill(self, *, leave_bytes: int) -> None:
        """All but `leave_bytes` of it."""
        disk = os.statvfs(self._path.parent)
        room = disk.f_bavail * disk.f_frsize - leave_bytes
        with self._path.open("ab") as file:
            if room > 0:
                os.posix_fallocate(file.fileno(), file.tell(), room)

    def give_back(self) -> None:
        self._path.unlink(missing_ok=True)
