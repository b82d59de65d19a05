"""Leaving out what subagents say, where a client asks for it (`drop_subagent`)."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from memory_core import limits

_TRUE = ("1", "true", "yes", "on")
#: Ids of the subagent that an event is of. An agent type alone is no sign: whole sessions may run as an agent.
_AGENT_IDS = ("agent_id", "agentId", "subagent_id", "subagentId")
_PARENTS = ("parent_session_id", "parentSessionId", "parent_thread_id", "parent_conversation_id", "parentID")
_SESSIONS = ("session_id", "sessionId", "conversation_id", "sessionID", "session")
_OWN_EVENTS = ("subagentstart", "subagentstop", "subagentend")
_SESSION_END = "sessionend"


class Subagents:
    """Tells the events of subagents, and remembers which sessions are a subagent's own.

    An event is a subagent's when it carries the id of one. Where a client gives a subagent a session of its own,
    that session is known by its parent's id on one of its events, or by being announced by its parent, until it
    ends. What is remembered is bounded and lost at a restart: an event too many is then kept.
    """

    def __init__(self, limit: int = limits.SUBAGENT_SESSIONS_MAX) -> None:
        self._limit = limit
        self._known: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._lock = threading.Lock()

    def drops(self, principal: str, query: Mapping[str, str], payload: Any) -> bool:
        """Whether this event is to be accepted and forgotten."""
        if query.get("drop_subagent", "").lower() not in _TRUE or not isinstance(payload, dict):
            return False
        session = _text(payload, _SESSIONS) or query.get("session_id", "")
        agent = _text(payload, _AGENT_IDS)
        parent = _text(payload, _PARENTS)
        is_child = bool(parent and session) and parent != session
        with self._lock:
            if agent and agent != session:
                self._remember((principal, agent))
            if is_child:
                self._remember((principal, session))
            is_known = self._touch((principal, session))
            if is_known and _event(payload, query) == _SESSION_END:
                del self._known[(principal, session)]
        return bool(agent or payload.get("subagentType")) or is_known or _event(payload, query) in _OWN_EVENTS

    def _remember(self, key: tuple[str, str]) -> None:
        self._known[key] = None
        self._known.move_to_end(key)
        while len(self._known) > self._limit:
            self._known.popitem(last=False)

    def _touch(self, key: tuple[str, str]) -> bool:
        if key not in self._known:
            return False
        self._known.move_to_end(key)
        return True


def _text(payload: Mapping[str, Any], names: tuple[str, ...]) -> str:
    return next((value for name in names if isinstance(value := payload.get(name), str) and value), "")


def _event(payload: Mapping[str, Any], query: Mapping[str, str]) -> str:
    name = _text(payload, ("hook_event_name", "hookEventName", "event")) or query.get("event", "")
    return name.replace("-", "").replace("_", "").lower()
