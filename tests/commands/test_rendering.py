"""Index and log of a project follow its pages, and nobody loses what was written into them."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from memory_core import limits
from memory_core.commands.pages import DeletePage, WritePage
from memory_core.commands.rendering import render_due
from memory_core.store import rendered
from tests.books import Books
from tests.wiki.oracle import unexplained

INDEX = "default/alpha/index.md"
LATER = limits.RENDER_PAUSE_SECONDS + limits.RENDER_DELAY_SECONDS


@pytest.fixture
def books(tmp_path: Path) -> Generator[Books]:
    made = Books(tmp_path)
    yield made
    made.close()


def write(books: Books, path: str, body: str = "text\n", **more: object) -> None:
    books.apply(WritePage(workspace="default", project="alpha", path=path, body=body, **more))  # type: ignore[arg-type]


def render(books: Books, seconds: float = LATER) -> int:
    """The turn of the writer some time later: how many files it rendered."""
    books.clock.advance(seconds)
    count = books.transact(lambda tx: render_due(tx, 10))
    books.install()
    return count


def text(books: Books, name: str = "index.md") -> str:
    return (books.wiki / "default/alpha" / name).read_text()


def log(books: Books) -> str:
    (name,) = (path.name for path in (books.wiki / "default/alpha").glob("log-*.md"))
    return text(books, name)


def test_a_project_has_an_index_of_its_pages_by_folder(books: Books):
    write(books, "notes/b.md", "# Second\n")
    write(books, "notes/a.md", "# First [one]\n")
    write(books, "decisions/with space.md", "# Queue\n")
    write(books, "top.md", "# Top\n", pinned=True)
    write(books, "sessions/2031-05-01-x.md", "# Today\n")
    render(books)

    assert text(books).split("\n", 1)[1] == (
        "# alpha\n\n4 pages and 1 session pages of `default/alpha`.\n\n## Pinned\n\n- [Top](top.md)\n\n"
        "## decisions\n\n- [Queue](<decisions/with space.md>)\n\n## notes\n\n- [First \\[one\\]](notes/a.md)\n"
        "- [Second](notes/b.md)\n\n## sessions (newest first)\n\n- [Today](sessions/2031-05-01-x.md)\n"
    )
    assert unexplained(books) == []


def test_the_log_of_the_month_says_what_happened_to_which_page(books: Books):
    write(books, "notes/a.md", "# One\n")
    write(books, "notes/a.md", "# One\nmore\n")
    write(books, "notes/a.md", "# One\nand more\n")
    write(books, "notes/b.md", "# Two\n")
    books.apply(DeletePage(workspace="default", project="alpha", path="notes/b.md"))
    render(books)

    lines = [line.split(" ", 2)[2] for line in log(books).splitlines() if line.startswith("- ")]
    assert lines == [
        "deleted: [Two](notes/b.md)",
        "created: [Two](notes/b.md) by ada",
        "changed 2 times: [One](notes/a.md) by ada",
        "created: [One](notes/a.md) by ada",
    ]


def test_a_project_is_rendered_soon_after_a_change_and_not_after_each(books: Books):
    write(books, "notes/a.md")
    assert render(books, 1) == 0
    assert render(books, limits.RENDER_DELAY_SECONDS) == 2
    write(books, "notes/b.md")
    assert render(books, limits.RENDER_DELAY_SECONDS) == 0
    assert render(books, limits.RENDER_PAUSE_SECONDS) == 2
    assert "notes/b.md" in text(books)
    assert render(books) == 0


def test_rendered_files_are_no_pages(books: Books):
    write(books, "notes/a.md", "# Zebra\n")
    render(books)

    assert [row["path"] for row in books.query("SELECT path FROM pages")] == ["notes/a.md"]
    assert len(books.query("SELECT rowid FROM chunks_fts WHERE chunks_fts MATCH 'zebra'")) == 1


def test_what_somebody_wrote_into_the_index_becomes_a_page(books: Books):
    write(books, "notes/a.md")
    render(books)
    (books.wiki / INDEX).write_text(text(books) + "\nmy own thought, token SECRET\n")
    write(books, "notes/b.md")
    books.clock.advance(LATER)
    books.transact(lambda tx: render_due(tx, 10))
    books.install(redact=lambda found: found.replace("SECRET", "***"))

    assert "thought" not in text(books)
    assert "notes/b.md" in text(books)
    (kept,) = (path for path in books.wiki.rglob("written-into-index-*.md"))
    assert "my own thought, token ***" in kept.read_text()
    assert "sum " not in kept.read_text()
    assert unexplained(books) == []
    assert books.query("SELECT * FROM file_outbox") == []


def test_an_older_rendering_from_a_checkout_is_nobodys_text(books: Books):
    write(books, "notes/a.md")
    render(books)
    older = text(books)
    write(books, "notes/b.md")
    render(books)
    (books.wiki / INDEX).write_text(older)
    write(books, "notes/c.md")
    render(books)

    assert "notes/c.md" in text(books)
    assert list(books.wiki.rglob("written-into-*.md")) == []


def test_a_deleted_index_comes_back_with_the_next_change(books: Books):
    write(books, "notes/a.md")
    render(books)
    (books.wiki / INDEX).unlink()
    write(books, "notes/a.md", "other words, same title\n", title="a")
    render(books)

    assert "notes/a.md" in text(books)


def test_a_new_database_takes_over_an_index_that_is_there(books: Books, tmp_path: Path):
    write(books, "notes/a.md")
    render(books)
    (tmp_path / "second").mkdir()
    second = Books(tmp_path / "second")
    (second.wiki / INDEX).parent.mkdir(parents=True)
    (second.wiki / INDEX).write_text(text(books))
    write(second, "notes/z.md")
    render(second)

    assert "notes/z.md" in (second.wiki / INDEX).read_text()
    assert list(second.wiki.rglob("written-into-*.md")) == []
    second.close()


def test_titles_and_paths_break_nothing_in_the_index(books: Books):
    write(books, "notes/a#b.md", "# `code` <b>*x*_y_ [[link]] memoryd:recalled\n")
    render(books)

    (line,) = (line for line in text(books).splitlines() if line.startswith("- "))
    assert "[[" not in line
    assert "(`notes/a#b.md`)" in line
    assert "memoryd:recalled" not in line


def test_of_very_many_pages_the_last_changed_are_listed(books: Books, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(limits, "INDEX_PAGES_MAX", 2)
    monkeypatch.setattr(limits, "LOG_ROWS_MAX", 2)
    for number in range(4):
        write(books, f"notes/{number}.md")
    render(books)

    assert "4 pages" in text(books)
    assert "The 2 pages that were changed last" in text(books)
    assert "notes/3.md" in text(books)
    assert "notes/1.md" not in text(books)
    assert "The last 2 entries." in log(books)


def test_an_expired_page_is_not_listed(books: Books):
    write(books, "notes/a.md", expires_at="1999-01-01")
    render(books)

    assert "notes/a.md" not in text(books)


def test_a_file_of_a_project_that_goes_is_not_rendered(books: Books):
    write(books, "notes/a.md")
    books.query("DELETE FROM projects")

    assert render(books) == 0
    assert books.transact(lambda tx: rendered.due(tx, tx.now, 10)) == []
