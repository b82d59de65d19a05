"""How fast the writer empties its queue, against a loop of the raw driver over the same statements."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memory_core import limits
from memory_core.clock import SystemClock
from memory_core.domain.command import Envelope
from memory_core.ids import IdSource
from memory_core.store.install import read_install
from memory_core.store.transaction import Transaction
from memory_core.store.writing import WriterConnection
from scripts.bench_parts import verify
from scripts.bench_parts.commands import envelopes_of
from scripts.bench_parts.figures import Result, at_least
from scripts.bench_parts.parts import Bench, parts
from scripts.bench_parts.recording import Recorder, replay
from scripts.bench_parts.stack import Stack
from scripts.bench_parts.texts import Events
from scripts.bench_parts.verify import Sent
from tests.e2e.running import wait_until
from tests.store.databases import new_writer
from workers.writer.engine import Engine
from workers.writer.mark import MarkFile

EVENT_BYTES = 1_000
RATIO = at_least(0.4)
RATE = at_least(3_000)


@dataclass(kw_only=True)
class _Databases:
    """New ones with the whole schema, each used once."""

    directory: Path
    made: int = 0

    def next(self) -> Path:
        self.made += 1
        directory = self.directory / f"database-{self.made}"
        directory.mkdir()
        new_writer(directory, SystemClock()).close()
        return directory / "memory.sqlite"


@parts.add("drain")
def drain(bench: Bench) -> Result:
    """Events that wait in the stream, applied by the real writer with full-text index and FULL."""
    result, sizes = Result(part="drain"), bench.sizes
    writer, engine, raw = [], [], []
    with bench.stack() as stack:
        databases = _Databases(directory=bench.directory)
        for number in range(sizes.rounds):
            bench.say(f"drain: round {number + 1} of {sizes.rounds}")
            run = Events(os.urandom(3).hex(), EVENT_BYTES)
            envelopes = envelopes_of(run, range(sizes.drain_events))
            writer.append(_writer_rate(stack, envelopes))
            stack.sent.append(Sent(events=run, count=sizes.drain_events))
            calls = _recorded(databases.next(), envelopes)
            raw.append(_raw_rate(databases.next(), calls, len(envelopes)))
            path = databases.next()
            engine.append(_engine_rate(path, envelopes))
            result.complaints += verify.events(path, stack.sent[-1:])
        stack.verify(result)
    result.verified.append("the same of what the engine alone stored")
    result.add_median("writer: stream, FTS, FULL, deletion", writer, "events/s", RATE)
    result.add_median("engine alone", engine, "events/s")
    result.add_median("raw driver, the same statements", raw, "events/s")
    result.add_median("ratio of the writer", [w / r for w, r in zip(writer, raw, strict=True)], "", RATIO)
    result.add_median("ratio of the engine", [e / r for e, r in zip(engine, raw, strict=True)], "", RATIO)
    return result


def _writer_rate(stack: Stack, envelopes: Sequence[Envelope]) -> float:
    """The real writer is held while its queue fills, then let loose. The clock stops when the queue is empty."""
    with stack.broker() as (client, keys):
        with stack.held("writer"):
            stack.append(envelopes)
            began = time.monotonic()
        wait_until(lambda: not client.xlen(keys.commands), seconds=120, saying="the writer queue is empty")
        return len(envelopes) / (time.monotonic() - began)


def _engine(path: Path, ids: IdSource) -> Engine:
    connection = WriterConnection(path)
    install = read_install(Transaction(connection.raw, ids))
    assert install is not None
    mark = MarkFile(path.with_name("writer.inprogress"))
    return Engine(connection, epoch=install.epoch, ids=ids, clock=SystemClock(), mark=mark)


def _apply(engine: Engine, envelopes: Sequence[Envelope]) -> None:
    """In batches as the writer's loop makes them, with its rule for checkpoints."""
    at = 0
    while at < len(envelopes):
        report = engine.apply_batch(envelopes[at : at + limits.BATCH_COMMANDS_MAX])
        assert report.stopped is None, report.stopped
        assert not report.was_careful, "a command failed"
        at += len(report.outcomes)
        _keep_small(engine.connection)


def _keep_small(connection: WriterConnection) -> None:
    if connection.wal_bytes > limits.WAL_CHECKPOINT_BYTES:
        connection.checkpoint()


def _engine_rate(path: Path, envelopes: Sequence[Envelope]) -> float:
    engine = _engine(path, IdSource(SystemClock()))
    began = time.monotonic()
    _apply(engine, envelopes)
    took = time.monotonic() - began
    engine.connection.close()
    return len(envelopes) / took


def _recorded(path: Path, envelopes: Sequence[Envelope]) -> list[Any]:
    engine = _engine(path, IdSource(SystemClock()))
    recorder = Recorder(engine.connection.raw)
    engine.connection.raw = recorder
    _apply(engine, envelopes)
    engine.connection.close()
    return recorder.calls


def _raw_rate(path: Path, calls: Sequence[Any], events: int) -> float:
    connection = WriterConnection(path)
    began = time.monotonic()
    replay(connection.raw, calls)
    took = time.monotonic() - began
    stored = connection.raw.execute("select count(*) from observations").fetchone()[0]
    assert stored == events, f"the raw loop stored {stored} of {events}"
    connection.close()
    return events / took
