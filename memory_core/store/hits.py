"""What hits show: of parts of pages with their pages, and of turns with their sessions."""

from __future__ import annotations

import json
from collections.abc import Iterable

from memory_core.store.statement import Row, text_statement
from memory_core.store.transaction import Reading

_CHUNKS = text_statement(
    "SELECT c.number, c.heading, p.id, p.path, p.updated_at AS at, p.pinned, p.salience, v.title, v.kind, v.tier, v.tags,"
    " CASE WHEN v.cause = 'session' THEN v.session_id END AS session_id, j.name AS project, w.name AS workspace,"
    " substr(v.content, v.body_start + c.text_start + 1, c.text_end - c.text_start) AS text"
    " FROM json_each(:numbers) AS asked JOIN page_chunks AS c ON c.number = asked.value"
    " JOIN pages AS p ON p.number = c.page_number JOIN page_versions AS v ON v.id = p.version_id"
    " JOIN projects AS j ON j.id = p.project_id JOIN workspaces AS w ON w.id = j.workspace_id"
)
_TURNS = text_statement(
    "SELECT o.seq AS number, o.id, o.session_id, o.kind, o.title, o.body AS text, o.speaker, o.speaker_name,"
    " coalesce(o.occurred_at, o.recorded_at) AS at, p.path, j.name AS project, w.name AS workspace"
    " FROM json_each(:numbers) AS asked JOIN observations AS o ON o.seq = asked.value"
    " JOIN projects AS j ON j.id = o.project_id JOIN workspaces AS w ON w.id = j.workspace_id"
    " JOIN sessions AS s ON s.id = o.session_id LEFT JOIN pages AS p ON p.id = s.page_id AND p.project_id = o.project_id"
    " AND p.tombstoned_at IS NULL AND (p.expires_at IS NULL OR p.expires_at > :now)"
)


def of_chunks(reading: Reading, numbers: Iterable[int]) -> dict[int, Row]:
    """Parts of pages by number: id and path of the page, at, pinned, salience, title, kind, tier, tags (JSON), heading, text, project,
    workspace, and session_id where the page was made of a session."""
    return {row["number"]: row for row in reading.rows(_CHUNKS, numbers=json.dumps(list(numbers)))}


def of_turns(reading: Reading, numbers: Iterable[int], *, now: int) -> dict[int, Row]:
    """Turns by number: id, session_id, kind, title, text, speaker, speaker_name, at, project, workspace, and the path of the
    session's page (None: there is none to show)."""
    return {row["number"]: row for row in reading.rows(_TURNS, numbers=json.dumps(list(numbers)), now=now)}
