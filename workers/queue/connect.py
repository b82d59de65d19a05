"""Connections to the broker: who waits how long. No client here retries; each caller knows what a failure means."""

from __future__ import annotations

from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from memory_core import limits


def admission_client(url: str) -> Redis:
    """For appends: 100 ms to connect, 500 ms for an answer. Safe to make before a fork; connects when first used."""
    return _client(url, limits.BROKER_CONNECT_SECONDS, limits.BROKER_APPEND_SECONDS)


def writer_client(url: str, *, block_seconds: float = limits.DRAIN_SECONDS_MAX) -> Redis:
    """For the writer: reads may block for `block_seconds`."""
    return _client(url, limits.BROKER_ANSWER_SECONDS, block_seconds + limits.BROKER_ANSWER_SECONDS)


def subscriber_client(url: str) -> Redis:
    """For the one subscription of a web process."""
    return _client(url, limits.BROKER_CONNECT_SECONDS, limits.BROKER_ANSWER_SECONDS)


def _client(url: str, connect_seconds: float, answer_seconds: float) -> Redis:
    # RESP2 and no library name: without a password a new connection says nothing before its first command,
    # so a broker that is stopped answers no request differently from a pooled connection.
    return Redis.from_url(
        url,
        socket_connect_timeout=connect_seconds,
        socket_timeout=answer_seconds,
        retry=Retry(NoBackoff(), 0),
        protocol=2,
        driver_info=None,
    )
