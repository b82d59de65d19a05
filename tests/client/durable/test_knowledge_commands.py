"""`memoryd knowledge`, against the real gate."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from tests.client.prompt import Prompt


def remembered(person: Prompt, key: str = "build", body: str = "make all", *more: str) -> str:
    """The id of what was just said to be so."""
    return person.asks("knowledge", "remember", key, "--body", body, *more)["id"]


def test_what_is_remembered_is_listed_found_and_shown(person: Prompt):
    entry = remembered(person)
    remembered(person, "deploy", "scripts/ship", "--pin")

    assert [e["key"] for e in person.asks("knowledge", "list")] == ["deploy", "build"]
    assert [e["id"] for e in person.asks("knowledge", "search", "MAKE")] == [entry]
    assert person.asks("knowledge", "show", entry)["content"] == "make all"
    assert "make all" in person.says("knowledge", "show", entry)
    assert "pinned" in person.says("knowledge", "list")


def test_knowledge_is_read_from_standard_input(person: Prompt, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("piped in\n"))

    assert "holds version 1" in person.says("knowledge", "remember", "notes")
    assert person.asks("knowledge", "list")[0]["content"] == "piped in\n"


def test_an_older_version_is_activated_and_marked_in_the_history(person: Prompt):
    entry = remembered(person)
    remembered(person, body="make test")

    assert "holds version 1" in person.says("knowledge", "activate", entry, "1")

    assert [(v["version"], v["active"]) for v in person.asks("knowledge", "history", entry)] == [
        (2, False),
        (1, True),
    ]
    assert [line[:2] for line in person.says("knowledge", "history", entry).splitlines()] == [" 2", "*1"]
    assert len(person.asks("knowledge", "history", entry, "-n", "1")) == 1


def test_a_pin_is_set_and_taken_away(person: Prompt):
    entry = remembered(person)

    assert "is pinned\n" in person.says("knowledge", "pin", entry)
    assert "(as it was)" in person.says("knowledge", "pin", entry)
    assert person.asks("knowledge", "unpin", entry)["pinned"] is False


def test_forgetting_shows_what_goes_asks_and_hides_it(person: Prompt, monkeypatch: pytest.MonkeyPatch):
    entry = remembered(person)
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    person.says("knowledge", "forget", entry, code=2)
    assert "build (version 1): make all" in person.err
    assert "--yes" in person.err
    assert len(person.asks("knowledge", "list")) == 1

    person.says("knowledge", "forget", entry, "--yes")

    assert person.asks("knowledge", "list") == []
    assert [e["id"] for e in person.asks("knowledge", "list", "--forgotten")] == [entry]
    assert "taken away" in person.says("knowledge", "show", entry)
    person.says("knowledge", "activate", entry, "1")
    assert len(person.asks("knowledge", "list")) == 1


def test_a_directory_shows_nothing_of_another_one(person: Prompt, tmp_path: Path):
    entry = remembered(person)
    (tmp_path / "inn").mkdir()
    there = ("--directory", str(tmp_path / "inn"))

    assert f"Nothing is known in the directory {tmp_path / 'inn'}" in person.says("knowledge", "list", *there)
    assert "holds 'make'" in person.says("knowledge", "search", "make", *there)
    for words in (("show", entry), ("pin", entry), ("forget", entry, "--yes"), ("activate", entry, "1")):
        person.says("knowledge", *words, *there, code=1)
    assert person.asks("knowledge", "show", entry)["pinned"] is False


def test_a_renamed_directory_still_knows(person: Prompt, tmp_path: Path):
    remembered(person)
    (tmp_path / "shop").rename(tmp_path / "store")

    assert [e["key"] for e in person.asks("knowledge", "list", "-C", str(tmp_path / "store"))] == ["build"]


def test_a_project_is_named_instead_of_a_directory(person: Prompt):
    remembered(person, "rules", "be kind", "--project", "inn")

    assert [e["key"] for e in person.asks("knowledge", "list", "--project", "inn")] == ["rules"]
    assert "--project NAME" in person.says("knowledge", "list")
    assert "Nothing was forgotten in the project default/inn." in person.says(
        "knowledge", "list", "--forgotten", "--project", "inn"
    )


def test_a_directory_that_is_none_is_named(person: Prompt, tmp_path: Path):
    person.says("knowledge", "list", "--directory", str(tmp_path / "nowhere"), code=1)
    assert "nowhere" in person.err


def test_what_is_known_cannot_drive_the_terminal(person: Prompt):
    entry = remembered(person, "evil\u202ekey", "a\x1b[2Jb\u2066c")

    for words in (("list",), ("show", entry), ("history", entry), ("search", "evil")):
        shown = person.says("knowledge", *words)
        assert not {"\x1b", "\u202e", "\u2066"} & set(shown)
    assert "\\u001b[2Jb" in person.says("knowledge", "show", entry)


def test_a_long_list_goes_on_past_one_answer(person: Prompt):
    for number in range(101):
        remembered(person, f"key {number}", "x")

    assert len(person.asks("knowledge", "list", "-n", "1000")) == 101
    assert len(person.says("knowledge", "list", "-n", "100").splitlines()) == 100


def test_an_entry_is_named_by_its_key_or_its_id(person: Prompt):
    entry = remembered(person)
    remembered(person, body="make test")

    assert person.asks("knowledge", "show", "build")["id"] == entry
    assert len(person.asks("knowledge", "history", "build")) == 2
    assert person.asks("knowledge", "activate", "build", "1")["version"] == 1
    assert person.asks("knowledge", "pin", "build")["pinned"] is True
    assert person.asks("knowledge", "unpin", "build")["id"] == entry
    assert person.asks("knowledge", "forget", "build", "--yes")["forgotten"] is True
    # What is forgotten has its key still.
    assert person.asks("knowledge", "show", "build")["forgotten_at"]
    assert person.asks("knowledge", "activate", "build", "2")["id"] == entry


def test_a_key_that_nobody_has_there_is_said_with_what_to_do(person: Prompt):
    remembered(person)

    person.says("knowledge", "show", "buil", code=1)

    assert "nothing is known under the key 'buil' in the directory" in person.err
    assert "memoryd knowledge list" in person.err


def test_a_key_of_several_directories_of_a_project_is_not_guessed(person: Prompt, tmp_path: Path):
    (tmp_path / "inn").mkdir()
    ids = {
        remembered(person, "build", where, "-C", where, "--project", "of-both")
        for where in (".", str(tmp_path / "inn"))
    }

    person.says("knowledge", "show", "build", "--project", "of-both", code=1)

    assert all(each in person.err for each in ids)
    assert person.asks("knowledge", "show", "build", "-C", ".", "--project", "of-both")["content"] == "."


def test_a_text_in_the_place_of_the_body_is_told_where_it_goes(person: Prompt):
    person.says("knowledge", "remember", "build", "make all", code=2)

    assert "--body TEXT" in person.err
    assert person.asks("knowledge", "list") == []
