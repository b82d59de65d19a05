"""Every part runs, at tiny sizes, against real processes; what its figures are does not matter here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.bench_parts import __main__ as command_line
from scripts.bench_parts.parts import Bench, parts
from scripts.bench_parts.sizes import TINY
from scripts.bench_parts.stack import Stack
from tests.e2e.running import MUTANT

pytestmark = pytest.mark.stack

#: Makes a clone and an environment of its own: minutes without a cache.
_TOO_LONG = {"start"}


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with Stack(tmp_path_factory.mktemp("bench")) as running:
        yield running


@pytest.mark.parametrize("name", [name for name in parts.names() if name not in _TOO_LONG])
def test_a_part_measures_something_and_finds_every_row(
    name: str, stack: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    # The part of the wiki has a stack of its own, and waits for its looks.
    monkeypatch.setenv(MUTANT, "quick_looks")
    assert command_line.main.name == "main"  # the parts are registered

    result = parts.get(name)(Bench(sizes=TINY, directory=tmp_path, say=lambda _: None, running=stack))

    assert result.complaints == []
    assert result.verified
    assert all(figure.value > 0 for figure in result.figures)
    assert any(figure.target for figure in result.figures)
