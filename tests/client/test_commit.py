"""`memoryd commit` ends with an answer also where the history cannot be committed to."""

from __future__ import annotations

from typing import Any

import pytest
from click.testing import CliRunner

from client.commands import commit

WAITS = "the wiki's own directory is not there or empty; its history waits for it"


class WaitingServer:
    """Takes a checkpoint whose commit does not come."""

    def __init__(self, _settings: object) -> None:
        pass

    def request(self, _method: str, _path: str, **_more: Any) -> tuple[dict[str, Any], None]:
        return {"checkpoint": "id-of-it", "commit": None, "changed": True}, None

    def get(self, path: str, **_query: Any) -> Any:
        return [] if path.endswith("checkpoints") else {"git": {"state": "waiting", "reason": WAITS}}


def test_it_says_what_the_commit_waits_for(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(commit, "Server", WaitingServer)
    monkeypatch.setattr(commit, "load", lambda: None)
    monkeypatch.setattr(commit, "_WAIT_SECONDS", 0.0)

    done = CliRunner().invoke(commit.command, [])

    assert done.exit_code == 0, done.output
    assert done.output == (
        f"Taken; its commit follows (checkpoint id-of-it); the history is waiting: {WAITS}\n"
    )
