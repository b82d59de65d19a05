"""A committed write is answered as committed, whatever becomes of the look at its file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from memory_core.clock import FakeClock
from memory_core.commands.unseen_edits import UnseenEdits
from memory_core.errors import StorageStopped, Unavailable
from memory_core.ids import id_text


class Gone:
    """A database that cannot be asked."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def snapshot(self) -> Any:
        raise self._error


@pytest.mark.parametrize(
    "error", [StorageStopped("no disk"), Unavailable("away"), IsADirectoryError(21, "x")]
)
def test_a_look_that_fails_does_not_turn_a_committed_write_into_a_failure(tmp_path: Path, error: Exception):
    answer = {
        "version_id": id_text(bytes(16)),
        "page_id": id_text(bytes(16)),
        "changed": True,
        "path": "a.md",
    }

    edits = UnseenEdits(tmp_path, Gone(error), FakeClock())  # type: ignore[arg-type]

    assert edits.told(answer) == answer
