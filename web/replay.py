"""Reading a durable session back as it was written: verified, bounded, in short reads, sent while it is read.

Each batch is a snapshot of its own, so a slow reader holds none open. That is one consistent whole all the same: events never change,
nobody but the holder of the lease appends, and where the holder changes the answer is cut.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import msgspec

from memory_core import limits
from memory_core.clock import Clock, rfc3339
from memory_core.commands.durable_lease import find
from memory_core.domain.directory import DirectoryId
from memory_core.domain.durable_session import DurableSession
from memory_core.domain.session_event import AssetLink, SessionEvent, TranscriptKind
from memory_core.domain.transcript_digest import Verifier
from memory_core.errors import Corrupt, ReplayTooLarge, StaleSessionLease
from memory_core.ids import id_text
from memory_core.store import durable_sessions, session_events, session_jobs
from memory_core.store.database import Database, Snapshot
from web.ndjson import line


@dataclass(frozen=True, kw_only=True)
class _Compacted:
    """What a completed compaction covers, and the event that stands for it."""

    through: int
    summary: SessionEvent


class Replay:
    """One replay by the holder of a lease. Made before the answer begins, so that what is wrong by then is told as an error."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        *,
        session_id: bytes,
        principal: str,
        lease_hash: bytes,
        directory: DirectoryId,
    ) -> None:
        """Raises `NotFound`, `WorkspaceMismatch`, `StaleSessionLease`, `ReplayTooLarge`, `Corrupt`."""
        self._database = database
        self._lease_hash = lease_hash
        self._principal = principal
        with database.snapshot() as reading:
            session = find(reading, session_id, principal)
            session.check_client_writes()
            session.check_directory(directory)
            session.check_lease(lease_hash, clock.now_us())
            self._session = session
            row = session_jobs.completed_compaction(reading, session.id)
            snapshot = durable_sessions.snapshot(reading, session.id)
        self._verifier = Verifier(session.id)
        self._compacted = None if row is None else self._verified_compaction(row)
        self._check_size()
        self.head = line(
            {
                "head": {
                    "session": id_text(session.id),
                    "last_sequence": session.last_sequence,
                    "snapshot": snapshot_shape(snapshot),
                    "compacted_through": None if self._compacted is None else self._compacted.through,
                }
            }
        )

    def lines(self) -> Iterator[bytes]:
        """The events, summary first, and the end. Raises `Corrupt` and `StaleSessionLease` on the way."""
        session, compacted = self._session, self._compacted
        if compacted is not None:
            yield line({"event": event_shape(compacted.summary, [])})
        while self._verifier.sequence < session.last_sequence:
            with self._database.snapshot() as reading:
                self._check_still_held(reading)
                linked = session_events.with_links(
                    reading,
                    session.id,
                    self._batch(reading, session.last_sequence),
                    limit=limits.EVENT_PAGE_ASSETS_MAX,
                )
            for event, links in linked:
                self._verifier.feed(event)
                if compacted is not None and event.id == compacted.summary.id:
                    continue
                if event.kind is TranscriptKind.SUMMARY:
                    raise Corrupt(f"event {event.sequence} is a summary that no compaction knows of")
                yield line({"event": event_shape(event, links)})
        self._verifier.end(last_sequence=session.last_sequence, digest=session.digest)
        yield line({"end": {"last_sequence": session.last_sequence, "digest": session.digest.hex()}})

    def _verified_compaction(self, row: Any) -> _Compacted:
        """Hash what the compaction covers once more: its summary stands for these events and no others."""
        session, through = self._session, row["through_sequence"]
        first_id = last_id = b""
        while self._verifier.sequence < through:
            with self._database.snapshot() as reading:
                events = self._batch(reading, through)
            for event in events:
                first_id = first_id or event.id
                self._verifier.feed(event)
            last_id = events[-1].id
        if not self._verifier.is_whole or (first_id, last_id, self._verifier.digest) != (
            row["first_event_id"],
            row["last_event_id"],
            row["sha256"],
        ):
            raise Corrupt("the events that a compaction covers are not those that it was made of")
        with self._database.snapshot() as reading:
            summary = session_events.by_id(reading, row["summary_event_id"])
        if (
            summary is None
            or summary.session_id != session.id
            or summary.kind is not TranscriptKind.SUMMARY
            or summary.sequence <= through
            or not _stands_for(summary, row)
        ):
            raise Corrupt("the summary of a compaction is not the one that it wrote")
        return _Compacted(through=through, summary=summary)

    def _check_size(self) -> None:
        after = 0 if self._compacted is None else self._compacted.through
        with self._database.snapshot() as reading:
            count, size = session_events.total(
                reading, self._session.id, after=after, through=self._session.last_sequence
            )
        if count > limits.REPLAY_EVENTS_MAX or size > limits.REPLAY_MAX_BYTES:
            raise ReplayTooLarge(
                f"there are {count} events with {size} bytes to replay, and one answer holds {limits.REPLAY_EVENTS_MAX} events"
                f" and {limits.REPLAY_MAX_BYTES} bytes; compact more of the session"
            )

    def _batch(self, reading: Snapshot, through: int) -> list[SessionEvent]:
        events = session_events.between(
            reading,
            self._session.id,
            after=self._verifier.sequence,
            through=through,
            limit=limits.REPLAY_BATCH_EVENTS,
            max_bytes=limits.REPLAY_BATCH_BYTES,
        )
        if not events:
            raise Corrupt(f"event {self._verifier.sequence + 1} of the session is missing")
        return events

    def _check_still_held(self, reading: Snapshot) -> None:
        now: DurableSession = find(reading, self._session.id, self._principal)
        now.check_own(self._lease_hash)
        if now.last_sequence != self._session.last_sequence:
            raise StaleSessionLease("the session went on while it was replayed; replay it again")


def _stands_for(summary: SessionEvent, row: Any) -> bool:
    """Whether the summary says of itself what its compaction's row says."""
    payload = msgspec.json.decode(summary.payload_json)
    said = cast("dict[str, Any]", payload).get("compaction") if isinstance(payload, dict) else None
    return said == {
        "job_id": id_text(row["job_id"]),
        "through_sequence": row["through_sequence"],
        "source": {
            "event_count": row["event_count"],
            "first_event_id": id_text(row["first_event_id"]),
            "last_event_id": id_text(row["last_event_id"]),
            "sha256": row["sha256"].hex(),
        },
    }


def event_shape(event: SessionEvent, links: list[AssetLink]) -> dict[str, Any]:
    """An event as it is told; the payload is the text that was stored."""
    shape: dict[str, Any] = {
        "id": id_text(event.id),
        "session_id": id_text(event.session_id),
        "sequence": event.sequence,
        "turn_id": id_text(event.turn_id),
        "turn_index": event.turn_index,
        "turn_size": event.turn_size,
        "kind": event.kind.value,
        "payload": msgspec.Raw(event.payload_json.encode()),
        "digest": event.digest.hex(),
        "created_at": rfc3339(event.created_at),
    }
    if links:
        shape["assets"] = [
            {"sha256": link.sha256.hex(), "bytes": link.bytes, "kind": link.kind.value} for link in links
        ]
    return shape


def snapshot_shape(row: Any) -> dict[str, Any] | None:
    if row is None:
        return None
    return {
        "revision": row["revision"],
        "schema_version": row["schema_version"],
        "config": msgspec.Raw(row["config_json"].encode()),
        "authority": msgspec.Raw(row["authority_json"].encode()),
        "created_at": rfc3339(row["created_at"]),
        "updated_at": rfc3339(row["updated_at"]),
    }
