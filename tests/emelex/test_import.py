"""`memoryd import-emelex`: what each schema holds comes into a real database, once."""

from __future__ import annotations

import json
import os
import secrets
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from client.durable.directory import identity_of
from client.durable.port import Event
from client.durable.routes import HttpSession
from memory_core.ids import id_bytes
from tests.client.durable.gate import Gate
from tests.client.prompt import Prompt
from tests.emelex.conftest import MakeEmelex
from tests.emelex.databases import Emelex, answered, said

SCHEMAS = range(1, 7)


def run(person: Prompt, emelex: Emelex, *words: str, code: int = 0) -> dict[str, Any]:
    return json.loads(person.says("import-emelex", str(emelex.path), *words, "--json", code=code))


def texts(person: Prompt, session_id: str) -> list[str]:
    events = json.loads(person.says("sessions", "export", session_id))["events"]
    return [e["payload"]["content"][0]["data"] for e in events if "content" in e["payload"]]


def replay(gate: Gate, session_id: str, directory: str = ".") -> list[dict[str, Any]]:
    """Who resumes verifies every digest: the payloads, a summary first."""
    port = HttpSession(gate.transport(), session_id, identity_of(directory, os.environ))
    port.claim()
    events: list[Event] = []
    replayed = port.replay(events.append)
    port.confirm_replay(replayed)
    port.release()
    return [dict(event.payload) for event in events]


def write_here(gate: Gate, session_id: str, event: tuple[str, Any]) -> None:
    """A turn that is written in memoryd, by who resumed the session."""
    transport, place = gate.transport(), asdict(identity_of(".", os.environ))
    path, where = (
        f"/durable-sessions/{session_id}",
        {name: place[name] for name in ("host", "device", "inode")},
    )
    lease = transport.write("POST", f"{path}/claim", {"directory": place})["lease"]
    *_, end = transport.lines(f"{path}/replay", lease=lease, max_bytes=2**20, **where)
    transport.write("POST", f"{path}/replayed", {"directory": place, **end["end"]}, lease=lease)
    turn = {"expected_last_sequence": end["end"]["last_sequence"]}
    turn |= {"events": [{"kind": event[0], "payload": event[1]}]}
    transport.write("POST", f"{path}/turns", {"directory": place, **turn}, lease=lease)
    transport.write("POST", f"{path}/release", {}, lease=lease)


@pytest.mark.parametrize("version", SCHEMAS)
def test_sessions_of_each_schema_come_with_their_events_and_can_be_resumed(
    person: Prompt, gate: Gate, make: MakeEmelex, version: int
):
    emelex = make(version)
    turns = [(said("how is it built?"), answered("with make")), (said("and tested?"),)]
    session_id = emelex.session(Path.cwd(), *turns, title="Build the shop")

    told = run(person, emelex)

    assert (told["schema"], told["found"]["events"], told["wrong"]) == (version, 3, 0)
    assert (told["imported"]["sessions"], told["imported"]["events"]) == (1, 3)
    shown = person.asks("sessions", "show", session_id)
    assert (shown["title"], shown["agent"], shown["last_sequence"]) == ("Build the shop", "emelex", 3)
    assert (shown["is_held"], shown["started_at"][:10]) == (False, "2024-05-01")
    assert texts(person, session_id) == ["how is it built?", "with make", "and tested?"]
    assert len(replay(gate, session_id)) == 3
    sizes = gate.rows("SELECT turn_size FROM session_events WHERE session_id = ?", id_bytes(session_id))
    assert [row["turn_size"] for row in sizes] == ([2, 2, 1] if version >= 3 else [1, 1, 1])


@pytest.mark.parametrize("version", SCHEMAS)
def test_compactions_of_each_schema_stand_for_what_they_stood_for(
    person: Prompt, gate: Gate, make: MakeEmelex, version: int
):
    emelex = make(version)
    session_id = emelex.session(Path.cwd(), (said("one"),), (said("two"),), (said("three"),))
    done = emelex.compacted(session_id, 2, "one and two were said")
    emelex.turn(session_id, said("four"))
    running = emelex.job("compaction", session_id, 3, "running")

    run(person, emelex)

    payloads = replay(gate, session_id)
    assert payloads[0]["compaction"]["through_sequence"] == 2
    assert payloads[0]["summary"] == {"text": "one and two were said"}
    assert [p["content"][0]["data"] for p in payloads[1:]] == ["three", "four"]
    assert person.asks("jobs", "show", done)["state"] == "completed"
    assert person.asks("jobs", "show", running)["state"] == "pending"


@pytest.mark.parametrize("version", SCHEMAS)
def test_knowledge_of_each_schema_comes_with_its_versions_pins_and_page(
    person: Prompt, make: MakeEmelex, version: int
):
    emelex = make(version)
    entry_id = emelex.knowledge(Path.cwd(), "build", "make all", "make test", "make", active=2, pinned=1)

    told = run(person, emelex)

    assert (told["imported"]["knowledge"], told["imported"]["versions"]) == (1, 3)
    (entry,) = person.asks("knowledge", "list")
    assert (entry["id"], entry["key"], entry["version"], entry["pinned"]) == (entry_id, "build", 2, True)
    history = person.asks("knowledge", "history", entry_id)
    assert [(v["version"], v["content"]) for v in history] == [(3, "make"), (2, "make test"), (1, "make all")]
    assert {v["created_at"][:10] for v in history} == {"2024-05-01"}
    assert "make test" in person.says("read-page", entry["path"], "--project", entry["project"])
    person.says("knowledge", "remember", "build", "-b", "make everything")
    assert person.asks("knowledge", "show", entry_id)["version"] == 4


@pytest.mark.parametrize("version", SCHEMAS)
def test_a_second_import_brings_nothing_twice(person: Prompt, gate: Gate, make: MakeEmelex, version: int):
    emelex = make(version)
    session_id = emelex.session(Path.cwd(), (said("one"),), (said("two"),))
    emelex.compacted(session_id, 1, "one")
    emelex.knowledge(Path.cwd(), "build", "make", "make test")
    run(person, emelex)
    tables = ("session_events", "jobs", "knowledge_versions", "page_versions", "observations", "handoffs")
    before = [gate.rows(f"SELECT count(*) AS n FROM {table}") for table in tables]

    told = run(person, emelex)

    assert told["imported"] == {"sessions_there": 1, "knowledge_there": 1, "jobs": 0}
    assert told["here"] == {"sessions": {"there": 1}, "knowledge": {"there": 1}}
    assert [gate.rows(f"SELECT count(*) AS n FROM {table}") for table in tables] == before


def test_a_dry_run_says_what_would_come_and_changes_nothing(person: Prompt, gate: Gate, make: MakeEmelex):
    emelex = make(6)
    emelex.session(Path.cwd(), (said("one"),))
    emelex.knowledge(Path.cwd(), "build", "make")
    before = {file: file.read_bytes() for file in emelex.path.parent.iterdir() if file.is_file()}
    commands = gate.rows("SELECT count(*) AS n FROM command_ids")

    told = run(person, emelex, "--dry-run")

    assert (told["dry_run"], told["found"]["sessions"], told["found"]["knowledge"]) == (True, 1, 1)
    assert told["here"] == {"sessions": {"new": 1}, "knowledge": {"new": 1}}
    assert "imported" not in told
    assert gate.rows("SELECT count(*) AS n FROM command_ids") == commands
    said_to_people = person.says("import-emelex", str(emelex.path), "--dry-run")
    assert (said_to_people, "Nothing was changed." in person.err) == ("", True)
    assert "1 session, 1 event, 1 entry of knowledge, 1 version" in person.err
    after = {file: file.read_bytes() for file in emelex.path.parent.iterdir() if file.is_file()}
    assert after == before


def test_what_lies_in_the_write_ahead_log_alone_comes_too(person: Prompt, make: MakeEmelex):
    emelex = make(6)
    session_id = emelex.session(Path.cwd(), (said("only in the log"),))
    assert emelex.path.with_name(f"{emelex.path.name}-wal").stat().st_size > 0

    run(person, emelex)

    assert texts(person, session_id) == ["only in the log"]


def test_a_session_that_went_on_there_is_gone_on_with_here(person: Prompt, gate: Gate, make: MakeEmelex):
    emelex = make(6)
    session_id = emelex.session(Path.cwd(), (said("one"),))
    run(person, emelex)
    emelex.turn(session_id, said("two"), answered("three"))
    job = emelex.job("distillation", session_id, 3, "pending")

    told = run(person, emelex)

    assert (told["imported"]["events"], told["imported"]["jobs"]) == (2, 1)
    assert texts(person, session_id) == ["one", "two", "three"]
    assert person.asks("jobs", "show", job)["kind"] == "distillation"
    replay(gate, session_id)


def test_a_session_that_went_on_here_is_left_as_it_is(person: Prompt, gate: Gate, make: MakeEmelex):
    emelex = make(6)
    session_id = emelex.session(Path.cwd(), (said("one"),))
    run(person, emelex)
    write_here(gate, session_id, said("here"))
    emelex.turn(session_id, said("there"))

    told = run(person, emelex, code=1)

    (left,) = told["left"]
    assert session_id in left["what"]
    assert "went on here" in left["why"]
    assert texts(person, session_id) == ["one", "here"]


def test_what_was_deleted_here_comes_back_only_when_it_is_asked_for(
    person: Prompt, gate: Gate, make: MakeEmelex
):
    emelex = make(6)
    session_id = emelex.session(Path.cwd(), (said("one"),))
    run(person, emelex)
    person.says("sessions", "delete", session_id, "--yes")

    told = run(person, emelex, code=1)

    assert told["here"]["sessions"] == {"deleted": 1}
    assert "--again" in told["left"][0]["why"]
    person.says("sessions", "show", session_id, code=1)
    run(person, emelex, "--again")
    assert texts(person, session_id) == ["one"]


def test_texts_are_redacted_as_all_that_comes_in(person: Prompt, gate: Gate, make: MakeEmelex):
    secret = "ghp_" + secrets.token_hex(18)
    emelex = make(6)
    session_id = emelex.session(Path.cwd(), (said(f"the token is {secret}"),))
    entry_id = emelex.knowledge(Path.cwd(), "deploy", f"export GITHUB_TOKEN={secret}")

    run(person, emelex)

    (text,) = texts(person, session_id)
    assert "[REDACTED:" in text
    assert "[REDACTED:" in person.asks("knowledge", "show", entry_id)["content"]
    everything = json.dumps([texts(person, session_id), person.asks("knowledge", "history", entry_id)])
    assert secret not in everything
    replay(gate, session_id)


def test_an_import_goes_into_a_named_project(person: Prompt, make: MakeEmelex):
    emelex = make(6)
    session_id = emelex.session(Path.cwd(), (said("one"),))
    emelex.knowledge(Path.cwd(), "build", "make")

    run(person, emelex, "--project", "old-shop")

    assert person.asks("sessions", "show", session_id)["project"] == "old-shop"
    (entry,) = person.asks("knowledge", "list", "--project", "old-shop")
    assert entry["key"] == "build"


def test_an_import_leaves_pages_of_sessions_and_no_handoff(person: Prompt, gate: Gate, make: MakeEmelex):
    emelex = make(6)
    session_id = emelex.session(Path.cwd(), (said("mend the pelican feeder"), answered("done")))
    before = gate.rows("SELECT count(*) AS n FROM handoffs")

    run(person, emelex)

    assert gate.rows("SELECT count(*) AS n FROM handoffs") == before
    (row,) = gate.rows(
        "SELECT p.path, s.end_reason FROM sessions s JOIN pages p ON p.id = s.page_id WHERE s.id = ?",
        id_bytes(session_id),
    )
    assert row["end_reason"] == "imported"
    assert "pelican" in person.says("search", "pelican feeder", "--everywhere")


def test_what_came_is_said_in_words(person: Prompt, make: MakeEmelex):
    emelex = make(6)
    emelex.session(Path.cwd(), (said("one"), said("two")))
    emelex.knowledge("/srv/gone\u202e", "build", "make")

    first = person.says("import-emelex", str(emelex.path))

    assert first == "Imported 1 session, 2 events, 1 entry of knowledge, 1 version.\n"
    for line in ("reading the database", "of directories that are gone: 1 entry of knowledge", "sessions: 1"):
        assert line in person.err
    assert person.says("import-emelex", str(emelex.path)) == (
        "Imported nothing; here already: 1 session, 1 entry of knowledge.\n"
    )
