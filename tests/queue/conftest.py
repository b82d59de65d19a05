from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from memory_core.clock import FakeClock, SystemClock
from memory_core.config import Settings
from memory_core.domain.command import Envelope
from memory_core.ids import IdSource
from tests.queue.broker import Broker
from workers.queue.admission import CommandQueue
from workers.queue.connect import admission_client, writer_client
from workers.queue.disk import DiskGauge
from workers.queue.incoming import Incoming
from workers.queue.keys import Keys
from workers.queue.reader import StreamReader

_ids = IdSource(FakeClock())
GIB = 1024**3


def make_envelope(body: bytes = b'{"a":1}', **overrides: Any) -> Envelope:
    values: dict[str, Any] = {
        "id": _ids.new(),
        "name": "record_observation",
        "version": 1,
        "body": body,
        "body_hash": b"h" * 16,
        "principal": "ann",
        "token_scope": "hook",
        "recorded_at": 1_780_000_000_000_000,
    }
    return Envelope(**{**values, **overrides})


def disk_of(free_bytes: int, total_bytes: int = 100 * GIB) -> Callable[[Path], os.statvfs_result]:
    return lambda _: os.statvfs_result(
        (4096, 4096, total_bytes // 4096, free_bytes // 4096, free_bytes // 4096, 0, 0, 0, 0, 255)
    )


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    broker = Broker(tmp_path_factory.mktemp("broker"))
    broker.start()
    yield broker
    broker.close()


@pytest.fixture
def keys() -> Keys:
    return Keys(secrets.token_hex(8))


@pytest.fixture
def end_factory(broker: Broker, keys: Keys, tmp_path: Path) -> Callable[..., SimpleNamespace]:
    """Makes both ends of a queue: the gate's (`queue`) and the writer's (`reader`)."""

    def make(keys: Keys = keys, statvfs: Any = None, clock: Any = None) -> SimpleNamespace:
        clock = clock or SystemClock()
        incoming = Incoming(tmp_path / keys.install / "incoming")
        disk = DiskGauge(Settings(data_dir=tmp_path), clock, statvfs=statvfs or disk_of(50 * GIB))
        admission, writer = admission_client(broker.url), writer_client(broker.url)
        return SimpleNamespace(
            keys=keys,
            client=writer,
            incoming=incoming,
            gate=admission,
            queue=CommandQueue(admission, keys, clock, disk, incoming=incoming),
            reader=StreamReader(writer, keys, incoming=incoming),
        )

    return make


@pytest.fixture
def ends(end_factory: Callable[..., SimpleNamespace]) -> SimpleNamespace:
    return end_factory()
