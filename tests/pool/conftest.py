from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pool.small_gate import SmallGate, small_gate

ROOT = Path(__file__).parents[2]
LOADER = ROOT / "tests" / "mutants" / "loader"


@pytest.fixture
def gate() -> Iterator[SmallGate]:
    with small_gate() as made:
        yield made


@pytest.fixture
def probe_kinds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Processes that a test starts know the kinds of `tests/mutants/job_kinds.py`, and so does this one."""
    monkeypatch.setenv("PYTHONPATH", f"{LOADER}:{ROOT}")
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setenv("MEMORYD_TEST_MUTANT", "job_kinds")
    monkeypatch.setenv("MEMORYD_DATA_DIR", str(tmp_path / "data"))
    from tests.mutants import job_kinds

    job_kinds.register()
