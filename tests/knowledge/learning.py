"""What tests of knowledge begin with: directories, sessions with exact events, and jobs that distil them."""

from __future__ import annotations

import hashlib
from typing import Any

from memory_core.commands.folders import add_project
from memory_core.commands.knowledge import (
    ActivateKnowledge,
    ForgetKnowledge,
    PinKnowledge,
    Remember,
    Where,
)
from memory_core.commands.knowledge_candidates import Applied, Distilled, apply_candidates
from memory_core.domain.command import Refusal
from memory_core.domain.directory import DirectoryId
from memory_core.domain.distillation import Candidate, Tombstone, Upsert
from memory_core.domain.knowledge import Provenance
from memory_core.ids import id_bytes
from memory_core.store import knowledge
from memory_core.store.knowledge import Entry
from tests.books import Books
from tests.wiki.house import House

HOME = DirectoryId(host="laptop", device="2049", inode="77")
ELSEWHERE = DirectoryId(host="laptop", device="2049", inode="78")


def in_directory(directory: DirectoryId = HOME, **more: Any) -> Where:
    return Where(host=directory.host, device=directory.device, inode=directory.inode, **more)


class Knowing:
    """Changes of knowledge in a test's books, and what they say of it afterwards."""

    def __init__(self, books: Books) -> None:
        self.books = books
        with books.store.transaction() as tx:
            self.project_id = add_project(tx, workspace="default", name="alpha")
        self._jobs = 0

    def remember(
        self, key: str = "build", content: str = "make all", *, where: Where | None = None, **more: Any
    ) -> Any:
        asked = where or in_directory(workspace="default", project="alpha")
        return self.books.apply(Remember(where=asked, key=key, content=content, **more))

    def known(self, key: str = "build", **more: Any) -> dict[str, Any]:
        """Remember, and insist that it was taken."""
        answer = self.remember(key, **more)
        assert not isinstance(answer, Refusal), answer
        return answer

    def activate(self, entry: str, version: int, *, where: Where | None = None) -> Any:
        return self.books.apply(
            ActivateKnowledge(where=where or in_directory(), entry=entry, version=version)
        )

    def pin(self, entry: str, pinned: bool = True, *, where: Where | None = None) -> Any:
        return self.books.apply(PinKnowledge(where=where or in_directory(), entry=entry, pinned=pinned))

    def forget(self, entry: str, *, where: Where | None = None) -> Any:
        return self.books.apply(ForgetKnowledge(where=where or in_directory(), entry=entry))

    def entry(self, text: str) -> Entry:
        with self.books.database.snapshot() as reading:
            found = knowledge.by_id(reading, id_bytes(text))
        assert found is not None
        return found

    def under(self, key: str, directory: DirectoryId = HOME) -> Entry | None:
        with self.books.database.snapshot() as reading:
            return knowledge.by_identity(reading, directory, key)

    def versions(self, text: str) -> list[tuple[int, str, float, str]]:
        """Number, text, confidence and origin, oldest first."""
        with self.books.database.snapshot() as reading:
            found = knowledge.history(reading, id_bytes(text), before=2**40, limit=1_000)
        return [(v.version, v.content, v.confidence, str(v.origin)) for v in reversed(found)]

    def tombstones(self, text: str) -> list[dict[str, Any]]:
        return self.books.query(
            "SELECT * FROM knowledge_tombstones WHERE knowledge_id = ? ORDER BY created_at, id",
            id_bytes(text),
        )

    def page(self, text: str) -> tuple[str, str]:
        """Path and text of the page that shows an entry."""
        (row,) = self.books.query(
            "SELECT p.path, v.content, v.body_start FROM knowledge k JOIN pages p ON p.id = k.page_id"
            " JOIN page_versions v ON v.id = p.version_id WHERE k.id = ? AND p.tombstoned_at IS NULL",
            id_bytes(text),
        )
        return row["path"], row["content"][row["body_start"] :]

    # --- distillation ---

    def session(self, directory: DirectoryId | None = HOME, project_id: bytes | None = None) -> bytes:
        """A session with exact events, as far as knowledge looks at it."""
        store = self.books.store
        session_id = store.ids.new()
        store.connection.execute(
            "INSERT INTO sessions (id, project_id, owner, token_scope, agent, vendor_key, started_at, last_event_at,"
            " observation_count, substance_count) VALUES (?, ?, 'ada', 'write', 'durable', ?, 1, 1, 0, 0)",
            (session_id, project_id or self.project_id, session_id.hex()),
        )
        parts = (directory.host, directory.device, directory.inode, "/srv/repo") if directory else (None,) * 4
        store.connection.execute(
            "INSERT INTO durable_sessions (session_id, origin, host, device, inode, path, has_replayed, last_sequence,"
            " digest, updated_at) VALUES (?, ?, ?, ?, ?, ?, 0, 12, ?, 1)",
            (session_id, "client" if directory else "hooks", *parts, hashlib.sha256(session_id).digest()),
        )
        return session_id

    def job(self, session_id: bytes, directory: DirectoryId | None = HOME) -> Distilled:
        """A distillation of a session, under way."""
        store, sha256 = self.books.store, hashlib.sha256(session_id + self._jobs.to_bytes(4, "big")).digest()
        self._jobs += 1
        job_id, event_id = store.ids.new(), store.ids.new()
        store.connection.execute(
            "INSERT INTO jobs (id, kind, queue, project_id, scope, subject, source_digest, on_data_host, principal,"
            " token_scope, state, failures, deaths, claims, created_at, updated_at)"
            " VALUES (?, 'distillation', 'distillation', ?, ?, ?, ?, 0, 'ada', 'write', 'pending', 0, 0, 0, 1, 1)",
            (job_id, self.project_id, self.project_id, session_id.hex(), sha256),
        )
        store.connection.execute(
            "INSERT INTO distillations (job_id, session_id, through_sequence, event_count, first_event_id, last_event_id,"
            " sha256, created_at) VALUES (?, ?, 12, 12, ?, ?, ?, 1)",
            (job_id, session_id, event_id, event_id, sha256),
        )
        return Distilled(
            job_id=job_id,
            provenance=Provenance(session_id=session_id, first_sequence=1, last_sequence=12, sha256=sha256),
            project_id=self.project_id,
            directory=directory,
        )

    def distil(
        self, *candidates: Candidate, source: Distilled | None = None, first: int = 0
    ) -> list[Applied]:
        """Apply candidates of a job, of a new session unless one is given."""
        source = source or self.job(self.session())
        self.books.clock.advance(1)
        return self.books.transact(lambda tx: apply_candidates(tx, source, candidates, first_index=first))


def upsert(key: str = "build", content: str = "make test", confidence: float = 0.9) -> Upsert:
    return Upsert(key=key, content=content, confidence=confidence)


def tombstone(key: str = "build", confidence: float = 0.9) -> Tombstone:
    return Tombstone(key=key, confidence=confidence)


# --- with files beside the books -----------------------------------------------------------------


def settle(house: House) -> None:
    """What is promised comes onto the disk, and what lies there is looked at."""
    house.books.install(house.installer, house.redact)
    house.look_until_still()


def state(knowing: Knowing) -> list[Any]:
    return [
        knowing.books.query(f"SELECT * FROM {table} ORDER BY 1, 2")
        for table in ("knowledge", "knowledge_versions", "knowledge_tombstones", "page_versions", "pages")
    ]
