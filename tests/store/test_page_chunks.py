"""The parts of pages follow the pages, and keep their numbers where they say what they said."""

from __future__ import annotations

from pathlib import Path

import pytest

from memory_core.commands.folders import add_project
from memory_core.commands.pages import DeletePage, WritePage, put_page
from memory_core.commands.versions import PageDraft
from memory_core.domain.page import page_path
from memory_core.store.statement import text_statement
from memory_core.store.transaction import Transaction
from tests.books import Books

LONG = "A sentence that says little. " * 20
SECTIONS = {name: f"# {name}\n\n{name.lower()}mark. {LONG}\n" for name in ("Deploy", "Rollback", "Backup")}


@pytest.fixture
def books(tmp_path: Path):
    made = Books(tmp_path)
    yield made
    made.close()


def write(books: Books, *names: str, path: str = "a.md", project: str = "alpha") -> None:
    body = "\n".join(SECTIONS[name] for name in names)
    books.apply(WritePage(workspace="default", project=project, path=path, title="T", body=body))


def numbers(books: Books) -> dict[str, int]:
    rows = books.query("SELECT number, heading FROM page_chunks ORDER BY ord")
    return {row["heading"]: row["number"] for row in rows}


def found(books: Books, words: str) -> list[int]:
    rows = books.query("SELECT rowid FROM chunks_fts WHERE chunks_fts MATCH ? ORDER BY rowid", words)
    return [row["rowid"] for row in rows]


def test_a_part_that_stays_keeps_its_number_wherever_it_stands(books: Books):
    write(books, "Deploy", "Backup")
    before = numbers(books)

    write(books, "Rollback", "Backup", "Deploy")

    after = numbers(books)
    assert list(after) == ["Rollback", "Backup", "Deploy"]
    assert {name: after[name] for name in before} == before
    rows = books.query(
        "SELECT c.heading, substr(v.content, v.body_start + c.text_start + 1, 8) AS text FROM page_chunks c"
        " JOIN pages p ON p.number = c.page_number JOIN page_versions v ON v.id = p.version_id"
    )
    assert all(row["text"].startswith(f"# {row['heading']}"[:8]) for row in rows)


def test_a_part_that_goes_is_found_no_longer_and_its_number_is_not_given_again(books: Books):
    write(books, "Deploy", "Rollback")
    gone = numbers(books)["Rollback"]

    write(books, "Deploy")
    assert found(books, "rollbackmark") == []
    write(books, "Deploy", "Rollback")

    assert numbers(books)["Rollback"] > gone
    assert found(books, "rollbackmark") == [numbers(books)["Rollback"]]


@pytest.mark.parametrize(
    "goes",
    [
        DeletePage(workspace="default", project="alpha", path="a.md"),
        "DELETE FROM pages",
        "DELETE FROM projects",
        "DELETE FROM workspaces",
    ],
)
def test_parts_go_with_their_page_however_it_goes(books: Books, goes: DeletePage | str):
    write(books, "Deploy")

    if isinstance(goes, str):
        books.store.connection.execute(goes)
    else:
        books.apply(goes)

    assert (numbers(books), found(books, "deploymark")) == ({}, [])
    books.store.connection.execute("INSERT INTO chunks_fts(chunks_fts) VALUES ('integrity-check')")


def test_of_a_page_that_is_written_twice_in_one_transaction_the_last_text_is_found(books: Books):
    def twice(tx: Transaction) -> None:
        project = add_project(tx, workspace="default", name="alpha")
        for name in ("Deploy", "Rollback"):
            put_page(tx, project, PageDraft(path=page_path("a.md"), body=SECTIONS[name]))

    books.transact(twice)

    assert (found(books, "deploymark"), found(books, "rollbackmark")) == ([], list(numbers(books).values()))


def test_a_page_that_goes_in_the_transaction_that_wrote_it_is_not_found(books: Books):
    def work(tx: Transaction) -> None:
        project = add_project(tx, workspace="default", name="alpha")
        put_page(tx, project, PageDraft(path=page_path("a.md"), body=SECTIONS["Deploy"]))
        tx.run(text_statement("DELETE FROM projects"))

    books.transact(work)

    assert (numbers(books), found(books, "deploymark")) == ({}, [])


def test_parts_are_found_inside_their_project_only(books: Books):
    write(books, "Deploy", project="alpha")
    write(books, "Deploy", project="beta")

    assert [len(found(books, f"scope : p{number} AND deploymark")) for number in (1, 2, 12)] == [1, 1, 0]
