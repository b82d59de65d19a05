"""What lies near pages: along links both ways and along rare names, inside the scope alone, and never in circles."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from memory_core import limits
from memory_core.commands.pages import DeletePage, WritePage
from memory_core.store import graph
from tests.books import Books


@pytest.fixture
def books(tmp_path: Path) -> Generator[Books]:
    made = Books(tmp_path)
    yield made
    made.close()


def write(books: Books, path: str, body: str, project: str = "alpha", **more: Any) -> None:
    books.apply(WritePage(workspace="default", project=project, path=path, body=body, **more))


def near(
    books: Books,
    *seeds: str,
    projects: tuple[str, ...] | None = ("alpha",),
    limit: int = 50,
    expired: bool = False,
) -> list[str]:
    """Paths of what lies near the pages at these paths of `alpha`, the nearest first."""

    def number(path: str) -> int:
        return books.query(
            "SELECT p.number FROM pages p JOIN projects j ON j.id = p.project_id WHERE p.path = ? AND j.name = 'alpha'",
            path,
        )[0]["number"]

    numbers = None
    if projects is not None:
        numbers = [
            row["number"]
            for row in books.query("SELECT number, name FROM projects")
            if row["name"] in projects
        ]
    with books.database.snapshot() as reading:
        now = None if expired else books.clock.now_us()
        rows = graph.near(reading, [(number(path), 1.0) for path in seeds], numbers, now=now, limit=limit)
    assert [row["weight"] for row in rows] == sorted((row["weight"] for row in rows), reverse=True)
    return [
        books.query("SELECT path FROM pages WHERE number = ?", row["page_number"])[0]["path"] for row in rows
    ]


def test_where_a_page_points_comes_before_what_points_to_it(books: Books):
    write(books, "notes/seed.md", "[[notes/out]]")
    write(books, "notes/out.md", "out")
    write(books, "notes/in.md", "[[notes/seed]]")
    write(books, "notes/apart.md", "apart")

    assert near(books, "notes/seed.md") == ["notes/out.md", "notes/in.md"]


def test_two_steps_are_walked_and_no_more(books: Books):
    for here, there in (("a1", "b1"), ("b1", "c1"), ("c1", "d1"), ("d1", "e1")):
        write(books, f"notes/{here}.md", f"[[notes/{there}]]")

    assert near(books, "notes/a1.md") == ["notes/b1.md", "notes/c1.md"]


def test_a_circle_ends_and_seeds_are_not_in_the_answer(books: Books):
    for here, there in (("a1", "b1"), ("b1", "a1")):
        write(books, f"notes/{here}.md", f"[[notes/{there}]] [[notes/{here}]]")

    assert near(books, "notes/a1.md") == ["notes/b1.md"]
    assert near(books, "notes/a1.md", "notes/b1.md") == []


def test_pages_that_name_the_same_rare_thing_are_near_and_those_of_a_common_one_are_not(books: Books):
    write(books, "notes/seed.md", "about rare_thing and common_thing")
    write(books, "notes/mate.md", "about rare_thing")
    for number in range(limits.GRAPH_SHARED_MAX + 1):
        write(books, f"notes/other{number}.md", "about common_thing")

    assert near(books, "notes/seed.md") == ["notes/mate.md"]


def test_a_page_that_little_is_left_for_is_not_gone_to(books: Books):
    write(books, "notes/seed.md", "about shared_thing")
    write(books, "notes/mate.md", "about shared_thing and other_thing, see [[notes/linked]]")
    write(books, "notes/linked.md", "linked")
    for number in range(7):
        write(books, f"notes/like{number}.md", "about shared_thing")
        write(books, f"notes/unlike{number}.md", "about other_thing")

    found = near(books, "notes/seed.md")

    assert found[-1] == "notes/linked.md"
    assert {path for path in found if "like" in path} == {f"notes/like{number}.md" for number in range(7)}


def test_a_short_link_leads_to_the_page_that_is_called_so(books: Books):
    write(books, "notes/seed.md", "about the `gateway`")
    write(books, "decisions/gateway.md", "one of them")

    assert near(books, "notes/seed.md") == ["decisions/gateway.md"]


@pytest.mark.parametrize("hidden", ["expired", "deleted", "elsewhere"])
def test_nobody_walks_through_what_is_hidden(books: Books, hidden: str):
    project = "beta" if hidden == "elsewhere" else "alpha"
    prefix = "beta:" if hidden == "elsewhere" else ""
    more = {"expires_at": "2001-01-01"} if hidden == "expired" else {}
    write(books, "notes/seed.md", f"[[{prefix}notes/hidden]]")
    write(books, "notes/hidden.md", "[[alpha:notes/behind]] [[alpha:notes/seed]]", project, **more)
    write(books, "notes/behind.md", "behind")
    if hidden == "deleted":
        books.apply(DeletePage(workspace="default", project=project, path="notes/hidden.md"))

    assert near(books, "notes/seed.md") == []


def test_projects_that_are_asked_together_are_walked_through(books: Books):
    write(books, "notes/seed.md", "[[beta:notes/there]]")
    write(books, "notes/there.md", "[[alpha:notes/back]]", "beta")
    write(books, "notes/points.md", "[[alpha:notes/seed]]", "beta")
    write(books, "notes/back.md", "back")

    expected = ["notes/there.md", "notes/points.md", "notes/back.md"]
    assert near(books, "notes/seed.md", projects=("alpha", "beta")) == expected
    assert near(books, "notes/seed.md", projects=None) == expected
    assert near(books, "notes/seed.md") == []


def test_expired_pages_are_walked_when_they_are_asked_for(books: Books):
    write(books, "notes/seed.md", "[[notes/old]]")
    write(books, "notes/old.md", "old", expires_at="2001-01-01")

    assert near(books, "notes/seed.md", expired=True) == ["notes/old.md"]


def test_a_page_that_everything_points_to_costs_a_bounded_walk(books: Books):
    write(books, "notes/hub.md", "hub")
    for number in range(limits.GRAPH_ENDS_MAX + 20):
        write(books, f"notes/page{number}.md", "[[notes/hub]]")

    found = near(books, "notes/hub.md", limit=1_000)

    assert len(found) == limits.GRAPH_ENDS_MAX
    assert f"notes/page{limits.GRAPH_ENDS_MAX + 19}.md" in found
