"""Agent clients: one file per client turns its hook payloads into `HookEvent`s and says how it is installed.

Light on purpose: the command line on a laptop imports this package without the server's libraries.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from memory_core.domain.event import EventKind, HookEvent
from memory_core.registry import Registry


class ReadPayload(Protocol):
    def __call__(self, payload: Mapping[str, Any], query: Mapping[str, str]) -> HookEvent:
        """Turn one hook payload into an event.

        `query` is the hook URL's query (`event`, `session_id`, `cwd`, `extension`, `source_event`, …):
        the body wins over it. Raises `Invalid` when no session can be told (except at a session
        start, which may mint one) or the payload is no object. Pure, never blocks.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class AgentClient:
    """One agent client: its names, its payload reader, how it takes context, and where its configuration lies."""

    name: str
    #: Human name, e.g. `Claude Code`.
    title: str
    aliases: tuple[str, ...] = ()
    #: Hook events that the installer registers, as the vendor spells them.
    hook_events: tuple[str, ...] = ()
    read: ReadPayload
    #: Event kinds at which this client puts a hook's answer into the agent's context.
    injects_at: frozenset[EventKind] = frozenset()


agents: Registry[AgentClient] = Registry("agent client")


def client_named(name: str) -> AgentClient | None:
    """The client registered under `name` or one of its aliases (case and `_` do not matter)."""
    wanted = name.strip().lower().replace("_", "-")
    for registered, client in agents:
        if wanted == registered or wanted in client.aliases:
            return client
    return None
