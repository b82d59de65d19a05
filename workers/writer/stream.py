"""The writer's hold on the broker: the stream, the owner record, replies and doorbells."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence

from redis import Redis

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
        epoch: int,
        ring: Callable[[str], None],
    ) -> None:
        self._client = client
        self._keys = keys
        self._reader = reader
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
        """Ring the pools from threads of their own; a lost ring is made up for by beat."""
        for queue in queues:
            if queue not in self._doorbells:
                self._doorbells[queue] = Doorbell(lambda name=queue: self._ring(name))
            self._doorbells[queue].ring()
