"""Each import contract refuses what it was written for: a violation is planted and must be named."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("memory_core", "web", "workers", "client")

PLANTS = {
    "memory_core knows nothing of its hosts": ("memory_core/domain/planted.py", "import flask"),
    "web, workers and client sit above memory_core": ("memory_core/domain/planted.py", "import workers"),
    "web knows workers.queue and nothing else": ("web/planted.py", "import workers.writer"),
    "the client works without the server's libraries": ("client/planted.py", "import sqlalchemy"),
    "layers inside memory_core": ("memory_core/store/planted.py", "import memory_core.commands"),
    "only the writer writes": ("web/planted.py", "import memory_core.store.transaction"),
    "plugins do not know one another": ("memory_core/agents/planted.py", "import memory_core.agents.codex"),
    "the domain is pure": ("memory_core/domain/planted.py", "import sqlalchemy"),
}


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Path:
    copy = tmp_path_factory.mktemp("house")
    for room in ROOMS:
        shutil.copytree(ROOT / room, copy / room, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", copy)
    return copy


def lint(house: Path) -> subprocess.CompletedProcess[str]:
    command = Path(sys.executable).with_name("lint-imports")
    return subprocess.run(
        [str(command), "--no-cache"],
        cwd=house,
        env={"PYTHONPATH": str(house), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_house_as_it_stands_keeps_every_contract(house: Path):
    result = lint(house)

    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize("contract", PLANTS)
def test_a_planted_violation_breaks_its_contract(house: Path, contract: str):
    name, line = PLANTS[contract]
    plant = house / name
    plant.write_text(line + "\n")
    try:
        result = lint(house)
    finally:
        plant.unlink()

    broken = [text for text in result.stdout.splitlines() if " BROKEN" in text and text.startswith(contract)]
    assert result.returncode != 0
    assert broken, result.stdout


def test_every_contract_has_a_plant():
    text = (ROOT / "pyproject.toml").read_text()
    names = [
        line.split('"')[1]
        for line in text.splitlines()
        if line.startswith('name = "') and "memoryd" not in line
    ]

    assert all(any(name.startswith(plant) for plant in PLANTS) for name in names)
    assert len(names) == len(PLANTS)


def test_a_module_that_no_layer_names_is_refused(house: Path):
    plant = house / "memory_core" / "planted.py"
    plant.write_text("")
    try:
        result = lint(house)
    finally:
        plant.unlink()

    assert result.returncode != 0
    assert "planted" in result.stdout
