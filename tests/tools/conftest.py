from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from memory_core.commands.capture import RecordObservation
from tests.books import Books
from tests.factories import event
from tests.tools.context import Context


@pytest.fixture
def context(tmp_path: Path) -> Generator[Context]:
    books = Books(tmp_path)
    opened = event(session_key="s", cwd="/srv/alpha")
    books.apply(RecordObservation(event=opened, source="test"), principal="ada", token_scope="capture")
    yield Context(books=books)
    books.close()
