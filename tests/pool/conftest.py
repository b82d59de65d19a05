from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from memory_core.clock import SystemClock
from tests.pool.one_slot import NURSERY, Slot
from tests.pool.small_gate import SmallGate, small_gate
from workers.pool.killable import ComputeChild

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


@pytest.fixture(scope="module")
def warm_child() -> Iterator[ComputeChild]:
    """Starting a child takes most of a test's time; whoever needs one of its own takes `own_slot`."""
    child = ComputeChild(NURSERY.spawn, SystemClock())
    yield child
    child.end()


@pytest.fixture
def slot(gate: SmallGate, warm_child: ComputeChild) -> Iterator[Slot]:
    made = Slot(gate, warm_child)
    yield made
    made.gate.close()


@pytest.fixture
def own_slot(gate: SmallGate) -> Iterator[Slot]:
    made = Slot(gate)
    yield made
    made.child.end()
    made.gate.close()


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    return tmp_path / "notes"
