"""Knowledge pages in everybody's hands: tools, editors, rebuilds. Pins and tombstones hold whichever way somebody comes."""

from __future__ import annotations

from typing import Any

import pytest

from memory_core.commands.pages import DeletePage, WritePage
from memory_core.commands.restoring import RestorePage
from memory_core.domain.command import Refusal
from memory_core.domain.knowledge import HEAD_KEY, RecallBounds
from memory_core.store import knowledge_lists
from memory_core.store.knowledge_lists import Scope
from memory_core.wiki import front_matter
from tests.knowledge.learning import HOME, Knowing, settle, state, tombstone, upsert
from tests.wiki.house import House


def write(knowing: Knowing, path: str, body: str, **more: Any) -> Any:
    return knowing.books.apply(WritePage(workspace="default", project="alpha", path=path, body=body, **more))


def head_in(text: str) -> dict[str, Any]:
    return front_matter.read(text).values[HEAD_KEY]


# --- editors ---------------------------------------------------------------------------------------


def test_an_edit_of_the_file_is_a_new_version_by_hand(house: House, knowing: Knowing):
    knowing.distil(upsert(content="make\n", confidence=0.5))
    settle(house)
    entry = knowing.under("build")
    assert entry is not None
    assert entry.page_path is not None
    text = str(entry.id.hex())
    file = house.file(entry.page_path)
    house.save(entry.page_path, file.read_text().replace("make\n", "make -j8\n"))
    settle(house)

    after = knowing.under("build")
    assert after is not None
    assert (after.content, after.confidence, str(after.origin), after.version) == (
        "make -j8\n",
        1.0,
        "manual",
        2,
    )
    assert text == after.id.hex()
    with house.books.database.snapshot() as reading:
        recalled = knowledge_lists.recalled(
            reading, Scope(directory=HOME), RecallBounds(), now=house.books.clock.now_us()
        )
    assert [each.content for each in recalled] == ["make -j8\n"]


def test_an_edit_beats_a_distillation_that_nobody_had_seen_it_before(
    house: House, knowing: Knowing, made: dict[str, Any]
):
    """The file was edited, and before anybody looked a distillation wrote the same page."""
    file = house.file(made["path"])
    house.save(made["path"], file.read_text().replace("make all", "by hand"))
    knowing.distil(upsert(content="distilled\n"))
    settle(house)

    assert [v[1:] for v in knowing.versions(made["id"])] == [
        ("make all\n", 1.0, "manual"),
        ("distilled\n", 0.9, "distillation"),
        ("by hand\n", 1.0, "manual"),
    ]
    assert knowing.page(made["id"])[1] == "by hand\n"


def test_the_front_matter_alone_makes_no_version_and_its_pin_counts(
    house: House, knowing: Knowing, made: dict[str, Any]
):
    file = house.file(made["path"])
    house.save(made["path"], file.read_text().replace("title:", "pinned: true\nmood: sunny\ntitle:", 1))
    settle(house)
    assert knowing.entry(made["id"]).pinned
    assert len(knowing.versions(made["id"])) == 1

    (done,) = knowing.distil(tombstone())
    assert done.action == "skipped"
    knowing.pin(made["id"], pinned=False)
    house.books.install(house.installer)
    assert "pinned" not in file.read_text()
    assert "mood: sunny" in file.read_text()


def test_a_deleted_file_is_forgotten_and_one_that_comes_back_is_known_again(
    house: House, knowing: Knowing, made: dict[str, Any]
):
    knowing.pin(made["id"])
    settle(house)
    file = house.file(made["path"])
    kept = file.read_bytes()
    file.unlink()
    settle(house)

    gone = knowing.entry(made["id"])
    assert (gone.is_forgotten, gone.pinned) == (True, False)
    assert [(t["origin"], t["confidence"]) for t in knowing.tombstones(made["id"])] == [("manual", 1.0)]

    house.save(made["path"], kept)
    settle(house)
    back = knowing.entry(made["id"])
    assert (back.is_forgotten, back.version, back.content) == (False, 1, "make all\n")
    assert len(knowing.versions(made["id"])) == 1


@pytest.mark.parametrize("to", ["knowledge/renamed.md", "notes/moved.md"])
def test_a_renamed_file_keeps_its_identity(house: House, knowing: Knowing, made: dict[str, Any], to: str):
    house.file(made["path"]).rename(house.file(to))
    settle(house)

    assert knowing.entry(made["id"]).page_path == to
    assert not knowing.entry(made["id"]).is_forgotten
    knowing.known(content="after the rename\n")
    settle(house)
    assert house.file(to).read_text().endswith("after the rename\n")
    assert knowing.entry(made["id"]).version == 2


def test_a_file_that_was_renamed_and_edited_at_once_keeps_its_identity(
    house: House, knowing: Knowing, made: dict[str, Any]
):
    knowing.pin(made["id"])
    settle(house)
    file = house.file(made["path"])
    text = file.read_text()
    file.unlink()
    house.save("notes/moved.md", text.replace("make all", "make more"))
    settle(house)

    entry = knowing.entry(made["id"])
    assert (entry.page_path, entry.content, entry.version) == ("notes/moved.md", "make more\n", 2)
    assert (entry.is_forgotten, entry.pinned) == (False, True)
    assert knowing.tombstones(made["id"]) == []
    assert house.books.query("SELECT count(*) AS n FROM knowledge") == [{"n": 1}]


def test_a_copy_of_a_file_is_an_ordinary_page(house: House, knowing: Knowing, made: dict[str, Any]):
    text = house.file(made["path"]).read_text()
    house.save("knowledge/copy.md", text)
    settle(house)
    house.save("knowledge/copy.md", text.replace("make all", "other"))
    settle(house)
    assert len(knowing.versions(made["id"])) == 1
    house.file("knowledge/copy.md").unlink()
    settle(house)

    assert len(knowing.versions(made["id"])) == 1
    assert not knowing.entry(made["id"]).is_forgotten


def test_where_the_original_of_a_copy_goes_the_copy_shows_the_entry(
    house: House, knowing: Knowing, made: dict[str, Any]
):
    house.save("knowledge/copy.md", house.file(made["path"]).read_text())
    settle(house)
    house.file(made["path"]).unlink()
    settle(house)

    entry = knowing.entry(made["id"])
    assert (entry.page_path, entry.version, entry.is_forgotten) == ("knowledge/copy.md", 1, False)


def test_an_emptied_file_says_nothing_yet(house: House, knowing: Knowing, made: dict[str, Any]):
    house.save(made["path"], "")
    settle(house)
    assert knowing.entry(made["id"]).content == "make all\n"

    house.save(made["path"], "new words\n")
    settle(house)
    assert knowing.entry(made["id"]).content == "new words\n"
    assert not knowing.entry(made["id"]).is_forgotten


# --- tools -----------------------------------------------------------------------------------------


def test_a_page_write_is_a_new_version_with_the_front_matter_of_its_own(
    house: House, knowing: Knowing, made: dict[str, Any]
):
    answer = write(knowing, made["path"], "make more\n")
    house.books.install(house.installer)

    assert answer["changed"] is True
    assert knowing.versions(made["id"])[1] == (2, "make more\n", 1.0, "manual")
    head = head_in(house.file(made["path"]).read_text())
    assert (head["version"], head["confidence"], head["about"]) == (2, 1.0, "build")
    assert write(knowing, made["path"], "make more\n")["changed"] is False
    assert len(knowing.versions(made["id"])) == 2


def test_a_page_write_pins_and_lets_go_as_the_entry_does(knowing: Knowing, made: dict[str, Any]):
    write(knowing, made["path"], "make all\n", pinned=True)
    assert knowing.entry(made["id"]).pinned
    write(knowing, made["path"], "make more\n")
    assert knowing.entry(made["id"]).pinned
    write(knowing, made["path"], "make more\n", pinned=False)
    assert not knowing.entry(made["id"]).pinned
    assert len(knowing.versions(made["id"])) == 2


def test_a_deleted_page_is_a_forgotten_entry_and_a_write_there_brings_it_back(
    house: House, knowing: Knowing, made: dict[str, Any]
):
    knowing.pin(made["id"])
    knowing.books.apply(DeletePage(workspace="default", project="alpha", path=made["path"]))
    settle(house)
    gone = knowing.entry(made["id"])
    assert (gone.is_forgotten, gone.pinned) == (True, False)
    assert len(knowing.tombstones(made["id"])) == 1
    (skipped,) = knowing.distil(upsert(content="make all\n", confidence=1.0))
    assert skipped.action == "skipped"

    write(knowing, made["path"], "make again\n")
    settle(house)
    back = knowing.entry(made["id"])
    assert (back.is_forgotten, back.version, back.content) == (False, 2, "make again\n")
    assert knowing.page(made["id"]) == (made["path"], "make again\n")


def test_no_text_of_an_agent_names_an_entry(knowing: Knowing, made: dict[str, Any]):
    text = knowing.books.query(
        "SELECT v.content FROM knowledge k JOIN pages p ON p.id = k.page_id JOIN page_versions v ON v.id = p.version_id"
    )[0]["content"]
    before = state(knowing)
    forged = write(knowing, "notes/forged.md", text.replace('"confidence": 1.0', '"confidence": 0.3'))
    assert isinstance(forged, Refusal)
    assert "memoryd's own key" in forged.message
    assert state(knowing) == before

    # On its own page the line is put right, whatever it says.
    write(
        knowing,
        made["path"],
        text.replace("build", "other").replace("make all", "new").replace("laptop", "x"),
    )
    entry = knowing.entry(made["id"])
    assert (entry.key, entry.directory, entry.content) == ("build", HOME, "new\n")


def test_a_blank_or_too_long_page_is_refused_before_anything_is_written(
    knowing: Knowing, made: dict[str, Any]
):
    before = state(knowing)
    for body in ("---\ntitle: x\n---\n \n", "x" * 255_000):
        assert isinstance(write(knowing, made["path"], body), Refusal)
    assert state(knowing) == before


def test_an_older_state_that_is_restored_is_a_version_by_hand_and_keeps_the_pin(
    house: House, knowing: Knowing, made: dict[str, Any]
):
    old = house.file(made["path"]).read_text()
    knowing.known(content="make better\n")
    knowing.pin(made["id"])
    knowing.books.apply(
        RestorePage(workspace="default", project="alpha", path=made["path"], content=old, origin="a commit")
    )
    settle(house)

    entry = knowing.entry(made["id"])
    assert (entry.version, entry.content, entry.confidence, entry.pinned) == (3, "make all\n", 1.0, True)
    assert head_in(house.file(made["path"]).read_text())["version"] == 3


def test_a_forgotten_page_that_is_restored_is_known_again(
    house: House, knowing: Knowing, made: dict[str, Any]
):
    old = house.file(made["path"]).read_text()
    knowing.forget(made["id"])
    settle(house)
    knowing.books.apply(
        RestorePage(workspace="default", project="alpha", path=made["path"], content=old, origin="a commit")
    )
    settle(house)

    entry = knowing.entry(made["id"])
    assert (entry.is_forgotten, entry.version) == (False, 1)
    assert knowing.page(made["id"]) == (made["path"], "make all\n")


def test_an_expired_page_is_not_recalled_and_the_next_text_has_no_end(
    house: House, knowing: Knowing, made: dict[str, Any]
):
    write(knowing, made["path"], "make all\n", expires_at="2020-01-01")
    now = house.books.clock.now_us()
    with house.books.database.snapshot() as reading:
        here = Scope(directory=HOME)
        assert knowledge_lists.recalled(reading, here, RecallBounds(), now=now) == []
        assert knowledge_lists.searched(reading, here, "make", now=now, limit=10).entries == []
    knowing.pin(made["id"])
    assert knowing.entry(made["id"]).page_expires_at is not None
    knowing.known(content="make anew\n")
    assert knowing.entry(made["id"]).page_expires_at is None
