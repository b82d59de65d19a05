"""Somebody at a prompt."""

from __future__ import annotations

import json
from typing import Any

import pytest

from client.main import main


def told(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of one command."""
    with pytest.raises(SystemExit) as ended:
        main(list(words))
    said = capsys.readouterr()
    return int(ended.value.code or 0), said.out, said.err


class Prompt:
    """Calls commands as at a prompt; what the last one printed is in `out` and `err`."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self.out = self.err = ""

    def says(self, *words: str, code: int = 0) -> str:
        self._capsys.readouterr()
        ended, self.out, self.err = told(self._capsys, *words)
        assert ended == code, self.err
        return self.out

    def asks(self, *words: str) -> Any:
        """What the command says as JSON."""
        return json.loads(self.says(*words, "--json"))
