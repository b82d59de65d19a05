"""Knowledge when one side was lost: files that are healed, and a database that begins with nothing but the files."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from memory_core.commands.wiki_tasks import StartHeal, StartReindex
from tests.knowledge.learning import Knowing, settle, state, tombstone, upsert
from tests.wiki.histories import person
from tests.wiki.house import House


def test_a_lost_file_is_healed_and_nothing_is_forgotten(house: House, knowing: Knowing, made: dict[str, Any]):
    file = house.file(made["path"])
    kept = file.read_bytes()
    before = state(knowing)
    knowing.books.apply(StartHeal())
    file.unlink()
    settle(house)

    assert file.read_bytes() == kept
    assert state(knowing) == before


def rebuilt_from(house: House, directory: Path, *, history: bool = False) -> House:
    directory.mkdir()
    shutil.copytree(house.root, directory / "wiki")
    anew = House(directory)
    anew.books.apply(StartReindex(history=history))
    anew.look_until_still()
    return anew


def test_a_lost_database_finds_its_knowledge_in_the_files(
    house: House, knowing: Knowing, made: dict[str, Any], tmp_path: Path
):
    knowing.distil(upsert("style", "tabs\n", 0.8), upsert("edited", "before\n", 0.6), upsert("gone", "x\n"))
    knowing.distil(upsert("style", "spaces\n", 0.85))
    knowing.pin(made["id"])
    gone = knowing.under("gone")
    assert gone is not None
    knowing.distil(tombstone("gone"))
    settle(house)
    edited = knowing.under("edited")
    assert edited is not None
    assert edited.page_path is not None
    house.save(edited.page_path, house.file(edited.page_path).read_text().replace("before", "by hand"))
    settle(house)

    anew = rebuilt_from(house, tmp_path / "anew")
    found = Knowing.__new__(Knowing)
    found.books = anew.books
    try:
        for key in ("build", "style", "edited"):
            was, now = knowing.under(key), found.under(key)
            assert was is not None
            assert now is not None
            for name in ("id", "key", "directory", "version", "content", "confidence", "origin", "pinned"):
                assert getattr(now, name) == getattr(was, name), (key, name)
            assert now.page_path == was.page_path
        assert found.under("gone") is None
        was_from = house.books.query(
            "SELECT provenance_session_id AS a, source_last_sequence AS b, source_sha256 AS c FROM knowledge_versions"
            " WHERE content = 'spaces\n'"
        )
        now_from = anew.books.query(
            "SELECT provenance_session_id AS a, source_last_sequence AS b, source_sha256 AS c FROM knowledge_versions"
            " WHERE content = 'spaces\n'"
        )
        assert now_from == was_from
        assert found.known("style", content="mixed\n")["version"] == 3
    finally:
        anew.close()


def test_a_rebuild_with_the_history_brings_earlier_versions_back(
    house: House, knowing: Knowing, made: dict[str, Any], tmp_path: Path
):
    person(house.root, "init", "-q", "-b", "main")
    for text in ("second\n", "third\n"):
        person(house.root, "add", "-A")
        person(house.root, "commit", "-q", "-m", "a day")
        knowing.known(content=text)
        settle(house)

    anew = rebuilt_from(house, tmp_path / "anew", history=True)
    found = Knowing.__new__(Knowing)
    found.books = anew.books
    try:
        assert found.versions(made["id"]) == [
            (1, "make all\n", 1.0, "manual"),
            (2, "second\n", 1.0, "manual"),
            (3, "third\n", 1.0, "manual"),
        ]
        assert found.activate(made["id"], 1)["version"] == 1
    finally:
        anew.close()
