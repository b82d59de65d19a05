"""What pages name is kept with them, and finds them by the beginnings of words, inside its scope alone."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from memory_core import limits
from memory_core.commands.pages import DeletePage, WritePage
from memory_core.domain.entities import entities_of
from memory_core.store import entities
from tests.books import Books


@pytest.fixture
def books(tmp_path: Path) -> Generator[Books]:
    made = Books(tmp_path)
    yield made
    made.close()


def write(books: Books, path: str, body: str, project: str = "alpha", **more: Any) -> None:
    books.apply(WritePage(workspace="default", project=project, path=path, body=body, **more))


def names(books: Books) -> list[str]:
    return [row["name"] for row in books.query("SELECT name FROM entities ORDER BY name")]


def found(
    books: Books, *tokens: str, project: str | None = "alpha", expired: bool = False, limit: int = 10
) -> list[str]:
    """Paths of the pages that tokens lead to."""
    with books.database.snapshot() as reading:
        numbers = None if project is None else numbers_of(books, project)
        now = None if expired else books.clock.now_us()
        rows = entities.candidates(reading, tokens, numbers, now=now, limit=limit)
    return [
        books.query("SELECT path FROM pages WHERE number = ?", row["page_number"])[0]["path"] for row in rows
    ]


def numbers_of(books: Books, project: str) -> list[int]:
    return [row["number"] for row in books.query("SELECT number FROM projects WHERE name = ?", project)]


def test_a_page_is_found_by_what_it_says_declares_and_is_called(books: Books):
    write(
        books,
        "notes/uploads.md",
        "---\nentities: [Payment Gateway]\n---\ncalls parse_body in src/app/main.py",
    )

    for token in ("uploads", "payment", "gateway", "parse_body", "body", "main.py", "app", "pay"):
        assert found(books, token) == ["notes/uploads.md"], token
    assert found(books, "ayment", "calls") == []


def test_a_declared_name_stays_when_the_text_is_written_anew_without_it(books: Books):
    write(books, "notes/a.md", "---\nentities: [gateway]\n---\nold")
    write(books, "notes/a.md", "new text")

    assert found(books, "gateway") == ["notes/a.md"]


def test_what_a_page_names_follows_its_newest_version(books: Books):
    write(books, "notes/a.md", "calls old_name")
    write(books, "notes/a.md", "calls new_name")

    assert (found(books, "old_name"), found(books, "new_name")) == ([], ["notes/a.md"])
    assert "old_name" not in names(books)
    books.apply(DeletePage(workspace="default", project="alpha", path="notes/a.md"))
    assert (found(books, "new_name"), names(books)) == ([], [])
    assert books.query("SELECT 1 FROM entity_starts") == []
    write(books, "notes/a.md", "calls new_name again")
    assert found(books, "new_name") == ["notes/a.md"]


def test_a_rare_name_tells_more_than_a_common_one(books: Books):
    for number in range(6):
        write(books, f"notes/n{number}x.md", "about common_name")
    write(books, "notes/rare.md", "about rare_name")
    write(books, "notes/both.md", "about common_name and rare_name")

    assert found(books, "common_name", "rare_name")[:2] == ["notes/both.md", "notes/rare.md"]


def test_a_name_that_is_asked_for_whole_tells_more_than_one_that_begins_so(books: Books):
    write(books, "notes/a1x.md", "calls retry_after_failure_of_upload")
    write(books, "notes/b1x.md", "calls retry_now")

    assert found(books, "retry_now", "retry") == ["notes/b1x.md", "notes/a1x.md"]


def test_a_name_on_most_pages_still_answers_when_nothing_rarer_does(books: Books, monkeypatch: Any):
    monkeypatch.setattr("memory_core.limits.ENTITY_PAGES_COMMON", 2)
    for number in range(5):
        write(books, f"notes/n{number}x.md", "about common_name")
    write(books, "notes/rare.md", "about rare_name")

    assert len(found(books, "common_name")) == 5
    assert found(books, "common_name", "rare_name") == ["notes/rare.md"]


def test_of_a_beginning_that_very_many_names_have_those_count_that_end_with_it(books: Books):
    write(books, "notes/end.md", "about old_part")
    write(books, "notes/begin.md", "about part_number_one")
    assert found(books, "part") == ["notes/end.md", "notes/begin.md"]

    pages = limits.ENTITY_STARTS_COMMON // 60 + 1
    for page in range(pages):
        write(books, f"notes/n{page}x.md", " ".join(f"part_{page}x{number}" for number in range(60)))

    assert found(books, "part") == ["notes/end.md"]
    assert found(books, "part_number") == ["notes/begin.md"]


def test_the_part_that_says_the_name_is_what_is_found(books: Books):
    write(
        books,
        "notes/long.md",
        "# A\n\n" + "word " * 300 + "\n\n# B\n\ncalls parse_body there " + "word " * 100,
    )

    with books.database.snapshot() as reading:
        (row,) = entities.candidates(reading, ["parse_body"], None, now=0, limit=3)
        (other,) = entities.candidates(reading, ["long"], None, now=0, limit=3)

    def text_of(number: int) -> str:
        (chunk,) = books.query("SELECT text_start, text_end FROM page_chunks WHERE number = ?", number)
        body = books.query("SELECT substr(content, body_start + 1) AS body FROM page_versions")[0]["body"]
        return body[chunk["text_start"] : chunk["text_end"]]

    assert "parse_body" in text_of(row["chunk_number"])
    assert "parse_body" not in text_of(other["chunk_number"])


def test_of_other_projects_and_expired_pages_nothing_is_found(books: Books):
    write(books, "notes/here.md", "about one_name")
    write(books, "notes/there.md", "about one_name", "beta")
    write(books, "notes/old.md", "about one_name", expires_at="2001-01-01")

    assert found(books, "one_name") == ["notes/here.md"]
    assert found(books, "one_name", project="beta") == ["notes/there.md"]
    assert set(found(books, "one_name", project=None)) == {"notes/here.md", "notes/there.md"}
    assert set(found(books, "one_name", expired=True)) == {"notes/here.md", "notes/old.md"}
    assert found(books, "one_name", project="nowhere") == []


def test_a_project_that_goes_takes_its_names_with_it(books: Books):
    write(books, "notes/a.md", "about one_name")
    books.store.connection.execute("DELETE FROM projects")

    for table in ("entities", "entity_starts", "page_entities"):
        assert books.query(f"SELECT 1 FROM {table}") == []


_BODIES = ("calls one_name", "calls one_name and two_name", "see src/two/three.py", "nothing", "Ask @ada_l")
_paths = st.sampled_from(["notes/a.md", "notes/b.md", "decisions/c-d.md"])


class Upkeep(RuleBasedStateMachine):
    """Whatever is written and deleted, the tables hold what the pages that are there name, and nothing else."""

    def __init__(self) -> None:
        super().__init__()
        import tempfile

        self._directory = tempfile.TemporaryDirectory()
        self.books = Books(Path(self._directory.name))
        self.pages: dict[tuple[str, str], str] = {}

    @rule(project=st.sampled_from(["alpha", "beta"]), path=_paths, body=st.sampled_from(_BODIES))
    def write(self, project: str, path: str, body: str) -> None:
        write(self.books, path, body, project)
        self.pages[project, path] = body

    @rule(project=st.sampled_from(["alpha", "beta"]), path=_paths)
    def delete(self, project: str, path: str) -> None:
        self.books.apply(DeletePage(workspace="default", project=project, path=path))
        self.pages.pop((project, path), None)

    @invariant()
    def the_tables_hold_what_the_pages_name(self) -> None:
        rows = self.books.query(
            "SELECT j.name AS project, p.path, e.name FROM page_entities n JOIN entities e ON e.number = n.entity_number"
            " JOIN pages p ON p.number = n.page_number JOIN projects j ON j.number = e.project_number AND j.id = p.project_id"
        )
        kept = {(row["project"], row["path"], row["name"]) for row in rows}
        named = {
            (project, path, entity.name)
            for (project, path), body in self.pages.items()
            for entity in entities_of(path, body)
        }
        assert kept == named
        starts = self.books.query(
            "SELECT e.name, s.start FROM entity_starts s JOIN entities e ON e.number = s.entity_number"
        )
        assert {row["name"] for row in starts} == {name for _, _, name in named} == set(names(self.books))

    def teardown(self) -> None:
        self.books.close()
        self._directory.cleanup()


Upkeep.TestCase.settings = settings(max_examples=12, stateful_step_count=12, deadline=None)
TestUpkeep = Upkeep.TestCase


@given(tokens=st.lists(st.text(max_size=70), max_size=12))
@settings(max_examples=60, deadline=None)
def test_no_token_is_an_error(tokens: Sequence[str]):
    import tempfile

    with tempfile.TemporaryDirectory() as directory:
        books = Books(Path(directory))
        try:
            found(books, *[token for token in tokens if token.isprintable()])
        finally:
            books.close()
