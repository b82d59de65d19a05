"""What `tests/conftest.py` says of files is said of files that are there."""

from __future__ import annotations

from pathlib import Path

from tests.conftest import APART, LONG

ROOT = Path(__file__).parents[2]


def test_the_files_that_are_named_are_there():
    assert [name for name in (*LONG, *APART) if not (ROOT / name).is_file()] == []
