"""When the rendered files of a project are due."""

from __future__ import annotations

from collections.abc import Generator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from memory_core import limits
from memory_core.clock import MICROSECONDS
from memory_core.commands.folders import add_project
from memory_core.store import rendered
from memory_core.store.transaction import Transaction
from tests.books import Books

DELAY = limits.RENDER_DELAY_SECONDS * MICROSECONDS


@pytest.fixture
def books(tmp_path: Path) -> Generator[Books]:
    made = Books(tmp_path)
    yield made
    made.close()


def test_what_happened_in_one_transaction_makes_each_file_due_once_and_no_month_is_passed_over(books: Books):
    november, december = (
        int(datetime(2026, month, 1, tzinfo=UTC).timestamp()) * MICROSECONDS for month in (11, 12)
    )

    def work(tx: Transaction) -> None:
        project = add_project(tx, workspace="default", name="alpha")
        for now in (november, december - 1, december):
            tx.now = now
            rendered.touch(tx, project)

    books.transact(work)

    rows = books.query("SELECT name, due_at FROM rendered_files ORDER BY name")
    assert [(row["name"], row["due_at"] - DELAY) for row in rows] == [
        ("index.md", november),
        ("log-2026-11.md", november),
        ("log-2026-12.md", december),
    ]
