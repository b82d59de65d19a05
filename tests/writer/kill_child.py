"""A writer without a broker, to be killed: applies the commands of a list of fixed length, and notes after each
commit how far it came (the file `position` stands for the stream's deletions)."""

from __future__ import annotations

import sys
from pathlib import Path

from memory_core import commands
from memory_core.clock import SystemClock
from memory_core.ids import IdSource
from memory_core.store.writing import WriterConnection
from tests.writer.engines import NOTE, envelope
from workers.writer.engine import Engine
from workers.writer.mark import MarkFile

BATCH = 40


def say(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def main(directory: Path, count: int, mutant: str) -> None:
    commands.registry.add(NOTE.name)(NOTE)
    if mutant == "no_id_table":
        from tests.writer.mutants import no_id_table

        no_id_table.load()
    clock = SystemClock()
    engine = Engine(
        WriterConnection(directory / "memory.sqlite"),
        epoch=1,
        ids=IdSource(clock),
        clock=clock,
        mark=MarkFile(directory / "writer.inprogress"),
        pause=lambda _seconds: None,
    )
    position = directory / "position"
    at = int(position.read_text() or 0) if position.exists() else 0
    until = int(engine.mark.last.until or 0)
    while at < count:
        batch = [envelope(f"{n}", key=f"k{n}") for n in range(at, min(at + BATCH, count))]
        if mutant == "delete_first":
            position.write_text(str(at + len(batch)))
        say("begin", at)
        report = engine.apply_batch(batch, until=str(at + len(batch)), careful=at < until)
        say("commit", at)
        assert len(report.outcomes) == len(batch) or report.outcomes
        at += len(report.outcomes)
        aside = directory / "position.new"
        aside.write_text(str(at))
        aside.replace(position)
        say("end", at)
    say("done")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
