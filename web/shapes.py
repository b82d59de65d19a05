"""Rows as the HTTP API tells them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from memory_core.clock import rfc3339
from memory_core.ids import id_text

HANDOFF_STATES = ("open", "offered", "accepted", "expired")


def session_shape(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": id_text(row["id"]),
        "workspace": row["workspace"],
        "project": row["project"],
        "agent": row["agent"],
        "model": row["model"],
        "title": row["title"],
        "cwd": row["cwd"],
        "started_at": rfc3339(row["started_at"]),
        "last_event_at": rfc3339(row["last_event_at"]),
        "ended_at": time_text(row["ended_at"]),
        "end_reason": row["end_reason"],
        "observation_count": row["observation_count"],
        "event_count": row["event_count"],
        "page": row["page_path"],
    }


def handoff_shape(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": id_text(row["id"]),
        "workspace": row["workspace"],
        "project": row["project"],
        "state": row["state"],
        "from_agent": row["from_agent"],
        "to_agent": row["to_agent"],
        "model": row["model"],
        "cwd": row["cwd"],
        "summary": row["summary"],
        **{name: json.loads(row[name]) for name in ("open_questions", "next_steps", "files_touched")},
        "created_at": rfc3339(row["created_at"]),
        "accepted_at": time_text(row["accepted_at"]),
        "accepted_by": row["accepted_by_agent"],
    }


def version_shape(row: Mapping[str, Any]) -> dict[str, Any]:
    """`state`: newest, older, or deleted (the newest one of a page that is gone)."""
    is_newest = row["id"] == row["newest_id"]
    return {
        "version_id": id_text(row["id"]),
        "path": row["path"],
        "state": ("deleted" if row["tombstoned_at"] else "newest") if is_newest else "older",
        "title": row["title"],
        "kind": row["kind"],
        "tier": row["tier"],
        "cause": row["cause"],
        "author": row["actor"],
        "created_at": rfc3339(row["created_at"]),
        "superseded_at": time_text(row["superseded_at"]),
        "supersedes": id_text(row["supersedes"]) if row["supersedes"] else None,
        "chars": row["chars"],
    }


def time_text(us: int | None) -> str | None:
    return rfc3339(us) if us is not None else None
