"""What is no such database, is newer, or is damaged: refused by name, before anything is sent."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.client.durable.gate import Gate
from tests.client.prompt import Prompt
from tests.emelex.conftest import MakeEmelex
from tests.emelex.databases import Emelex, message, said
from tests.emelex.test_import import run, texts


def refused(person: Prompt, path: Path, *words: str) -> str:
    person.says("import-emelex", str(path), code=1)
    assert str(path) in person.err
    for word in words:
        assert word in person.err
    return person.err


def test_what_is_no_database_is_refused(person: Prompt, tmp_path: Path):
    file = tmp_path / "notes.txt"
    file.write_text("not a database at all, but long enough to be one" * 10)
    refused(person, file, "no SQLite database")
    refused(person, tmp_path / "missing", "cannot be read")
    refused(person, tmp_path, "is no file")
    (tmp_path / "empty").touch()
    refused(person, tmp_path / "empty", "no SQLite database")


def test_a_database_of_something_else_is_refused(person: Prompt, tmp_path: Path):
    file = tmp_path / "other.sqlite3"
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE notes (text)")
    connection.close()
    refused(person, file, "no database of emelex", "version 0")


def test_a_newer_schema_is_refused_and_named(person: Prompt, make: MakeEmelex):
    emelex = make(6)
    emelex.connection.execute("PRAGMA user_version = 7")
    refused(person, emelex.path, "version 7", "newer than memoryd knows (1 to 6)")


@pytest.mark.parametrize("version", [1, 2, 3, 4, 5, 6])
def test_a_schema_that_is_not_what_it_says_is_refused(person: Prompt, make: MakeEmelex, version: int):
    emelex = make(version)
    emelex.connection.execute("ALTER TABLE sessions RENAME COLUMN title TO name")
    refused(person, emelex.path, f"version {version}", "sessions has no column title")


def test_a_view_in_place_of_a_table_is_refused(person: Prompt, make: MakeEmelex):
    emelex = make(6)
    emelex.connection.execute("DROP TABLE distillation_results")
    emelex.connection.execute("CREATE VIEW distillation_results AS SELECT * FROM distillation_jobs")
    refused(person, emelex.path, "no table distillation_results")


def test_a_database_with_damaged_pages_is_refused(person: Prompt, make: MakeEmelex):
    emelex = make(6)
    for _ in range(40):
        emelex.session("/srv/shop", (said("x" * 2_000),))
    emelex.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    emelex.close()
    data = bytearray(emelex.path.read_bytes())
    for page in range(30, 50):
        data[page * 4096 : page * 4096 + 200] = b"\xff" * 200
    emelex.path.write_bytes(data)
    refused(person, emelex.path, "damaged")


def test_references_that_lead_nowhere_are_refused(person: Prompt, make: MakeEmelex):
    emelex = make(6)
    emelex.connection.execute("PRAGMA foreign_keys = OFF")
    emelex.version_of(emelex.id(), 1, "of nobody")
    refused(person, emelex.path, "references lead nowhere", "knowledge_versions")


Harm = Callable[[Emelex, str], Any]


def _edited(emelex: Emelex, session_id: str) -> None:
    emelex.compacted(session_id, 2, "both")
    emelex.connection.execute(
        "UPDATE session_events SET payload_json = '{}' WHERE session_id = ? AND sequence = 1", (session_id,)
    )


def _set(column: str, value: Any, *, where: str = "sequence = 2") -> Harm:
    def harm(emelex: Emelex, session_id: str) -> None:
        emelex.connection.execute(
            f"UPDATE session_events SET {column} = ? WHERE session_id = ? AND {where}", (value, session_id)
        )

    return harm


HARMS: dict[str, tuple[str, Harm]] = {
    "an event that was edited below a compaction": ("damaged", _edited),
    "an event that is missing": (
        "damaged",
        lambda e, s: e.connection.execute(
            "DELETE FROM session_events WHERE session_id = ? AND sequence = 1", (s,)
        ),
    ),
    "a turn without its end": ("damaged", _set("turn_size", 3)),
    "an unknown kind": ("damaged", _set("kind", "whisper")),
    "no time": ("damaged", _set("created_at", "yesterday")),
    "no id": ("damaged", _set("id", "not-a-uuid")),
    "a summary of nobody": ("damaged", lambda e, s: e.turn(s, ("summary", {"summary": {"text": "x"}}))),
    "a text that is too long": ("unsuitable", lambda e, s: e.turn(s, said("x" * 300_000))),
    "a value that nests too deep": (
        "unsuitable",
        lambda e, s: e.turn(s, ("audit", json.loads("[" * 70 + "]" * 70))),
    ),
    "a journal of nothing": (
        "damaged",
        lambda e, s: e.add(
            "pending_tool_batches",
            session_id=s,
            turn_id=e.id(),
            messages_json="[]",
            audit_json="[]",
            created_at=e.now(),
            updated_at=e.now(),
        ),
    ),
    "an input that is none": (
        "unsuitable",
        lambda e, s: e.add(
            "active_agent_turns",
            session_id=s,
            turn_id=e.id(),
            input_json=json.dumps({**message("user", "x"), "more": 1}),
            created_at=e.now(),
            updated_at=e.now(),
        ),
    ),
}


@pytest.mark.parametrize("harm", HARMS)
def test_a_damaged_session_refuses_the_import_unless_it_may_be_left_out(
    person: Prompt, make: MakeEmelex, harm: str
):
    emelex = make(6)
    bad = emelex.session(Path.cwd(), (said("one"), said("two")))
    good = emelex.session(Path.cwd(), (said("fine"),))
    kind, do = HARMS[harm]
    do(emelex, bad)

    told = run(person, emelex, code=1)

    (problem,) = told["problems"]
    assert problem["what"] == f"session {bad}"
    assert problem["kind"] in (kind, "damaged")
    assert "imported" not in told
    person.says("sessions", "show", good, code=1)
    person.says("import-emelex", str(emelex.path), code=1)
    assert "--skip-damaged" in person.err
    assert bad in person.err
    run(person, emelex, "--skip-damaged")
    assert texts(person, good) == ["fine"]
    person.says("sessions", "show", bad, code=1)


def test_a_damaged_entry_of_knowledge_is_named(person: Prompt, make: MakeEmelex):
    emelex = make(6)
    blank = emelex.knowledge(Path.cwd(), "blank", " ")
    holds_nothing = emelex.knowledge(Path.cwd(), "no version", "x", active=3)
    long_key = emelex.knowledge(Path.cwd(), "k" * 300, "x")

    told = run(person, emelex, code=1)

    assert {p["what"]: p["kind"] for p in told["problems"]} == {
        f"knowledge {blank}": "unsuitable",
        f"knowledge {holds_nothing}": "damaged",
        f"knowledge {long_key}": "unsuitable",
    }


def test_a_session_that_somebody_works_on_there_waits_and_the_others_come(person: Prompt, make: MakeEmelex):
    emelex = make(6)
    until = (datetime.now(UTC) + timedelta(minutes=5)).isoformat()
    busy = emelex.session(
        Path.cwd(), (said("one"),), execution_token=emelex.id(), execution_lease_until=until
    )
    free = emelex.session(Path.cwd(), (said("fine"),))

    told = run(person, emelex)

    assert [(p["kind"], p["what"]) for p in told["problems"]] == [("busy", f"session {busy}")]
    assert texts(person, free) == ["fine"]
    emelex.connection.execute("UPDATE sessions SET execution_token = NULL, execution_lease_until = NULL")
    run(person, emelex)
    assert texts(person, busy) == ["one"]


def test_what_memoryd_refuses_of_one_session_keeps_no_other_away(
    person: Prompt, gate: Gate, make: MakeEmelex
):
    emelex = make(6)
    event_id = emelex.id()
    first = emelex.session(Path.cwd(), (said("one"),))
    second = emelex.session(Path.cwd(), (said("two"),))
    emelex.connection.execute("UPDATE session_events SET id = ? WHERE session_id = ?", (event_id, first))
    run(person, emelex)
    third = make(6)
    clash = third.session(Path.cwd(), (said("three"),))
    fine = third.session(Path.cwd(), (said("four"),))
    third.connection.execute("UPDATE session_events SET id = ? WHERE session_id = ?", (event_id, clash))

    told = run(person, third, code=1)

    (left,) = told["left"]
    assert clash in left["what"]
    assert "the id of another" in left["why"]
    person.says("sessions", "show", clash, code=1)
    assert clash not in [session["id"] for session in person.asks("sessions", "list", "--all")]
    assert (texts(person, fine), texts(person, second)) == (["four"], ["two"])
    assert gate.rows("SELECT count(*) AS n FROM dead_letters")[0]["n"] == 0
