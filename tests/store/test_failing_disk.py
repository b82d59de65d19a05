"""A disk that fails is the database's failure, wherever it is met."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest

from memory_core.clock import SystemClock
from memory_core.errors import NotFound, StorageFailed
from memory_core.store.database import Database
from tests.store.databases import new_writer


@pytest.fixture
def database(tmp_path: Path) -> Database:
    new_writer(tmp_path, SystemClock()).close()
    return Database(tmp_path / "memory.sqlite")


def _broken(*_: Any, **__: Any) -> Any:
    raise OSError(errno.EIO, "Input/output error")


def test_a_reader_that_is_open_meets_a_failing_disk_as_a_failed_database(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    with database.snapshot():
        pass
    monkeypatch.setattr(Path, "stat", _broken)

    with pytest.raises(StorageFailed, match="Input/output error"), database.snapshot():
        pass


def test_so_does_one_that_is_just_being_opened(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "is_symlink", _broken)

    with pytest.raises(StorageFailed), database.snapshot():
        pass


def test_a_file_that_is_simply_not_there_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(NotFound), Database(tmp_path / "memory.sqlite").snapshot():
        pass
