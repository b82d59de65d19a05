"""Models that follow a script, tools that write down what they did, and a session around them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from client.durable import (
    Agent,
    AllowOnce,
    DurableAgentSession,
    ModelReply,
    RequestedCall,
    Tool,
    ToolContext,
    Usage,
)
from client.durable.agent import Around
from client.durable.directory import identity_of
from client.durable.model import ModelRequest
from client.durable.redaction import redact_with
from memory_core.clock import FakeClock
from tests.client.durable.fake import FakeServer

KEY = b"0" * 32
HOST = "ada-laptop"
OBJECT: Mapping[str, Any] = {"type": "object"}
NUMBERED: Mapping[str, Any] = {
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "required": ["n"],
    "additionalProperties": False,
}


class Script:
    """A model that says one line after the other; a line is a reply, an error, or a function of the request."""

    def __init__(self, *lines: Any) -> None:
        self._lines = list(lines)
        self.requests: list[ModelRequest] = []

    def __call__(self, request: ModelRequest) -> Any:
        self.requests.append(request)
        line = self._lines.pop(0)
        if isinstance(line, BaseException):
            raise line
        return line(request) if callable(line) else line

    def then(self, *lines: Any) -> None:
        self._lines += lines


def says(text: str, **more: Any) -> ModelReply:
    return ModelReply(text=text, usage=Usage(input_tokens=3, output_tokens=5), **more)


def wants(*calls: tuple[str, Mapping[str, Any]], text: str = "") -> ModelReply:
    return ModelReply(
        text=text, tool_calls=tuple(RequestedCall(name=name, arguments=given) for name, given in calls)
    )


def allowing(_: Any) -> AllowOnce:
    """Whoever is asked says yes."""
    return AllowOnce()


@dataclass
class Diary:
    """What tools did, in the order in which they did it."""

    entries: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, entry: str) -> None:
        with self._lock:
            self.entries.append(entry)

    def tool(self, name: str = "note", *, does: Callable[..., Any] | None = None, **of_tool: Any) -> Tool:
        """A tool that writes its name and `n` down; then it does what it is told and says so."""

        def run(arguments: Mapping[str, Any], context: ToolContext) -> Any:
            self.note(f"{name} {arguments.get('n', '')}".strip())
            return does(arguments, context) if does is not None else f"{name} done"

        values: dict[str, Any] = {"name": name, "description": f"{name}s", "schema": OBJECT, "run": run}
        return Tool(**values | of_tool)


class Desk:
    """A session on a server, fake or real. `events` is what its listener heard."""

    def __init__(
        self, directory: Path, *tools: Tool, model: Any = None, server: Any = None, **of_agent: Any
    ) -> None:
        self.identity = identity_of(directory, {"MEMORYD_HOST_ID": HOST})
        self.server: Any = server or FakeServer()
        self.model = model or Script()
        values: dict[str, Any] = {"model": self.model, "model_reference": "test:scripted", "tools": tools}
        self.agent = Agent(**values | of_agent)
        self.clock = FakeClock()
        self.events: list[Mapping[str, Any]] = []
        self.around = Around(redact=redact_with(KEY), clock=self.clock)
        # What cannot be an agent is refused before there is a session.
        DurableAgentSession(self.agent, self.identity, self.server.port(self.identity), self.around)
        self.server.begin(self.identity)
        self.session = self.another()
        self.session.open()
        self.steps.clear()

    def another(self, **of_around: Any) -> DurableAgentSession:
        """One more program that knows the session; not open yet."""
        around = Around(**{"redact": self.around.redact, "clock": self.clock} | of_around)
        return DurableAgentSession(self.agent, self.identity, self.server.port(self.identity), around)

    def run(self, text: str = "please do it", **options: Any) -> Any:
        return self.session.run(text, **{"on_event": self.events.append} | options)

    @property
    def steps(self) -> list[str]:
        """What was asked of the server since the session was opened."""
        return self.server.steps.taken

    def said(self) -> list[tuple[str, str]]:
        """The history: who, and what."""
        return [(message.role.value, message.text) for message in self.session.history]

    def results(self) -> list[str]:
        """What the tools said, as the history has it."""
        return [text for role, text in self.said() if role == "tool"]

    def kinds(self) -> list[str]:
        """Of the events in the transcript."""
        return [event.kind for event in self.server.events]

    def audit(self) -> list[str]:
        """Types of the events of the transcript's audit."""
        return [event.payload["event"]["type"] for event in self.server.events if event.kind == "audit"]

    def is_settled(self) -> bool:
        """Whether journal and history agree: nothing is open, and who resumes finds the same history."""
        if not self.server.is_settled:
            return False
        mine = self.session.history
        self.session.release()
        found = self.another()
        found.open()
        same = found.history == mine
        found.release()
        return same
