"""What must be true of a data directory after any fault: read straight from database, files and stream."""

from __future__ import annotations

import hashlib
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from redis.exceptions import RedisError

from memory_core.store import driver
from memory_core.store.database import open_reader
from tests.e2e.ledger import Answered, Ledger
from tests.e2e.running import Running, wait_until


def complaints(memoryd: Running, ledger: Ledger, *, seconds: float = 60) -> list[str]:
    """Every broken promise, as a sentence; empty when all of them were kept. Waits for a running stack to be quiet."""
    found = list(ledger.surprises)
    try:
        wait_until(lambda: is_quiet(memoryd), seconds=seconds, saying="the queue and the outbox are empty")
    except AssertionError as error:
        found.append(f"it does not become quiet: {error}")
    return [*found, *stored(memoryd.data_dir, ledger), *stream(memoryd)]


def is_quiet(memoryd: Running) -> bool:
    """Whether nothing waits: no command, no promised file."""
    if not is_drained(memoryd):
        return False
    with _reading(memoryd.data_dir) as connection:
        return not connection.execute("select 1 from file_outbox").fetchone()


def is_drained(memoryd: Running) -> bool:
    """Whether no command waits; not while nobody can tell."""
    try:
        return memoryd.waiting() == 0
    except RedisError:
        return False


def stored(data_dir: Path, ledger: Ledger) -> list[str]:
    """Complaints about what lies on the disk."""
    with _reading(data_dir) as connection:
        return [
            *_events(connection, ledger),
            *_pages(connection, ledger),
            *_sessions(connection, ledger),
            *integrity(connection),
            *files(connection, data_dir),
            *_leftovers(data_dir),
        ]


def stream(memoryd: Running, *, seconds: float = 60) -> list[str]:
    """Complaints about the broker's keys that stay: what the server does of its own accord passes through them at any time."""
    found: list[str] = []

    def is_empty() -> bool:
        found[:] = _stream(memoryd)
        return not found

    with suppress(AssertionError):
        wait_until(is_empty, seconds=seconds, saying="nothing is left in the stream")
    return found


def _stream(memoryd: Running) -> list[str]:
    keys = memoryd.keys
    with memoryd.broker() as broker, broker.pipeline() as at_once:
        at_once.xlen(keys.commands).get(keys.bytes).get(keys.oldest)
        entries, waiting_bytes, oldest = at_once.execute()
    found = {"entries in the stream": int(entries), "bytes in the counter": int(waiting_bytes or 0)}
    said = [f"{count} {what} although all is quiet" for what, count in found.items() if count]
    return said + (["the age of an empty stream is kept"] if oldest is not None else [])


def file_complaints(data_dir: Path) -> list[str]:
    """Only the agreement of files and page table; it holds in mid-state too, at any stop of the writer."""
    with _reading(data_dir) as connection:
        return files(connection, data_dir)


def integrity_of(data_dir: Path) -> list[str]:
    """What SQLite says of a database that nobody writes."""
    with _reading(data_dir) as connection:
        return integrity(connection)


@contextmanager
def _reading(data_dir: Path) -> Generator[Any]:
    connection = open_reader(data_dir / "db" / "memory.sqlite")
    try:
        yield connection
    finally:
        connection.close()


def stored_events(data_dir: Path) -> dict[str, int]:
    """How often the event of each marker is stored."""
    with _reading(data_dir) as connection:
        return {marker: len(seqs) for marker, seqs in _markers(connection).items()}


def _markers(connection: Any) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for row in connection.execute(
        "select seq, body from observations where kind = 'user-prompt' order by seq"
    ):
        marker = row["body"].split(" ", 1)[0]
        if marker.startswith("evt"):
            found.setdefault(marker, []).append(row["seq"])
    return found


def _events(connection: Any, ledger: Ledger) -> list[str]:
    places = _markers(connection)
    letters = [
        (table, bytes(row["envelope"]).decode("utf-8", "replace"))
        for table in ("dead_letters", "parked_letters")
        for row in connection.execute(f"select envelope from {table}")
    ]
    found = [f"{m} was stored {len(seqs)} times" for m, seqs in places.items() if len(seqs) > 1]
    for marker, answer in ledger.events.items():
        if answer is Answered.ACCEPTED and marker not in places:
            where = next((table for table, letter in letters if marker in letter), "nowhere")
            found.append(f"{marker} was accepted and is in {where}")
        if answer is Answered.REFUSED and marker in places:
            found.append(f"{marker} was refused and is stored")
    found += [f"{m} was stored but never sent" for m in places if m not in ledger.events]
    return found + _order(places, ledger)


def _order(places: dict[str, list[int]], ledger: Ledger) -> list[str]:
    """Accepted events of one sender lie in the order in which it sent them."""
    last: dict[str, tuple[int, str]] = {}
    found: list[str] = []
    for marker in sorted(places, key=lambda name: places[name][0]):
        if ledger.events.get(marker) is not Answered.ACCEPTED:
            continue
        sender, count = marker.rsplit("x", 1)
        before, name = last.get(sender, (-1, ""))
        if int(count) < before:
            found.append(f"{marker} was stored after {name}, which was sent later")
        last[sender] = (int(count), marker)
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


def _sessions(connection: Any, ledger: Ledger) -> list[str]:
    """Each session that ended left one page and one handoff, and every session counts its own events."""
    question = """
        select s.vendor_key, s.observation_count as told, s.page_id is not null as pages,
            (select count(*) from observations o where o.session_id = s.id) as events,
            (select count(*) from handoffs h where h.from_session_id = s.id) as handoffs
        from sessions s
    """
    found: list[str] = []
    seen: set[str] = set()
    for row in connection.execute(question):
        key = row["vendor_key"]
        seen.add(key)
        if row["told"] != row["events"]:
            found.append(f"session {key} says {row['told']} events and has {row['events']}")
        if row["handoffs"] > 1 or (key in ledger.sessions and (row["handoffs"], row["pages"]) != (1, 1)):
            found.append(f"session {key} left {row['handoffs']} handoffs and {row['pages']} pages")
    return found + [f"session {key} ended and is nowhere" for key in ledger.sessions - seen]


def integrity(connection: Any) -> list[str]:
    """What SQLite itself says of the database and of its full-text indexes."""
    answer = connection.execute("pragma integrity_check").fetchone()[0]
    found = [] if answer == "ok" else [f"integrity_check says {answer}"]
    found += [f"foreign key broken in {row[0]}" for row in connection.execute("pragma foreign_key_check")]
    bare = connection.execute(
        "select count(*) from pages where tombstoned_at is null and number not in (select page_number from page_chunks)"
    ).fetchone()[0]
    if bare:
        found.append(f"{bare} pages have no part that is indexed")
    left = connection.execute(
        "select count(*) from page_chunks c join pages p on p.number = c.page_number where p.tombstoned_at is not null"
    ).fetchone()[0]
    if left:
        found.append(f"{left} parts of deleted pages are indexed")
    count = connection.execute("select count(*) from page_chunks").fetchone()[0]
    indexed = connection.execute("select count(*) from chunks_fts").fetchone()[0]
    if indexed != count:
        found.append(f"{count} parts of pages, {indexed} of them in the full-text index")
    # The check is written as an INSERT, so it needs a database that may be written: a copy.
    copy = driver.connect("file:oracle?mode=memory")
    try:
        connection.backup(copy)
        for index, rank in (("chunks_fts", 0), ("observations_fts", 1)):
            try:
                copy.execute(f"insert into {index}({index}, rank) values('integrity-check', {rank})")
            except driver.Error as error:
                found.append(f"the full-text index {index} is broken: {error}")
    finally:
        copy.close()
    return found


def files(connection: Any, data_dir: Path) -> list[str]:
    """Each file equals the newest version of its page, or an outbox row explains the difference."""
    explained = {row["file"] for row in connection.execute("select file from file_outbox")}
    question = """
        select w.name as workspace, p.name as project, g.path, v.sha256
        from pages g join page_versions v on v.id = g.version_id
        join projects p on p.id = g.project_id join workspaces w on w.id = p.workspace_id
        where g.tombstoned_at is null
        union all select w.name, p.name, r.name, r.sha256 from rendered_files r
        join projects p on p.id = r.project_id join workspaces w on w.id = p.workspace_id
        where r.sha256 is not null
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
        if name not in known | explained and path.name != "_meta.md" and not path.name.startswith("."):
            found.append(f"{name} lies there without a page")
    return found


def _leftovers(data_dir: Path) -> list[str]:
    """Temporary files that nobody will take away any more."""
    names = [path for path in (data_dir / "wiki").rglob(".*") if path.name.startswith((".t-", ".x-"))]
    return [f"{path.relative_to(data_dir)} is left over" for path in names]
