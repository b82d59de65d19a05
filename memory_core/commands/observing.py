"""An event as the row of an observation."""

from __future__ import annotations

import json
from typing import Any

from memory_core.domain import capture
from memory_core.domain.event import HookEvent


def observation_row(
    event: HookEvent,
    *,
    id: bytes,
    project_id: bytes,
    owner: str | None,
    token_scope: str,
    session_id: bytes,
    twin_hash: bytes,
    source: str,
    recorded_at: int,
) -> dict[str, Any]:
    """Every column of `observations` but `seq`, of an event that is capped."""
    tool = event.tool
    return {
        "id": id,
        "project_id": project_id,
        "owner": owner,
        "token_scope": token_scope,
        "session_id": session_id,
        "kind": event.kind.value,
        "source_event": event.source_event,
        "extension": event.extension,
        "speaker": event.speaker.value,
        "speaker_name": event.speaker_name,
        "search_words": capture.search_words(event),
        "title": event.title,
        "body": event.body,
        "tool": tool and tool.name,
        "tool_family": tool and tool.family,
        "tool_call": tool and tool.call_id,
        "command": tool and tool.command,
        "paths": json.dumps(tool.paths, ensure_ascii=False) if tool and tool.paths else None,
        "outcome": tool and tool.outcome.value,
        "result": tool and tool.result,
        "agent_id": event.agent_id,
        "importance": capture.importance(event),
        "twin_hash": twin_hash,
        "source": source,
        "occurred_at": event.occurred_at,
        "recorded_at": recorded_at,
    }
