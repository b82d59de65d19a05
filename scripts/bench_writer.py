"""The writer's engine against a bare driver loop over the very same statements: events per second, ratio, memory.

    python scripts/bench_writer.py [--events 20000] [--batch 500] [--careful 500]

Each event is a hook's observation of about 1 KB, with full text, `synchronous=FULL`, on the disk of the temporary
directory. Afterwards every stored row is counted and the full text is checked against the table.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from memory_core import bootstrap, commands
from memory_core.clock import SystemClock
from memory_core.commands.capture import RecordObservation
from memory_core.domain.command import Envelope
from memory_core.domain.event import EventKind, HookEvent, Speaker, ToolCall
from memory_core.ids import IdSource
from memory_core.store.database import create_database
from memory_core.store.install import Permission, establish
from memory_core.store.migrate import migrate
from memory_core.store.transaction import Transaction
from memory_core.store.writing import WriterConnection
from workers.writer.engine import Engine
from workers.writer.mark import MarkFile
from workers.writer.room import Ballast, Room

WORDS = [
    f"{a}{b}{c}"
    for a in ("ba", "co", "di", "fu", "le")
    for b in ("mi", "nar", "pol", "tes")
    for c in ("a", "or", "um", "ix")
]


def envelopes(count: int) -> list[Envelope]:
    chance, ids = random.Random(1), IdSource(SystemClock())
    made: list[Envelope] = []
    for n in range(count):
        words = " ".join(chance.choices(WORDS, k=130))
        event = HookEvent(
            client="claude-code",
            source_event="PostToolUse",
            kind=EventKind.POST_TOOL_USE,
            session_key=f"session-{n // 400}",
            speaker=Speaker.TOOL,
            cwd="/srv/repo",
            title="ran a command",
            body=words,
            tool=ToolCall(name="Bash", command=f"make {words[:40]}", call_id=f"call-{n}", result=words[:200]),
            unique_id=f"call-{n}",
        )
        body = commands.encode(RecordObservation(event=event, source="claude-code"))
        made.append(
            Envelope(
                id=ids.new(),
                name="record_observation",
                version=1,
                body=body,
                body_hash=body[:16],
                principal="owner",
                token_scope="capture",
                recorded_at=SystemClock().now_us(),
            )
        )
    return made


class Recorder:
    """Stands between the engine and its connection, and writes down what is executed."""

    def __init__(self, raw: Any) -> None:
        self._raw = raw
        self.statements: list[tuple[str, Any]] = []

    def execute(self, sql: str, parameters: Any = ()) -> Any:
        self.statements.append((sql, parameters))
        return self._raw.execute(sql, parameters)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._raw, name)


class Bench:
    def __init__(self, directory: Path, template: Path) -> None:
        directory.mkdir()
        path = directory / "memory.sqlite"
        shutil.copy(template, path)
        clock = SystemClock()
        ids = IdSource(clock)
        self.connection = WriterConnection(path)
        self.connection.begin()
        tx = Transaction(self.connection.raw, ids)
        tx.now = clock.now_us()
        establish(tx, path, "machine", Permission())
        self.connection.commit()
        self.room = Room(self.connection, Ballast(directory / "ballast", size_bytes=4096, reserve_bytes=0))
        mark = MarkFile(directory / "mark")
        self.engine = Engine(self.connection, epoch=1, ids=ids, clock=clock, mark=mark, pause=lambda _: None)

    def drain(self, sent: list[Envelope], batch: int, *, careful: bool = False) -> tuple[float, float]:
        """Seconds in all, and of the longest batch."""
        began, longest, at = time.monotonic(), 0.0, 0
        while at < len(sent):
            report = self.engine.apply_batch(sent[at : at + batch], until=str(at), careful=careful)
            if report.stopped or not report.outcomes or report.was_careful != careful:
                raise SystemExit(f"a batch did not go through: {report}")
            at += len(report.outcomes)
            longest = max(longest, report.seconds)
            self.room.after_batch()
        return time.monotonic() - began, longest

    def replay(self, statements: list[tuple[str, Any]], events: int, batch: int) -> float:
        """The same statements by the bare driver, in transactions of as many events."""
        raw = self.connection.raw
        per_batch = len(statements) * batch // events
        began = time.monotonic()
        for at in range(0, len(statements), per_batch):
            raw.execute("BEGIN IMMEDIATE")
            for sql, parameters in statements[at : at + per_batch]:
                raw.execute(sql, parameters).fetchone()
            raw.execute("COMMIT")
            self.room.after_batch()
        return time.monotonic() - began

    def verify(self, events: int) -> None:
        raw = self.connection.raw
        stored = raw.execute("SELECT count(*) FROM observations").fetchone()[0]
        raw.execute("INSERT INTO observations_fts(observations_fts, rank) VALUES ('integrity-check', 1)")
        if stored != events or raw.execute("PRAGMA integrity_check").fetchone()[0] != "ok":
            raise SystemExit(f"{stored} of {events} rows were stored")


def memory_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--events", type=int, default=20_000)
    options.add_argument("--batch", type=int, default=500)
    options.add_argument("--careful", type=int, default=500)
    options.add_argument("--rounds", type=int, default=3)
    wanted = options.parse_args()
    bootstrap.load_commands()
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        template = directory / "template.sqlite"
        create_database(template)
        migrate(template, directory, SystemClock())
        sent = envelopes(wanted.events)

        recorded = Bench(directory / "recorded", template)
        recorder = Recorder(recorded.connection.raw)
        recorded.connection.raw = recorder
        recorded.drain(sent, wanted.batch)
        recorder.statements = [
            s for s in recorder.statements if not s[0].startswith(("BEGIN", "COMMIT", "PRAGMA"))
        ]

        rates: list[tuple[float, float, float]] = []
        for number in range(wanted.rounds):
            ours, bare = (
                Bench(directory / f"ours{number}", template),
                Bench(directory / f"bare{number}", template),
            )
            seconds, longest = ours.drain(sent, wanted.batch)
            alone = bare.replay(recorder.statements, wanted.events, wanted.batch)
            ours.verify(wanted.events)
            bare.verify(wanted.events)
            rates.append((wanted.events / seconds, wanted.events / alone, longest))
        careful = Bench(directory / "careful", template)
        slow, _ = careful.drain(sent[: wanted.careful], wanted.careful, careful=True)
    rates.sort()
    ours_rate, bare_rate, longest = rates[len(rates) // 2]
    figures = {
        "events": wanted.events,
        "batch": wanted.batch,
        "statements_per_event": round(len(recorder.statements) / wanted.events, 2),
        "engine_events_per_second": round(ours_rate),
        "bare_driver_events_per_second": round(bare_rate),
        "ratio": round(ours_rate / bare_rate, 2),
        "longest_batch_ms": round(longest * 1000, 1),
        "careful_events_per_second": round(wanted.careful / slow),
        "max_rss_mib": round(memory_mib(), 1),
    }
    sys.stdout.write(json.dumps(figures, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
