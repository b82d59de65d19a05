"""What people do to the wiki's files becomes what the books say; nothing of theirs is touched or lost."""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator
from pathlib import Path

import pytest

from memory_core import limits
from memory_core.commands.pages import DeletePage
from tests.wiki.house import House
from tests.wiki.oracle import unexplained


@pytest.fixture
def house(tmp_path: Path) -> Generator[House]:
    made = House(tmp_path)
    made.write_page("notes/a.md", "first text\n")
    made.write_page("notes/b.md", "second text\n")
    made.look_until_still()
    yield made
    assert unexplained_pages(made) == []
    made.close()


def unexplained_pages(house: House) -> list[str]:
    """What the oracle finds, but for files that are no pages and stay as they are."""
    troubles = {row["file"] for row in house.outside.status()["troubles"]}
    held = bool(house.outside.status()["held"])
    return [] if held else [file for file in unexplained(house.books) if file not in troubles]


def test_an_unchanged_tree_is_not_read(house: House):
    house.read.clear()

    status = house.look_until_still()

    assert house.read == []
    assert (status["files"], status["pages"], status["waiting"]) == (2, 2, 0)


def test_an_edit_in_place_becomes_the_newest_version_and_its_file_stays(house: House):
    file = house.save("notes/a.md", "# A title\n\nedited words\n")
    before = file.stat()

    house.look_until_still()

    assert house.chain("notes/a.md") == [
        ("write", "first text\n"),
        ("external", "# A title\n\nedited words\n"),
    ]
    assert house.found("edited") == ["notes/a.md"]
    assert house.found("first") == []
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert house.books.query("SELECT * FROM file_outbox") == []


def test_a_save_by_rename_is_an_edit(house: House):
    file = house.file("notes/a.md")
    stat = file.stat()
    same_size = "x" * (stat.st_size - 1) + "\n"
    aside = file.with_name("4913")
    aside.write_text(same_size)
    os.utime(aside, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    aside.rename(file)

    house.look_until_still()

    assert [body for _, body in house.chain("notes/a.md")] == ["first text\n", same_size]


def test_a_new_file_becomes_a_page(house: House):
    house.save("decisions/Use Valkey.md", "---\ntags: [queue]\n---\n# Use Valkey\n\nbecause\n")

    house.look_until_still()

    page = house.books.query(
        "SELECT v.* FROM pages p JOIN page_versions v ON v.id = p.version_id WHERE path = 'decisions/Use Valkey.md'"
    )[0]
    assert (page["title"], page["kind"], page["tags"], page["cause"]) == (
        "Use Valkey",
        "decision",
        '["queue"]',
        "external",
    )


def test_a_deletion_hides_the_page_and_keeps_its_history(house: House):
    house.file("notes/a.md").unlink()

    house.look_until_still()

    assert list(house.pages()) == ["notes/b.md"]
    assert house.page("notes/a.md")["tombstoned_at"] is not None
    assert house.chain("notes/a.md") == [("write", "first text\n")]


def test_a_file_that_comes_back_is_the_page_that_it_was(house: House):
    content = house.file("notes/a.md").read_bytes()
    page_id = house.page("notes/a.md")["id"]
    house.file("notes/a.md").unlink()
    house.look_until_still()

    house.save("notes/a.md", content)
    house.look_until_still()

    assert house.page("notes/a.md")["id"] == page_id
    assert house.pages()["notes/a.md"] == "first text\n"
    assert house.found("first") == ["notes/a.md"]


def test_a_renamed_file_is_the_same_page(house: House):
    page_id = house.page("notes/a.md")["id"]
    house.file("notes/a.md").rename(house.file("notes/renamed page.md"))

    house.look_until_still()

    assert house.page("notes/renamed page.md")["id"] == page_id
    assert sorted(house.pages()) == ["notes/b.md", "notes/renamed page.md"]
    assert len(house.chain("notes/renamed page.md")) == 2
    assert house.found("renamed") == ["notes/renamed page.md"]


def test_a_name_that_changes_only_its_case_is_the_same_page(house: House):
    page_id = house.page("notes/a.md")["id"]
    house.file("notes/a.md").rename(house.file("notes/A.md"))

    house.look_until_still()

    assert house.page("notes/A.md")["id"] == page_id
    assert sorted(house.pages()) == ["notes/A.md", "notes/b.md"]


def test_a_moved_folder_keeps_every_page(house: House):
    for number in range(30):
        house.write_page(f"deep/er/{number}.md", f"text {number}\n")
    house.look_until_still()
    ids = {row["id"] for row in house.books.query("SELECT id FROM pages WHERE path LIKE 'deep/%'")}

    house.file("deep").rename(house.file("moved"))
    house.look_until_still()

    rows = house.books.query("SELECT id FROM pages WHERE path LIKE 'moved/er/%' AND tombstoned_at IS NULL")
    assert {row["id"] for row in rows} == ids
    assert house.outside.status()["held"] == []


def test_two_files_of_the_same_bytes_that_move_are_told_apart_by_their_inode(house: House):
    house.write_page("notes/c.md", "same\n")
    house.save("notes/d.md", house.file("notes/c.md").read_bytes())
    house.look_until_still()
    ids = {name: house.page(f"notes/{name}.md")["id"] for name in "cd"}

    house.file("notes/c.md").rename(house.file("notes/z.md"))
    house.file("notes/d.md").rename(house.file("notes/y.md"))
    house.look_until_still()

    assert house.page("notes/z.md")["id"] == ids["c"]
    assert house.page("notes/y.md")["id"] == ids["d"]


def test_a_file_that_still_changes_is_waited_for(house: House):
    for number in range(4):
        house.save("notes/a.md", "half" * (number + 1))
        assert house.look()
    house.look_until_still()

    assert [body for _, body in house.chain("notes/a.md")] == ["first text\n", "half" * 4]


def test_a_file_that_never_rests_is_taken_in_all_the_same(house: House):
    for number in range(60):
        house.save("notes/a.md", f"beat {number}\n")
        house.look()

    assert 3 < len(house.chain("notes/a.md")) < 60
    house.look_until_still()


def test_a_save_that_deletes_first_is_an_edit(house: House):
    page_id = house.page("notes/a.md")["id"]
    house.file("notes/a.md").unlink()
    house.look()
    house.save("notes/a.md", "written anew\n")

    house.look_until_still()

    assert house.page("notes/a.md")["id"] == page_id
    assert [body for _, body in house.chain("notes/a.md")] == ["first text\n", "written anew\n"]


@pytest.mark.parametrize(
    "name",
    [
        ".t-17",
        ".x-3-old",
        ".notes.md.swp",
        ".syncthing.a.md.tmp",
        "~syncthing~a.md.tmp",
        "a.md~",
        "4913",
        ".obsidian/workspace.md",
        ".trash/old.md",
        ".git/index.md",
        "index.md",
        "log.md",
        "bootstrap.md",
        "log-2031-05.md",
        "_pending/x.md",
        "picture.png",
    ],
)
def test_what_is_no_page_is_passed_over(house: House, name: str):
    house.save(name, "not a page\n")

    status = house.look_until_still()

    assert sorted(house.pages()) == ["notes/a.md", "notes/b.md"]
    assert status["troubles"] == []
    house.file(name).unlink()


def test_symbolic_links_are_reported_and_not_followed(house: House, tmp_path: Path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "secret.md").write_text("outside\n")
    house.file("notes/link.md").symlink_to(tmp_path / "elsewhere" / "secret.md")
    house.file("folder").symlink_to(tmp_path / "elsewhere")

    status = house.look_until_still()

    assert sorted(house.pages()) == ["notes/a.md", "notes/b.md"]
    assert {row["file"] for row in status["troubles"]} == {
        "default/alpha/notes/link.md",
        "default/alpha/folder",
    }
    house.file("notes/link.md").unlink()
    house.file("folder").unlink()


@pytest.mark.parametrize(
    ("content", "trouble"),
    [
        (b"caf\xe9\n", "UTF-8"),
        (b"zeros\x00\x00\n", "UTF-8"),
        (b"x" * (limits.OUTSIDE_PAGE_MAX_BYTES + 1), "longer than"),
    ],
)
def test_what_cannot_be_a_page_is_reported_and_left_alone(house: House, content: bytes, trouble: str):
    house.save("notes/a.md", content)

    status = house.look_until_still()
    house.read.clear()
    house.look_until_still()

    assert trouble in status["troubles"][0]["trouble"]
    assert house.file("notes/a.md").read_bytes() == content
    assert house.pages()["notes/a.md"] == "first text\n"
    assert house.read == []


def test_bad_front_matter_is_reported_and_the_page_is_taken_in(house: House):
    house.save("notes/a.md", "---\ntitle: [unclosed\n---\nstill words\n")

    status = house.look_until_still()

    assert "front matter" in status["troubles"][0]["trouble"]
    assert house.pages()["notes/a.md"] == "still words\n"


def test_names_that_differ_only_in_case_are_reported_and_overwrite_nothing(house: House):
    house.save("notes/A.md", "the other one\n")

    status = house.look_until_still()

    assert status["troubles"][0]["file"] == "default/alpha/notes/A.md"
    assert house.pages()["notes/a.md"] == "first text\n"
    assert house.file("notes/A.md").read_text() == "the other one\n"
    house.file("notes/A.md").unlink()


def test_a_secret_from_outside_is_in_no_index_and_its_file_stays(house: House):
    file = house.save("notes/a.md", "the word is hunter2 for now\n")

    house.look_until_still()
    house.read.clear()
    house.look_until_still()

    assert house.pages()["notes/a.md"] == "the word is [REDACTED] for now\n"
    assert file.read_text() == "the word is hunter2 for now\n"
    assert house.found("hunter2") == []
    assert house.read == []


def test_a_page_written_while_its_edit_was_prepared_loses_neither(house: House):
    house.save("notes/a.md", "edited by hand\n")
    original = house.redact

    def write_meanwhile(text: str) -> str:
        house.redact = original
        house.write_page("notes/a.md", "written by an agent\n")
        return original(text)

    house.look()
    house.redact = write_meanwhile
    house.look_until_still()

    bodies = [body for _, body in house.chain("notes/a.md")]
    assert {"first text\n", "edited by hand\n", "written by an agent\n"} <= set(bodies)


def test_a_page_deleted_by_an_agent_stays_deleted(house: House):
    house.books.apply(DeletePage(workspace="default", project="alpha", path="notes/a.md"))
    house.look()
    house.books.install()

    house.look_until_still()

    assert list(house.pages()) == ["notes/b.md"]


def test_a_finding_that_cannot_be_entered_holds_no_other_one_up(house: House):
    house.save("notes/a.md", "edit one\n")
    house.save("notes/b.md", "edit two\n")
    house.look()
    house.engine.fails = [RuntimeError("poison"), RuntimeError("poison")]

    house.look_until_still()

    assert "edit one\n" in house.pages().values() or "edit two\n" in house.pages().values()
    house.save("notes/a.md", "edit one again\n")
    house.save("notes/b.md", "edit two again\n")
    house.look_until_still()
    assert set(house.pages().values()) == {"edit one again\n", "edit two again\n"}


# --- what must not be believed at once ---


def test_a_vanished_directory_deletes_nothing_until_somebody_says_so(house: House):
    hidden = house.root.with_name("unmounted")
    house.root.rename(hidden)
    house.root.mkdir()

    status = house.look_until_still()

    assert status["status"] == "held"
    assert status["held"] == [
        {
            "project": "default/alpha",
            "folder": "default/alpha",
            "missing": 2,
            "pages": 2,
            "reason": "the folder default/alpha is not there",
        }
    ]
    assert "is empty" in status["away"]
    assert sorted(house.pages()) == ["notes/a.md", "notes/b.md"]
    house.root.rmdir()
    hidden.rename(house.root)
    assert house.look_until_still()["status"] == "ok"


def test_many_pages_that_vanish_at_once_are_asked_about(house: House):
    for number in range(limits.VANISHED_PAGES_MAX + 1):
        house.write_page(f"many/{number}.md", f"text {number}\n")
    house.look_until_still()
    shutil.rmtree(house.file("many"))

    status = house.look_until_still()

    assert status["held"][0]["missing"] == limits.VANISHED_PAGES_MAX + 1
    assert len(house.pages()) == limits.VANISHED_PAGES_MAX + 3


def test_a_small_project_that_vanishes_is_asked_about_although_pages_are_written_to_it(house: House):
    house.write_page("notes/c.md", "third text\n")
    house.write_page("notes/d.md", "fourth text\n")
    house.look_until_still()
    shutil.rmtree(house.root / "default")
    house.write_page("notes/e.md", "written while it was away\n")

    assert house.look_until_still()["held"][0]["missing"] == 4
    assert len(house.pages()) == 5
