"""Replies: the writer names the ids that it committed, and waiting requests look into the database."""

from __future__ import annotations

import logging
import os
import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from redis import Redis
from redis.exceptions import RedisError

from memory_core.clock import Clock
from memory_core.errors import Unavailable
from workers.queue.keys import Keys

logger = logging.getLogger(__name__)

ID_BYTES = 16
_LISTEN_SECONDS = 1.0
#: Looks without any answer, pings included, after which the connection counts as dead.
_SILENT_LOOKS_MAX = 3
_RETRY_SECONDS = 0.05


def publish(client: Redis, keys: Keys, ids: Sequence[bytes]) -> None:
    """Tell all web processes that these commands were committed (or found committed): one message.

    Raises `Unavailable`; the waiting requests then find out at their deadline.
    """
    if not ids:
        return
    try:
        client.publish(keys.replies, b"".join(ids))
    except RedisError as error:
        raise Unavailable(f"the broker did not take a reply: {error}") from error


class Waiter:
    """One request that waits for its commands. Use it as a context manager, so that it is forgotten."""

    def __init__(self, replies: Replies, ids: Iterable[bytes], clock: Clock) -> None:
        self._replies = replies
        self._clock = clock
        self._ids = set(ids)
        self._woken = threading.Event()

    def __enter__(self) -> Waiter:
        return self

    def __exit__(self, *_: object) -> None:
        self._replies.forget(self)

    def wait(self, deadline: float) -> bool:
        """Wait until all ids were named, or a new subscription may have missed some, or `deadline`
        (of the clock's `monotonic`). True when woken: look into the database, and wait again for what is
        not there. At the deadline (False) look as well.
        """
        woken = self._woken.wait(max(0.0, deadline - self._clock.monotonic()))
        # Cleared before the caller looks: what comes after its look wakes it again.
        self._woken.clear()
        return woken

    def expect_only(self, ids: Iterable[bytes]) -> None:
        """Wait for fewer ids, after an admission that kept only some."""
        with self._replies.lock:
            self._ids.intersection_update(ids)
            if not self._ids:
                self._woken.set()

    def hear(self, ids: set[bytes]) -> None:
        if self._ids and not self._ids.isdisjoint(ids):
            self._ids -= ids
            if not self._ids:
                self._woken.set()

    def wake(self) -> None:
        self._woken.set()


class Replies:
    """The one subscription of a web process, on one thread. Safe across forks: a child subscribes anew."""

    def __init__(self, client_factory: Callable[[], Redis], keys: Keys, clock: Clock) -> None:
        self._client_factory = client_factory
        self._channel = keys.replies
        self._clock = clock
        self._reset()
        reset = weakref.WeakMethod(self._reset)
        os.register_at_fork(after_in_child=lambda: (bound := reset()) and bound())

    def start(self) -> None:
        """Begin to subscribe, on the thread that listens; a second call begins nothing."""
        with self.lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="replies", daemon=True)
                self._thread.start()

    def ensure_subscribed(self, timeout: float) -> None:
        """Return when subscribed; `Unavailable` after `timeout` seconds. Before any append that is waited for."""
        self.start()
        if not self._subscribed.wait(timeout):
            raise Unavailable("replies of the writer cannot be heard now")

    @property
    def is_subscribed(self) -> bool:
        return self._subscribed.is_set()

    def expect(self, ids: Iterable[bytes]) -> Waiter:
        """A waiter for these ids; made before they are appended."""
        waiter = Waiter(self, ids, self._clock)
        with self.lock:
            self._waiters.add(waiter)
        return waiter

    def forget(self, waiter: Waiter) -> None:
        with self.lock:
            self._waiters.discard(waiter)

    def close(self) -> None:
        """Ask the thread to end. It looks about once a second, and is not waited for: what it still hears is nobody's."""
        self._closing.set()

    def _run(self) -> None:
        closing = self._closing
        while not closing.is_set():
            try:
                with self._client_factory() as client, client.pubsub() as subscription:
                    self._listen(subscription)
            except (RedisError, OSError) as error:
                if self._subscribed.is_set() and not closing.is_set():
                    logger.warning("replies are not heard: %s", error, extra={"action": "replies_lost"})
            self._subscribed.clear()
            closing.wait(_RETRY_SECONDS)

    def _listen(self, subscription: Any) -> None:
        subscription.subscribe(self._channel)
        silent_looks = 0
        while not self._closing.is_set():
            message = subscription.get_message(timeout=_LISTEN_SECONDS)
            if message is None:
                # A stopped broker or a cut network says nothing at all: ask, so that silence means something.
                silent_looks += 1
                if silent_looks > _SILENT_LOOKS_MAX:
                    raise OSError("the broker does not answer")
                subscription.ping()
                continue
            silent_looks = 0
            if message["type"] == "subscribe":
                self._on_subscribed()
            elif message["type"] == "message":
                self._on_ids(message["data"])

    def _on_subscribed(self) -> None:
        with self.lock:
            for waiter in self._waiters:
                waiter.wake()
        self._subscribed.set()

    def _on_ids(self, data: bytes) -> None:
        ids = {data[at : at + ID_BYTES] for at in range(0, len(data), ID_BYTES)}
        with self.lock:
            for waiter in self._waiters:
                waiter.hear(ids)

    def _reset(self) -> None:
        """A forked child has no thread, no subscription, and no request of its parent's."""
        self.lock = threading.Lock()
        self._subscribed = threading.Event()
        self._closing = threading.Event()
        self._waiters: set[Waiter] = set()
        self._thread: threading.Thread | None = None
