"""Databases of the older program with invented contents, in any of its schemas."""

from __future__ import annotations

import hashlib
import json
import secrets
import sqlite3
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.emelex import schemas

BEGIN = datetime(2024, 5, 1, 9, 0, tzinfo=UTC)


def message(role: str, text: str, **more: Any) -> dict[str, Any]:
    return {
        "record": "durable_message",
        "version": 1,
        "role": role,
        "content": [{"type": "text", "data": text}],
        "tool_calls": [],
        "tool_call_id": None,
        "reasoning": None,
    } | more


class Emelex:
    """One database and its directory of assets. Every row is a little later than the one before."""

    def __init__(self, directory: Path, version: int, name: str = "emelex.sqlite3") -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.path, self.version = directory / name, version
        self.assets = directory / ("assets" if name == "emelex.sqlite3" else f"{name}.assets")
        self.connection: sqlite3.Connection = schemas.create(self.path, version)
        self._clock = 0

    def close(self) -> None:
        self.connection.close()

    # --- small things ---

    def now(self) -> str:
        """As chrono writes it: as many digits as the fraction has."""
        self._clock += 1
        at = BEGIN + timedelta(seconds=self._clock, microseconds=self._clock * 1_000)
        return at.isoformat() if self._clock % 2 else at.strftime("%Y-%m-%dT%H:%M:%S.%f") + "123+00:00"

    def id(self) -> str:
        """A UUIDv7."""
        digits = secrets.token_hex(16)
        return f"{digits[:8]}-{digits[8:12]}-7{digits[13:16]}-8{digits[17:20]}-{digits[20:]}"

    def add(self, table: str, **columns: Any) -> None:
        """A row; columns that this schema does not have are left out."""
        known = {row[1] for row in self.connection.execute(f"PRAGMA table_info({table})")}
        kept = {name: value for name, value in columns.items() if name in known}
        marks = ", ".join("?" for _ in kept)
        self.connection.execute(
            f"INSERT INTO {table} ({', '.join(kept)}) VALUES ({marks})", list(kept.values())
        )

    def identity(self, workspace: Path | str) -> dict[str, str]:
        """Of a directory that there is; else as the program marks one that is gone."""
        try:
            found = Path(workspace).stat()
        except OSError:
            number = int.from_bytes(hashlib.sha256(str(workspace).encode()).digest()[:8], "big")
            return {"workspace_device": "0", "workspace_inode": str(number or 1)}
        return {"workspace_device": str(found.st_dev), "workspace_inode": str(found.st_ino)}

    # --- sessions ---

    def session(
        self, workspace: Path | str, *turns: Sequence[tuple[str, Any]], title: str | None = None, **more: Any
    ) -> str:
        """A session of turns; an event is (kind, payload). Before schema 3 each event is by itself."""
        session_id, at = self.id(), self.now()
        columns = {"model_reference": "acme/model", "title": title, "created_at": at, "updated_at": at}
        columns |= {"workspace": str(workspace), **self.identity(workspace), **more}
        self.add("sessions", id=session_id, **columns)
        for turn in turns:
            self.turn(session_id, *turn)
        return session_id

    def turn(self, session_id: str, *events: tuple[str, Any]) -> list[str]:
        """Ids of the events."""
        turn_id, at, made = self.id(), self.now(), [self.id() for _ in events]
        first = self.last(session_id) + 1
        for index, (event_id, (kind, payload)) in enumerate(zip(made, events, strict=True)):
            self.add(
                "session_events",
                id=event_id,
                session_id=session_id,
                sequence=first + index,
                turn_id=turn_id,
                turn_index=index,
                turn_size=len(events),
                kind=kind,
                payload_json=json.dumps(payload, ensure_ascii=False),
                created_at=at,
            )
        self.connection.execute("UPDATE sessions SET updated_at = ? WHERE id = ?", (at, session_id))
        return made

    def last(self, session_id: str) -> int:
        told = "SELECT coalesce(max(sequence), 0) FROM session_events WHERE session_id = ?"
        return int(self.connection.execute(told, (session_id,)).fetchone()[0])

    def source(self, session_id: str, through: int) -> dict[str, Any]:
        """The provenance of a job: by hand, from what the specification says."""
        select = "SELECT * FROM session_events WHERE session_id = ? AND sequence <= ? ORDER BY sequence"
        cursor = self.connection.execute(select, (session_id, through))
        names = [column[0] for column in cursor.description]
        events = [dict(zip(names, row, strict=True)) for row in cursor]

        def text(value: str) -> bytes:
            return len(value.encode()).to_bytes(8, "big") + value.encode()

        digest = hashlib.sha256(
            text("emelex/session-transcript/v1") + text(session_id) + through.to_bytes(8, "big")
        )
        for event in events:
            digest.update(event["sequence"].to_bytes(8, "big") + text(event["id"]))
            digest.update(text(event.get("turn_id", event["id"])))
            digest.update(event.get("turn_index", 0).to_bytes(8, "big"))
            digest.update(event.get("turn_size", 1).to_bytes(8, "big"))
            for name in ("kind", "payload_json", "created_at"):
                digest.update(text(event[name]))
        return {
            "source_event_count": through,
            "source_first_event_id": events[0]["id"],
            "source_last_event_id": events[-1]["id"],
            "source_sha256": digest.hexdigest(),
        }

    def compacted(self, session_id: str, through: int, summary: str) -> str:
        """A completed compaction and the event that it wrote; the job's id."""
        job_id, source = self.id(), self.source(session_id, through)
        told = {"event_count": source["source_event_count"]}
        told |= {name: source[f"source_{name}"] for name in ("first_event_id", "last_event_id", "sha256")}
        payload = {
            "compaction": {"job_id": job_id, "through_sequence": through}
            | ({"source": told} if self.version >= 3 else {}),
            "summary": {"text": summary},
        }
        (event_id,) = self.turn(session_id, ("summary", payload))
        self.job("compaction", session_id, through, "completed", id=job_id, summary_event_id=event_id)
        return job_id

    def job(self, kind: str, session_id: str, through: int, state: str, **more: Any) -> str:
        job_id, at = more.pop("id", None) or self.id(), self.now()
        claim = {"claim_token": self.id(), "lease_until": self.now()} if state == "running" else {}
        failed = {"failure_count": 3, "last_error": "the model gave no answer", "failed_at": at}
        self.add(
            f"{kind}_jobs",
            id=job_id,
            session_id=session_id,
            through_sequence=through,
            state=state,
            created_at=at,
            updated_at=at,
            completed_at=at if state == "completed" else None,
            **self.source(session_id, through),
            **claim,
            **(failed if state == "failed" else {}),
            **more,
        )
        return job_id

    # --- knowledge ---

    def knowledge(
        self, workspace: Path | str, key: str, *contents: str, active: int | None = None, **more: Any
    ) -> str:
        """An entry with a version for each text, of which the last one holds."""
        entry_id, at = self.id(), self.now()
        columns: dict[str, Any] = {"pinned": 0, "legacy_identity": 0, "tombstoned": 0, "tombstoned_at": None}
        columns |= {"workspace": str(workspace), **self.identity(workspace), "key": key}
        columns |= {"active_version": active or len(contents), "created_at": at, "updated_at": at}
        self.add("knowledge", id=entry_id, **columns | more)
        for number, content in enumerate(contents, 1):
            self.version_of(entry_id, number, content)
        return entry_id

    def version_of(self, entry_id: str, number: int, content: str, **more: Any) -> None:
        columns = {"confidence": 1.0, "created_at": self.now()} | more
        self.add("knowledge_versions", knowledge_id=entry_id, version=number, content=content, **columns)

    # --- assets ---

    def asset(self, data: bytes) -> dict[str, Any]:
        """A file in the directory of assets and its row; the reference that messages name it by."""
        sha256, at = hashlib.sha256(data).hexdigest(), self.now()
        self.assets.mkdir(exist_ok=True)
        (self.assets / sha256).write_bytes(data)
        self.add("assets", sha256=sha256, bytes=len(data), created_at=at, verified_at=at)
        return {"sha256": sha256, "bytes": len(data), "kind": "image"}

    def link(self, session_id: str, event_id: str, reference: dict[str, Any], ordinal: int = 0) -> None:
        self.add(
            "session_assets",
            session_id=session_id,
            event_id=event_id,
            asset_sha256=reference["sha256"],
            kind=reference["kind"],
            ordinal=ordinal,
            created_at=self.now(),
        )


def said(text: str) -> tuple[str, Any]:
    return "user_message", message("user", text)


def answered(text: str) -> tuple[str, Any]:
    return "assistant_message", message("assistant", text)
