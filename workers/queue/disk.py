"""How much backlog the disk of the data directory can bear."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from memory_core import limits
from memory_core.clock import Clock
from memory_core.config import Settings
from memory_core.errors import Unavailable


class DiskGauge:
    """Measures free space, at most each 250 ms."""

    def __init__(
        self,
        settings: Settings,
        clock: Clock,
        *,
        directory: Path | None = None,
        statvfs: Callable[[Path], os.statvfs_result] = os.statvfs,
    ) -> None:
        """`directory`: what to measure where the data directory is not here."""
        self._directory = directory or settings.data_dir
        self._wal = settings.database.with_name(settings.database.name + "-wal")
        self._min_bytes = settings.free_disk_min_bytes
        self._clock = clock
        self._statvfs = statvfs
        self._measured: tuple[float, int] = (float("-inf"), 0)

    def backlog_room_bytes(self) -> int:
        """How many bytes may wait in all: (free - WAL - reserve) / 5. 0 means that nobody may write to the
        broker at all: with `appendfsync always` it exits when its disk is full. `Unavailable` when the
        directory cannot be measured.
        """
        measured_at, room = self._measured
        now = self._clock.monotonic()
        if now - measured_at >= limits.DISK_CACHE_SECONDS:
            room = self._measure()
            self._measured = (now, room)
        return room

    def reserve_bytes(self, total_bytes: int) -> int:
        """What stays free on a disk of that size."""
        return self._min_bytes or max(
            limits.FREE_DISK_MIN_BYTES, int(total_bytes * limits.FREE_DISK_MIN_SHARE)
        )

    def _measure(self) -> int:
        try:
            disk = self._statvfs(self._directory)
            wal_bytes = self._wal.stat().st_size if self._wal.exists() else 0
        except OSError as error:
            raise Unavailable(f"the data directory cannot be measured: {error.strerror}") from error
        free = disk.f_bavail * disk.f_frsize
        reserve = self.reserve_bytes(disk.f_blocks * disk.f_frsize)
        return max(0, (free - wal_bytes - reserve) // limits.DISK_BYTES_PER_BACKLOG_BYTE)
