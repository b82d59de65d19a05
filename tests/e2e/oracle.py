"""What must be true of a data directory after any fault: read straight from database, files and stream."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from memory_core.store.database import open_reader
from tests.e2e.ledger import Answered, Ledger


def complaints(data_dir: Path, ledger: Ledger) -> list[str]:
    """Every broken promise, as a sentence; empty when all of them were kept. The stack must be quiet or down."""
    connection = open_reader(data_dir / "db" / "memory.sqlite")
    try:
        return [
            *_events(connection, ledger),
            *_pages(connection, ledger),
            *_integrity(connection),
            *files(connection, data_dir),
        ]
    finally:
        connection.close()


def file_complaints(data_dir: Path) -> list[str]:
    """Only the agreement of files and page table; it holds in mid-state too, at any stop."""
    connection = open_reader(data_dir / "db" / "memory.sqlite")
    try:
        return files(connection, data_dir)
    finally:
        connection.close()


def _events(connection: Any, ledger: Ledger) -> list[str]:
    stored: dict[str, int] = {}
    order: dict[str, list[int]] = {}
    for row in connection.execute("select body from observations where kind = 'user-prompt' order by seq"):
        marker = row["body"].split(" ", 1)[0]
        if marker.startswith("evt"):
            stored[marker] = stored.get(marker, 0) + 1
            sender, count = marker.rsplit("x", 1)
            order.setdefault(sender, []).append(int(count))
    dead = {
        bytes(row["envelope"]).decode("utf-8", "replace")
        for row in connection.execute("select envelope from dead_letters")
    }
    found = [f"{m} was stored {n} times" for m, n in stored.items() if n > 1]
    found += [f"{name} went out of order" for name, counts in order.items() if counts != sorted(counts)]
    for marker, answer in ledger.events.items():
        count = stored.get(marker, 0)
        if answer is Answered.ACCEPTED and count == 0:
            where = "a dead letter" if any(marker in letter for letter in dead) else "nowhere"
            found.append(f"{marker} was accepted and is in {where}")
        if answer is Answered.REFUSED and count:
            found.append(f"{marker} was refused and is stored")
    found += [f"{m} was stored but never sent" for m in stored if m not in ledger.events]
    return found


def _pages(connection: Any, ledger: Ledger) -> list[str]:
    stored: dict[str, int] = {}
    for row in connection.execute("select content from page_versions"):
        for word in row["content"].split():
            if word.startswith("page") and word in ledger.pages:
                stored[word] = stored.get(word, 0) + 1
                break
    found = [f"page write {m} took effect {n} times" for m, n in stored.items() if n > 1]
    for marker, answer in ledger.pages.items():
        if answer is Answered.ACCEPTED and marker not in stored:
            found.append(f"page write {marker} was accepted and is nowhere")
        if answer is Answered.REFUSED and marker in stored:
            found.append(f"page write {marker} was refused and is stored")
    return found


def _integrity(connection: Any) -> list[str]:
    answer = connection.execute("pragma integrity_check").fetchone()[0]
    found = [] if answer == "ok" else [f"integrity_check says {answer}"]
    found += [f"foreign key broken in {row[0]}" for row in connection.execute("pragma foreign_key_check")]
    count = connection.execute("select count(*) from pages where tombstoned_at is null").fetchone()[0]
    indexed = connection.execute("select count(*) from pages_fts").fetchone()[0]
    if indexed != count:
        found.append(f"{count} pages, {indexed} of them in the full-text index")
    return found


def files(connection: Any, data_dir: Path) -> list[str]:
    """Each file equals the newest version of its page, or an outbox row explains the difference."""
    explained = {row["file"] for row in connection.execute("select file from file_outbox")}
    question = """
        select w.name as workspace, p.name as project, g.path, v.sha256
        from pages g join page_versions v on v.id = g.version_id
        join projects p on p.id = g.project_id join workspaces w on w.id = p.workspace_id
        where g.tombstoned_at is null
    """
    found: list[str] = []
    known: set[str] = set()
    for row in connection.execute(question):
        name = f"{row['workspace']}/{row['project']}/{row['path']}"
        known.add(name)
        path = data_dir / "wiki" / name
        if name in explained:
            continue
        if not path.is_file():
            found.append(f"{name} has no file and no outbox row")
        elif hashlib.sha256(path.read_bytes()).digest() != bytes(row["sha256"]):
            found.append(f"{name} differs from its newest version and has no outbox row")
    for path in sorted((data_dir / "wiki").rglob("*.md")):
        name = str(path.relative_to(data_dir / "wiki"))
        if (
            name not in known
            and name not in explained
            and path.name != "_meta.md"
            and not path.name.startswith(".")
        ):
            found.append(f"{name} lies there without a page")
    return found
