"""Values and databases for tests: every factory gives something valid, and takes what the test is about."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memory_core.clock import FakeClock
from memory_core.commands import encode, kind_of
from memory_core.commands.pages import DeletePage, WritePage
from memory_core.domain.command import Envelope, Refusal
from memory_core.domain.event import EventKind, HookEvent, Outcome, Speaker, ToolCall
from memory_core.ids import IdSource
from memory_core.store import fulltext
from memory_core.store.database import open_writer
from memory_core.store.transaction import Look, Transaction
from tests.store.databases import new_database

REPO = "/srv/repo"


@dataclass
class Store:
    """A database of its own, with the writer's connection, a clock that the test moves, and ids."""

    path: Path
    connection: Any
    clock: FakeClock
    ids: IdSource
    #: What commands are told of the disk.
    obstacle: Look = lambda _file: None

    @contextmanager
    def transaction(self, envelope: Envelope | None = None) -> Generator[Transaction]:
        """One write transaction, committed at the end, rolled back at an exception."""
        self.connection.execute("BEGIN IMMEDIATE")
        tx = Transaction(self.connection, self.ids, self.obstacle)
        tx.now, tx.envelope = self.clock.now_us(), envelope
        try:
            yield tx
            tx.write_held()
        except BaseException:
            self.connection.execute("ROLLBACK")
            raise
        for statement in (fulltext.INDEX_NEW, fulltext.ALL_INDEXED):  # as the writer's commit does
            self.connection.execute(statement)
        self.connection.execute("COMMIT")

    def apply(self, command: Any, **of_envelope: Any) -> Any:
        """Send a command the way it travels (encoded, decoded), apply it in a transaction of its own; its answer.

        A refusal after a write fails the test.
        """
        sent = envelope(command, recorded_at=self.clock.now_us(), **of_envelope)
        kind = kind_of(command)
        with self.transaction(sent) as tx:
            answer = kind.apply(kind.decode(sent.body, sent.version), tx)
            assert not (isinstance(answer, Refusal) and tx.wrote), "refused after its first write"
        return answer

    def all(self, sql: str, *parameters: Any) -> list[dict[str, Any]]:
        """The rows of a query, as dictionaries."""
        return [dict(row) for row in self.connection.execute(sql, parameters).fetchall()]

    def close(self) -> None:
        self.connection.close()


def database(tmp_path: Path) -> Store:
    """A new database with the current schema."""
    clock = FakeClock()
    path = new_database(tmp_path)
    connection = open_writer(path)
    connection.execute("PRAGMA synchronous=OFF")  # a test's database need not survive a power cut
    return Store(path=path, connection=connection, clock=clock, ids=IdSource(clock))


def envelope(command: Any, **overrides: Any) -> Envelope:
    """A command on its way, with an id of its own."""
    kind = kind_of(command)
    values: dict[str, Any] = {
        "id": os.urandom(16),
        "name": kind.name,
        "version": kind.version,
        "body": encode(command),
        "body_hash": os.urandom(16),
        "principal": "ada",
        # Pages come over the tools, anything else over hooks.
        "token_scope": "write" if isinstance(command, WritePage | DeletePage) else "capture",
        "recorded_at": FakeClock().now_us(),
    }
    return Envelope(**values | overrides)


def event(**overrides: Any) -> HookEvent:
    """A prompt of a person, unless told otherwise."""
    values: dict[str, Any] = {
        "client": "claude-code",
        "source_event": "UserPromptSubmit",
        "kind": EventKind.USER_PROMPT,
        "session_key": "11111111-2222-4333-8444-555555555555",
        "speaker": Speaker.USER,
        "cwd": REPO,
        "body": "Please add a retry to the uploader",
    }
    return HookEvent(**values | overrides)


def started(**overrides: Any) -> HookEvent:
    values: dict[str, Any] = {
        "kind": EventKind.SESSION_START,
        "source_event": "SessionStart",
        "speaker": Speaker.SYSTEM,
        "body": "",
        "reason": "startup",
    }
    return event(**values | overrides)


def ended(**overrides: Any) -> HookEvent:
    values: dict[str, Any] = {
        "kind": EventKind.SESSION_END,
        "source_event": "SessionEnd",
        "speaker": Speaker.SYSTEM,
        "body": "",
        "reason": "logout",
    }
    return event(**values | overrides)


def said(text: str, **overrides: Any) -> HookEvent:
    """The agent's answer at a stop."""
    values: dict[str, Any] = {
        "kind": EventKind.STOP,
        "source_event": "Stop",
        "speaker": Speaker.AGENT,
        "body": text,
    }
    return event(**values | overrides)


def used_tool(tool: ToolCall | None = None, **overrides: Any) -> HookEvent:
    """A tool that ran."""
    values: dict[str, Any] = {
        "kind": EventKind.POST_TOOL_USE,
        "source_event": "PostToolUse",
        "speaker": Speaker.TOOL,
        "body": "",
        "tool": tool or bash("pytest -q"),
    }
    return event(**values | overrides)


def bash(command: str, result: str = "3 passed", call_id: str | None = None) -> ToolCall:
    return ToolCall(
        name="Bash",
        family="non-file",
        command=command,
        result=result,
        call_id=call_id,
        outcome=Outcome.SUCCESS,
    )
