"""Every row that a measurement led to, looked at afterwards: there once, whole, indexed, and nothing besides."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memory_core.store.database import open_reader
from scripts.bench_parts.texts import Events
from tests.e2e.oracle import file_complaints

#: More complaints of one kind say no more.
_SHOWN = 5
_MARKER_CHARS = len("evt000000x00000000")


@dataclass(frozen=True, kw_only=True)
class Sent:
    """A run of events: those below `count` were accepted, but for `others`, of which nothing is known."""

    events: Events
    count: int
    others: Collection[int] = ()


def events(database: Path, runs: Collection[Sent]) -> list[str]:
    """What is wrong with the stored events of these runs; reads every row of the database."""
    expected = {sent.events.run: sent for sent in runs}
    seen: dict[str, set[int]] = {run: set() for run in expected}
    found: list[str] = []
    connection = open_reader(database)
    try:
        rows = 0
        for row in connection.execute("select kind, body, result, command, tool_call from observations"):
            rows += 1
            complaint = _event(row, expected, seen)
            if complaint:
                found.append(complaint)
        found += _missing(expected, seen)
        found += _books(connection, rows)
    finally:
        connection.close()
    return _few(found)


def _event(row: Any, expected: dict[str, Sent], seen: dict[str, set[int]]) -> str:
    text = row["body"] if row["kind"] == "user-prompt" else row["result"] or ""
    run, number = text[3:9], text[10:_MARKER_CHARS]
    sent = expected.get(run)
    if sent is None or not number.isdigit():
        return f"a row that nobody sent: {text[:40]!r}"
    which = int(number)
    if which in seen[run]:
        return f"event {sent.events.marker(which)} is there twice"
    seen[run].add(which)
    # A tool's answer is kept as its adapter wrote it: the text may stand in more than itself.
    if sent.events.text(which) not in text:
        return f"event {sent.events.marker(which)} was changed"
    return ""


def _missing(expected: dict[str, Sent], seen: dict[str, set[int]]) -> list[str]:
    found: list[str] = []
    for run, sent in expected.items():
        lost = set(range(sent.count)) - seen[run] - set(sent.others)
        found += [
            f"event {sent.events.marker(number)} was accepted and is not there" for number in sorted(lost)
        ]
        found += [f"event {sent.events.marker(n)} was never sent" for n in seen[run] if n >= sent.count]
    return found


def _books(connection: Any, observations: int) -> list[str]:
    """Counters and indexes agree with the rows."""

    def number(sql: str) -> int:
        return int(connection.execute(sql).fetchone()[0])

    found: list[str] = []
    indexed = number("select count(*) from observations_fts_docsize")
    if indexed != observations:
        found.append(f"{observations} observations, {indexed} of them in the full-text index")
    counted = number("select coalesce(sum(observation_count), 0) from sessions")
    if counted != observations:
        found.append(f"{observations} observations, their sessions count {counted}")
    for table in ("dead_letters", "parked_letters"):
        if rows := number(f"select count(*) from {table}"):
            found.append(f"{rows} rows in {table}")
    answer = connection.execute("pragma quick_check").fetchone()[0]
    return found if answer == "ok" else [*found, f"quick_check says {answer}"]


def pages(data_dir: Path, written: dict[str, str]) -> list[str]:
    """What is wrong with these pages (path → body): in table, index and file."""
    connection = open_reader(data_dir / "db" / "memory.sqlite")
    try:
        stored = {
            row["path"]: row
            for row in connection.execute(
                "select g.path, v.content, v.body_start, (select min(f.rowid) from page_chunks c join chunks_fts f on f.rowid = c.number"
                " where c.page_number = g.number) as indexed from pages g"
                " join page_versions v on v.id = g.version_id"
                " where g.tombstoned_at is null"
            )
        }
        found = []
        for path, body in written.items():
            row = stored.get(path)
            if row is None:
                found.append(f"page {path} is not there")
            elif body.strip() not in row["content"]:
                found.append(f"page {path} was changed")
            elif row["indexed"] is None:
                found.append(f"page {path} is not in the index")
    finally:
        connection.close()
    return _few(found + file_complaints(data_dir))


def _few(found: list[str]) -> list[str]:
    return found if len(found) <= _SHOWN else [*found[:_SHOWN], f"and {len(found) - _SHOWN} more"]
