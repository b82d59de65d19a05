"""A page stays itself: what was counted of it goes on through versions, edits and renames, and two names are never one file."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from memory_core import limits
from memory_core.commands.accesses import CountAccesses
from memory_core.commands.feedback import GiveFeedback
from memory_core.commands.pages import DeletePage, WritePage
from memory_core.domain.page import name_key, path_for_title
from memory_core.ids import id_text
from tests.wiki.house import House


@pytest.fixture
def house(tmp_path: Path) -> Generator[House]:
    made = House(tmp_path)
    made.write_page("notes/a.md", "first text\n")
    made.look_until_still()
    yield made
    made.close()


def judge(house: House) -> None:
    """Somebody finds the page and says that it helped."""
    page_id = id_text(house.page("notes/a.md")["id"])
    house.books.clock.advance(limits.ACCESS_THROTTLE_SECONDS + 1)
    house.books.apply(CountAccesses(page_ids=(page_id,)))
    house.books.apply(GiveFeedback(workspace="default", project="alpha", path="notes/a.md", signal="helpful"))


def counted(house: House, path: str = "notes/a.md") -> tuple[int, float | None, int, int]:
    """Accesses, salience, principals that came upon it, judgements."""
    page = house.page(path)
    (rows,) = house.books.query(
        "SELECT (SELECT count(*) FROM page_access WHERE page_id = :id) AS by, "
        "(SELECT count(*) FROM page_feedback WHERE page_id = :id) AS said".replace(":id", "?1"),
        page["id"],
    )
    return page["access_count"], page["salience"], rows["by"], rows["said"]


def rewrite(house: House) -> str:
    house.write_page("notes/a.md", "second text\n")
    return "notes/a.md"


def edit(house: House) -> str:
    house.save("notes/a.md", "edited text\n")
    house.look_until_still()
    return "notes/a.md"


def rename(house: House) -> str:
    house.file("notes/a.md").rename(house.file("notes/z.md"))
    house.look_until_still()
    return "notes/z.md"


def delete_and_bring_back(house: House) -> str:
    content = house.file("notes/a.md").read_bytes()
    house.file("notes/a.md").unlink()
    house.look_until_still()
    house.save("notes/a.md", content)
    house.look_until_still()
    return "notes/a.md"


@pytest.mark.parametrize("change", [rewrite, edit, rename, delete_and_bring_back])
def test_what_was_counted_of_a_page_goes_on_through_every_change(house: House, change):  # type: ignore[no-untyped-def]
    judge(house)
    judge(house)
    before = counted(house)
    path = change(house)

    assert before == (2, 1.5, 1, 2)
    assert counted(house, path) == before
    house.books.apply(GiveFeedback(workspace="default", project="alpha", path=path, signal="not_helpful"))
    assert counted(house, path) == (2, 1.25, 1, 3)


def test_a_page_that_was_deleted_on_purpose_and_written_anew_begins_anew(house: House):
    judge(house)
    house.books.apply(DeletePage(workspace="default", project="alpha", path="notes/a.md"))
    house.write_page("notes/a.md", "a better text\n")

    assert counted(house) == (0, None, 0, 0)
    assert len(house.books.query("SELECT * FROM page_feedback")) == 1


def test_titles_and_files_of_one_name_in_two_spellings_are_one_page_or_two_files_and_nothing_is_lost(
    house: House,
):
    house.books.apply(
        WritePage(workspace="default", project="alpha", path=None, title="Site Roadmap", body="by an agent\n")
    )
    house.books.install()
    written = {
        "notes/Site-Roadmap.md": "by hand, other case\n",
        "notes/SITE-ROADMAP.MD": "by hand, capitals\n",
        "notes/R\u00e9sum\u00e9.md": "composed\n",
        "notes/Re\u0301sume\u0301.md": "decomposed\n",
        "notes/DL-11 first.md": "eleven\n",
        "notes/DL-12 second.md": "twelve\n",
    }
    for path, text in written.items():
        house.save(path, text)
    status = house.look_until_still()

    pages = house.pages()
    assert pages["notes/site-roadmap.md"] == "by an agent\n"
    assert len({name_key(path) for path in pages}) == len(pages)
    assert pages["notes/R\u00e9sum\u00e9.md"] == "composed\n"
    assert {"notes/DL-11 first.md", "notes/DL-12 second.md"} <= pages.keys()
    assert {path: house.file(path).read_text() for path in written} == written
    assert {each["file"].removeprefix("default/alpha/") for each in status["troubles"]} == {
        "notes/Site-Roadmap.md",
        "notes/SITE-ROADMAP.MD",
        "notes/Re\u0301sume\u0301.md",
    }


def test_an_agent_that_writes_in_another_spelling_writes_the_file_that_is_there(house: House):
    house.save("notes/Of A Person.md", "theirs\n")
    house.look_until_still()
    house.write_page("NOTES/of a person", "the agent's\n")
    house.look_until_still()

    assert "the agent's" in house.file("notes/Of A Person.md").read_text()
    assert sorted(path.name for path in house.file("notes").iterdir() if not path.name.startswith(".")) == [
        "Of A Person.md",
        "a.md",
    ]


@pytest.mark.parametrize("title", ["\U0001f680", "...", "", "CON", "\u65e5\u672c\u8a9e", "x" * 300])
def test_a_page_made_of_any_title_survives_a_look_at_its_file(house: House, title: str):
    answer = house.books.apply(
        WritePage(workspace="default", project="alpha", path=None, title=title, body="text\n")
    )
    house.books.install()
    status = house.look_until_still()

    assert status["troubles"] == []
    assert house.pages()[answer["path"]] == "text\n"
    assert not title or answer["path"] == path_for_title(title).path


def test_links_follow_what_people_do_to_files(house: House):
    house.write_page("notes/b.md", "see [[notes/a]] and [it](a.md)\n")
    house.save("notes/b.md", "see [[notes/z]]\n")
    house.look_until_still()
    house.file("notes/a.md").rename(house.file("notes/z.md"))
    house.look_until_still()

    rows = house.books.query(
        "SELECT l.to_path_key, p.path FROM links l JOIN pages p"
        " ON p.project_id = l.project_id AND p.path_key = l.to_path_key AND p.tombstoned_at IS NULL"
    )
    assert [(row["to_path_key"], row["path"]) for row in rows] == [("notes/z.md", "notes/z.md")]
