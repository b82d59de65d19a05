"""The writer's hold on the broker: the stream, the owner record, replies and doorbells."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence

from redis import Redis

from memory_core import limits
from memory_core.clock import Clock
from workers.queue.disk import DiskGauge
from workers.queue.doorbell import Doorbell
from workers.queue.keys import Keys
from workers.queue.owner import claim_owner
from workers.queue.reader import Entry, StreamReader
from workers.queue.replies import publish


class BrokerQueue:
    """Everything may raise `Unavailable`; `claim` and `delete` raise `NotAlone` when another writer owns the stream."""

    def __init__(
        self,
        client: Redis,
        keys: Keys,
        reader: StreamReader,
        *,
        disk: DiskGauge,
        clock: Clock,
        epoch: int,
        ring: Callable[[str], None],
    ) -> None:
        self._client = client
        self._keys = keys
        self._reader = reader
        self._disk = disk
        self._clock = clock
        self._tidied_at = float("-inf")
        self._epoch = epoch
        #: Tells two writers of one epoch apart: a copied database under a lock that lies.
        self._token = secrets.token_hex(8)
        self._ring = ring
        self._doorbells: dict[str, Doorbell] = {}

    def claim(self) -> None:
        claim_owner(self._client, self._keys, self._epoch, self._token)

    def read(self, count: int, block_ms: int) -> list[Entry]:
        return self._reader.read(count, block_ms)

    def forget_tail(self) -> None:
        self._reader.forget_tail()

    def delete(self, entries: Sequence[Entry]) -> None:
        if entries:
            self._reader.delete(entries, self._epoch, self._token)

    def publish(self, ids: Sequence[bytes]) -> None:
        publish(self._client, self._keys, ids)

    def ring(self, queues: set[str]) -> None:
        """Ring the pools from threads of their own; a lost ring is made up for by beat. Silent while the disk is full:
        a broker that cannot sync what it is told ends itself."""
        if not self._disk.backlog_room_bytes():
            return
        for queue in queues:
            if queue not in self._doorbells:
                self._doorbells[queue] = Doorbell(lambda name=queue: self._ring(name))
            self._doorbells[queue].ring()

    def tidy(self) -> None:
        """When nothing waits: bodies that no entry names go, and on a disk that gets full the broker's log is cut."""
        now = self._clock.monotonic()
        is_short = not self._disk.backlog_room_bytes()
        pause = limits.SHORT_DISK_TIDY_SECONDS if is_short else limits.SWEEP_INCOMING_SECONDS
        if now - self._tidied_at < pause:
            return
        self._tidied_at = now
        if is_short:
            self._reader.rewrite_log()
        self._reader.sweep_incoming(self._clock.now_us())
