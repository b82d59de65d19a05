"""Pages point to pages: read with each version, whole as soon as the other page is there."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from memory_core import limits
from memory_core.commands.pages import DeletePage, WritePage
from memory_core.domain.page import name_key, page_path
from memory_core.domain.project import Project
from memory_core.store import links, pages, projects
from memory_core.store.links import LinkedPage
from tests.books import Books


@pytest.fixture
def books(tmp_path: Path) -> Generator[Books]:
    made = Books(tmp_path)
    yield made
    made.close()


def write(books: Books, path: str, body: str, project: str = "alpha", **more: Any) -> None:
    books.apply(WritePage(workspace="default", project=project, path=path, body=body, **more))


def project(books: Books, name: str = "alpha") -> Project:
    return books.transact(lambda tx: Project.from_row(projects.named(tx, "default", name) or {}))


def outgoing(books: Books, path: str, name: str = "alpha") -> list[LinkedPage]:
    def ask(tx):  # type: ignore[no-untyped-def]
        page = pages.page_at(tx, project_.id, name_key(page_path(path).path))
        return links.outgoing(tx, page.id, now=tx.now, limit=100) if page else []

    project_ = project(books, name)
    return books.transact(ask)


def incoming(books: Books, path: str, name: str = "alpha") -> list[tuple[str, str]]:
    asked = project(books, name)
    found = books.transact(lambda tx: links.incoming(tx, asked, page_path(path).key, now=tx.now, limit=100))
    return [(one.project, one.path) for one in found]


def test_a_link_is_open_until_its_page_is_there(books: Books):
    write(books, "notes/a.md", "see [[decisions/Queue]]\n")
    (before,) = outgoing(books, "notes/a.md")
    write(books, "decisions/queue.md", "# The queue\n")
    (after,) = outgoing(books, "notes/a.md")

    assert (before.page_id, before.path, before.title) == (None, "decisions/Queue.md", None)
    assert after.page_id is not None
    assert (after.path, after.title, after.kind) == ("decisions/queue.md", "The queue", "decision")
    assert incoming(books, "decisions/queue.md") == [("alpha", "notes/a.md")]


def test_a_link_to_a_project_that_is_not_there_yet_heals_when_it_is(books: Books):
    write(books, "notes/a.md", "see [[beta:notes/b]] and [[default/beta:notes/b|twice]]\n")
    (before,) = outgoing(books, "notes/a.md")
    write(books, "notes/b.md", "# Of beta\n", project="beta")
    write(books, "notes/b.md", "# Of alpha\n")
    (after,) = outgoing(books, "notes/a.md")

    assert (before.workspace, before.project, before.page_id) == ("default", "beta", None)
    assert (after.project, after.title) == ("beta", "Of beta")
    assert incoming(books, "notes/b.md", "beta") == [("alpha", "notes/a.md")]
    assert incoming(books, "notes/b.md", "alpha") == []


def test_a_new_version_points_where_it_says_and_no_more(books: Books):
    write(books, "notes/a.md", "[[one]] [[two]]\n")
    write(books, "notes/a.md", "[[two]] [there](three.md)\n")

    assert [link.path for link in outgoing(books, "notes/a.md")] == ["notes/three.md", "two.md"]
    assert incoming(books, "one.md") == []


def test_a_deleted_page_is_pointed_to_and_points_no_more(books: Books):
    write(books, "notes/a.md", "[[notes/b]]\n")
    write(books, "notes/b.md", "[[notes/a]]\n")
    books.apply(DeletePage(workspace="default", project="alpha", path="notes/b.md"))

    assert [link.page_id for link in outgoing(books, "notes/a.md")] == [None]
    assert incoming(books, "notes/a.md") == []
    assert incoming(books, "notes/b.md") == [("alpha", "notes/a.md")]

    write(books, "notes/b.md", "back again\n")
    assert [link.page_id is not None for link in outgoing(books, "notes/a.md")] == [True]


def test_a_page_does_not_point_to_itself(books: Books):
    write(books, "notes/a.md", "[[notes/A]] [me](a.md) [[alpha:notes/a]]\n")

    assert outgoing(books, "notes/a.md") == []


def test_links_in_the_front_matter_are_the_persons_own(books: Books):
    write(books, "notes/a.md", '---\nup: "[[notes/b]]"\n---\nbody\n')

    assert outgoing(books, "notes/a.md") == []


def test_an_edit_from_outside_changes_where_its_page_points(books: Books):
    write(books, "notes/a.md", "[[one]]\n")
    books.install()
    write(books, "notes/a.md", "[[two]]\n")
    (books.wiki / "default/alpha/notes/a.md").write_text("[[three]]\n")
    books.install()

    assert [link.path for link in outgoing(books, "notes/a.md")] == ["three.md"]


def test_a_page_with_more_links_than_are_kept_is_written_all_the_same(
    books: Books, caplog: pytest.LogCaptureFixture
):
    write(books, "notes/a.md", " ".join(f"[[p{number}]]" for number in range(limits.LINKS_MAX + 5)))

    assert len(books.query("SELECT * FROM links")) == limits.LINKS_MAX
    assert [record.action for record in caplog.records] == ["links_cut"]  # type: ignore[attr-defined]


def test_another_projects_page_of_the_same_path_is_another_page(books: Books):
    write(books, "notes/a.md", "[[notes/b]]\n")
    write(books, "notes/b.md", "beta's\n", project="beta")

    assert [link.page_id for link in outgoing(books, "notes/a.md")] == [None]


# --- links that say only the end of a path ---------------------------------------------------------


def ends(books: Books, path: str) -> list[str | None]:
    return [end.path if end.page_id else None for end in outgoing(books, path)]


def test_a_name_alone_means_the_page_of_that_name_wherever_it_lies(books: Books):
    write(books, "decisions/Queue.md", "# The queue\n")
    write(books, "notes/a.md", "see [[queue]] and [[queue#Why|why]] and [[decisions/queue]]\n")

    assert ends(books, "notes/a.md") == ["decisions/Queue.md", "decisions/Queue.md"]
    assert incoming(books, "decisions/queue.md") == [("alpha", "notes/a.md")]


def test_a_page_at_the_root_comes_first_as_soon_as_it_is_there(books: Books):
    write(books, "decisions/queue.md", "# Decided\n")
    write(books, "notes/a.md", "[[queue]]\n")
    write(books, "queue.md", "# Root\n")

    assert ends(books, "notes/a.md") == ["queue.md"]
    assert incoming(books, "decisions/queue.md") == []
    assert incoming(books, "queue.md") == [("alpha", "notes/a.md")]
    books.apply(DeletePage(workspace="default", project="alpha", path="queue.md"))
    assert ends(books, "notes/a.md") == ["decisions/queue.md"]


def test_of_several_the_own_folder_comes_first_then_the_shortest_path(books: Books):
    for path in ("z/queue.md", "decisions/old/queue.md", "notes/deep/queue.md"):
        write(books, path, "# Q\n")
    write(books, "notes/a.md", "[[queue]]\n")
    write(books, "b.md", "[[queue]]\n")
    write(books, "decisions/old/c.md", "[[queue]]\n")

    assert ends(books, "notes/a.md") == ["notes/deep/queue.md"]
    assert ends(books, "b.md") == ["z/queue.md"]
    assert ends(books, "decisions/old/c.md") == ["decisions/old/queue.md"]
    assert incoming(books, "z/queue.md") == [("alpha", "b.md")]


def test_the_end_of_a_path_means_whole_parts_of_it(books: Books):
    write(books, "archive/decisions/queue.md", "# Q\n")
    write(books, "archive/other/myqueue.md", "# M\n")
    write(books, "notes/a.md", "[[decisions/queue]] [[ecisions/queue]] [[queue%]] [[_ueue]]\n")

    assert sorted(filter(None, ends(books, "notes/a.md"))) == ["archive/decisions/queue.md"]
    assert len(ends(books, "notes/a.md")) == 4


def test_a_name_means_no_page_of_another_project(books: Books):
    write(books, "decisions/queue.md", "# Q\n", project="beta")
    write(books, "notes/a.md", "[[queue]] [[beta:queue]]\n")

    assert ends(books, "notes/a.md") == [None, None]
    assert incoming(books, "decisions/queue.md", "beta") == []


def test_an_expired_page_is_at_neither_end_of_a_link(books: Books):
    write(books, "notes/a", "[[notes/b]] [[c]]")
    write(books, "notes/b", "[[notes/a]]", expires_at="2001-01-01")
    write(books, "notes/c", "[[notes/a]]", expires_at="2001-01-01")

    assert [link.page_id for link in outgoing(books, "notes/a.md")] == [None, None]
    assert incoming(books, "notes/a.md") == []
