"""What an agent client tells us: one lifecycle event, already in our words."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeVar

T = TypeVar("T")


class EventKind(StrEnum):
    """The closed set of kinds; a vendor's event name that maps to none of them is `other`."""

    SESSION_START = "session-start"
    USER_PROMPT = "user-prompt"
    PRE_TOOL_USE = "pre-tool-use"
    POST_TOOL_USE = "post-tool-use"
    PRE_COMPACT = "pre-compact"
    POST_COMPACTION = "post-compaction"
    NOTIFICATION = "notification"
    STOP = "stop"
    SESSION_END = "session-end"
    OTHER = "other"


#: Stored importance, 1 to 10 (wiki memory, 2.1).
IMPORTANCE: dict[EventKind, int] = {
    EventKind.SESSION_START: 7,
    EventKind.USER_PROMPT: 8,
    EventKind.PRE_TOOL_USE: 5,
    EventKind.POST_TOOL_USE: 5,
    EventKind.PRE_COMPACT: 6,
    EventKind.POST_COMPACTION: 6,
    EventKind.NOTIFICATION: 3,
    EventKind.STOP: 6,
    EventKind.SESSION_END: 7,
    EventKind.OTHER: 3,
}


class Speaker(StrEnum):
    USER = "user"
    AGENT = "agent"
    TOOL = "tool"
    SYSTEM = "system"


class Outcome(StrEnum):
    SUCCESS = "success"
    ERROR = "error"
    UNKNOWN = "unknown"


@dataclass(frozen=True, kw_only=True)
class ToolCall:
    """One use of a tool, before (`outcome` unknown, no `result`) or after it ran."""

    name: str
    #: `file`, `search-list`, `non-file` or `unknown` (wiki memory, 2.3).
    family: str = "unknown"
    call_id: str | None = None
    #: The command line of a shell tool, or the query of a search.
    command: str | None = None
    #: Files that the tool names in its input.
    paths: tuple[str, ...] = ()
    outcome: Outcome = Outcome.UNKNOWN
    #: What came back, as text.
    result: str | None = None


@dataclass(frozen=True, kw_only=True)
class HookEvent:
    """One lifecycle event of one session, as its adapter read it. Not yet redacted, not yet capped."""

    #: Registered name of the adapter, e.g. `claude-code`.
    client: str
    #: The vendor's own event name, e.g. `PostToolUse`.
    source_event: str
    kind: EventKind
    #: The vendor's session id as sent; `memory_core.ids.session_id_from` makes ours of it.
    session_key: str
    speaker: Speaker
    #: What who spoke is called, where several people do: of an exported chat, a group.
    speaker_name: str | None = None
    cwd: str | None = None
    #: What the client says of the time, UTC microseconds.
    occurred_at: int | None = None
    title: str = ""
    body: str = ""
    tool: ToolCall | None = None
    model: str | None = None
    #: A vendor's id that is unique for this event within session and event name (tool-use id,
    #: prompt id, message id); None where the vendor gives none.
    unique_id: str | None = None
    #: Set on events of a subagent, whose session id is its parent's.
    agent_id: str | None = None
    agent_type: str | None = None
    #: How a session began or ended: startup, resume, clear, compact, logout, …
    reason: str | None = None
    transcript_path: str | None = None
    #: Extension namespace and its event name (wiki memory, 2.1), for events outside the closed set.
    extension: str | None = None

    @property
    def is_boundary(self) -> bool:
        """Whether the event only marks that a session is there: it accepts no handoff and makes no page.

        Only a prompt, a tool event, or a stop with text is more than a boundary.
        """
        if self.kind in (EventKind.USER_PROMPT, EventKind.PRE_TOOL_USE, EventKind.POST_TOOL_USE):
            return False
        return not (self.kind is EventKind.STOP and self.body.strip())


def changed(value: T, **changes: Any) -> T:
    """`value`, an event or a tool call, with other values in some fields; the names must be its fields.

    `dataclasses.replace` sets each of the twenty fields through the frozen class again; at the gate, which changes
    every event four times, that was a sixth of the time that an event takes.
    """
    made = object.__new__(type(value))
    made.__dict__.update(value.__dict__, **changes)
    return made
