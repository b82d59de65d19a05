"""Somebody at a prompt."""

from __future__ import annotations

import json
from typing import Any

import pytest

from client.main import main


class Prompt:
    """Calls commands as at a prompt; what the last one printed is in `out` and `err`."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self.out = self.err = ""

    def says(self, *words: str, code: int = 0) -> str:
        self._capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(list(words))
        self.out, self.err = self._capsys.readouterr()
        assert (ended.value.code or 0) == code, self.err
        return self.out

    def asks(self, *words: str) -> Any:
        """What the command says as JSON."""
        return json.loads(self.says(*words, "--json"))
