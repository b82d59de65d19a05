"""How much waits in the writer queue, for status and metrics."""

from __future__ import annotations

from dataclasses import dataclass

from redis import Redis
from redis.exceptions import RedisError

from memory_core.clock import MICROSECONDS
from memory_core.errors import Unavailable
from workers.queue.keys import Keys


@dataclass(frozen=True, kw_only=True)
class Backlog:
    entries: int
    bytes: int
    oldest_age_seconds: float


def backlog(client: Redis, keys: Keys) -> Backlog:
    """Four cheap questions in one round trip; `Unavailable` when the broker does not answer."""
    try:
        pipeline = client.pipeline(transaction=False)
        pipeline.xlen(keys.commands).get(keys.bytes).get(keys.oldest).time()  # pyright: ignore[reportAttributeAccessIssue]
        entries, waiting_bytes, oldest_ms, (seconds, microseconds) = pipeline.execute()
    except RedisError as error:
        raise Unavailable(f"the broker did not answer: {error}") from error
    age = seconds + microseconds / MICROSECONDS - int(oldest_ms) / 1000 if entries and oldest_ms else 0.0
    return Backlog(
        entries=entries,
        bytes=int(waiting_bytes or 0) if entries else 0,
        oldest_age_seconds=max(0.0, age),
    )
