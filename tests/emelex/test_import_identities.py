"""Whose directory what came in is about: what lies there now, what moved, what is gone, and entries that turn out to be of one place."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tests.client.durable.gate import Gate
from tests.client.prompt import Prompt
from tests.emelex.conftest import MakeEmelex
from tests.emelex.databases import said
from tests.emelex.test_import import replay, run


def inode_of(text: str) -> str:
    return str(int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big"))


def test_a_directory_that_was_renamed_is_still_the_same_one(
    person: Prompt, gate: Gate, make: MakeEmelex, tmp_path: Path
):
    emelex, place = make(6), tmp_path / "before"
    place.mkdir()
    session_id = emelex.session(place, (said("one"),))
    emelex.knowledge(place, "build", "make")
    place.rename(tmp_path / "after")

    run(person, emelex)

    after = str(tmp_path / "after")
    assert len(replay(gate, session_id, after)) == 1
    assert [e["key"] for e in person.asks("knowledge", "list", "-C", after)] == ["build"]


@pytest.mark.parametrize("version", [1, 2, 3, 4, 5, 6])
def test_what_is_of_a_directory_that_is_gone_matches_none(
    person: Prompt, make: MakeEmelex, tmp_path: Path, version: int
):
    emelex, gone = make(version), f"/srv/gone-{version}"
    session_id = emelex.session(gone, (said("one"),))
    entry_id = emelex.knowledge(gone, "build", "make")

    told = run(person, emelex, "--project", f"gone-{version}")

    assert told["legacy"] == {"sessions": 1, "knowledge": 1}
    shown = person.asks("sessions", "show", session_id)["directory"]
    assert (shown["device"], shown["inode"], shown["path"]) == ("0", inode_of(gone), gone)
    (entry,) = person.asks("knowledge", "list", "--project", f"gone-{version}")
    assert (entry["id"], entry["directory"]["device"]) == (entry_id, "0")
    # Another directory at its path has nothing to do with it.
    assert person.asks("knowledge", "list", "-C", str(tmp_path)) == []
    person.says("sessions", "distill", session_id, "-C", str(tmp_path), code=1)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_entries_under_two_names_of_one_directory_are_both_kept(
    person: Prompt, gate: Gate, make: MakeEmelex, tmp_path: Path, version: int
):
    emelex, alias = make(version), tmp_path / "alias"
    alias.symlink_to(Path.cwd())
    older = emelex.knowledge(alias, "build", "make")
    newer = emelex.knowledge(Path.cwd(), "build", "make test")

    told = run(person, emelex)

    (collision,) = told["collisions"]
    assert (collision["id"], collision["with"], collision["key"]) == (older, "database", "build")
    assert [e["id"] for e in person.asks("knowledge", "list")] == [newer]
    rows = {r["id"].hex(): r for r in gate.rows("SELECT id, device, inode, is_legacy FROM knowledge")}
    kept = rows[older.replace("-", "")]
    assert (kept["device"], kept["inode"], kept["is_legacy"]) == ("0", inode_of(older), 1)


def test_an_entry_whose_key_is_known_here_already_stays_beside_it(person: Prompt, make: MakeEmelex):
    emelex = make(6)
    person.says("knowledge", "remember", "twice", "-b", "make here")
    entry_id = emelex.knowledge(Path.cwd(), "twice", "make there")
    project = person.asks("knowledge", "list")[0]["project"]

    preview = run(person, emelex, "--dry-run")
    told = run(person, emelex)

    (collision,) = preview["collisions"]
    assert (collision["id"], collision["with"]) == (entry_id, "memoryd")
    assert told["collided"] == [entry_id]
    (here,) = person.asks("knowledge", "list")
    assert here["content"] == "make here"
    of_project = person.asks("knowledge", "list", "--project", project)
    assert {e["content"] for e in of_project if e["key"] == "twice"} == {"make here", "make there"}
    assert run(person, emelex)["collisions"] == []


def test_an_entry_that_an_old_schema_marked_as_legacy_stays_so(person: Prompt, gate: Gate, make: MakeEmelex):
    emelex = make(5)
    entry_id = emelex.knowledge(
        Path.cwd(), "build", "make", workspace_device="0", workspace_inode="77", legacy_identity=1
    )
    run(person, emelex)
    (row,) = [r for r in gate.rows("SELECT * FROM knowledge") if r["id"].hex() == entry_id.replace("-", "")]
    assert (row["device"], row["inode"], row["is_legacy"]) == ("0", "77", 1)


def test_the_database_of_another_machine_is_about_its_directories(person: Prompt, make: MakeEmelex):
    emelex = make(2)
    session_id = emelex.session(Path.cwd(), (said("one"),))
    other = make(6)
    there = other.session(Path.cwd(), (said("one"),))

    run(person, emelex, "--host", "grace-desktop")
    run(person, other, "--host", "grace-desktop")

    # Only paths are known of it, and those are not this machine's.
    old = person.asks("sessions", "show", session_id)["directory"]
    assert (old["host"], old["device"]) == ("grace-desktop", "0")
    new = person.asks("sessions", "show", there)["directory"]
    assert (new["host"], new["device"]) == ("grace-desktop", other.identity(Path.cwd())["workspace_device"])
    person.says("sessions", "distill", there, code=1)
