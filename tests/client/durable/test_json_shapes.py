"""What `--json` prints of sessions and knowledge has the keys that docs/command-line.md names: no other one, and none less."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from client.durable.directory import identity_of
from tests.client.durable.gate import Gate
from tests.client.durable.test_session_commands import interrupted
from tests.client.prompt import Prompt
from tests.durable.working import Client, said

pytestmark = pytest.mark.timeout(120)

PAGE = Path(__file__).parents[3] / "docs" / "command-line.md"


def documented(command: str) -> dict[str, set[str]]:
    """Of each object in the section of a command, the keys that are named."""
    section = PAGE.read_text().split(f"\n## memoryd {command}\n", 1)[1].split("\n## ", 1)[0]
    rows = re.findall(
        r"^\| ([^|]+) \| ((?:those, and )?`[a-z_0-9]+`(?:, `[a-z_0-9]+`)*) \|$", section, re.MULTILINE
    )
    found: dict[str, set[str]] = {}
    before: set[str] = set()
    for name, keys in rows:
        before = (before if keys.startswith("those") else set()) | set(re.findall(r"`([a-z_0-9]+)`", keys))
        found[name] = before
    return found


def agrees(told: Mapping[str, Any], name: str, shapes: Mapping[str, set[str]]) -> None:
    assert set(told) == shapes[name], name


@pytest.fixture
def session(person: Prompt, gate: Gate) -> Client:
    """One of this directory, of five turns and a snapshot, that nobody holds."""
    directory = asdict(identity_of(".", os.environ))
    client = Client(gate.house, directory=directory, title="Shapes", project="shapes")
    client.claim()
    parts = {"schema_version": 1, "config": {}, "authority": {}}
    headers = {"Memoryd-Lease": client.lease}
    stored = gate.house.client().put(
        f"{client.root}/snapshot", json={"directory": directory} | parts, headers=gate.house.bearer | headers
    )
    assert stored.status_code == 200, stored.get_json()
    for number in range(5):
        client.append(said(f"{number} {'x' * 300}"))
    client.post("release", {"directory": directory})
    return client


def test_sessions_have_the_documented_shapes(person: Prompt, session: Client, gate: Gate):
    shapes = documented("sessions")
    assert len(shapes) == 10

    agrees(person.asks("sessions", "list", "--project", "shapes")[0], "one of `list`", shapes)
    agrees(
        person.asks("sessions", "list", "--durable", "--project", "shapes")[0],
        "one of `list --durable`",
        shapes,
    )
    shown = person.asks("sessions", "show", session.id)
    agrees(shown, "`show`", shapes)
    agrees(shown["directory"], "`directory`", shapes)
    agrees(shown["snapshot"], "`snapshot`", shapes)
    assert set(person.asks("sessions", "title", session.id, "Other")) == {"title"}
    exported = json.loads(person.says("sessions", "export", session.id))
    agrees(exported["events"][0], "an event of `export`", shapes)
    planned = person.asks("sessions", "compact", session.id, "--context-window", "1000", "--used", "800")
    agrees(planned["plan"], "`plan` of `compact`", shapes)
    agrees(planned["job"], "`job` of `compact`", shapes)
    interrupted(session, gate, "planned")
    agrees(person.asks("sessions", "recover", session.id), "the report of `recover`", shapes)
    assert set(person.asks("sessions", "distill", session.id)) == {"closed", "job"}
    agrees(person.asks("sessions", "delete", session.id, "--yes"), "`delete`", shapes)


def test_knowledge_has_the_documented_shapes(person: Prompt, session: Client):
    shapes = documented("knowledge")
    assert len(shapes) == 5
    change = {
        "id",
        "key",
        "version",
        "confidence",
        "pinned",
        "forgotten",
        "path",
        "workspace",
        "project",
        "changed",
    }
    words = ("--body", "make", "--session", session.id)

    assert set(person.asks("knowledge", "remember", "shaped", *words)) == change
    assert set(person.asks("knowledge", "pin", "shaped")) == change
    assert set(person.asks("knowledge", "unpin", "shaped")) == change
    assert set(person.asks("knowledge", "activate", "shaped", "1")) == change
    agrees(person.asks("knowledge", "list")[0], "an entry of `list`, `search`", shapes)
    agrees(person.asks("knowledge", "search", "shaped")[0], "an entry of `list`, `search`", shapes)
    [version] = person.asks("knowledge", "history", "shaped")
    agrees(version, "a version of `history`", shapes)
    agrees(version["source"], "`source`", shapes)
    assert set(person.asks("knowledge", "forget", "shaped", "--yes")) == change
    shown = person.asks("knowledge", "show", "shaped")
    agrees(shown, "an entry of `show`", shapes)
    agrees(shown["tombstones"][0], "a tombstone", shapes)
