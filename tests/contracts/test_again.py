"""What `scripts/test` makes of a test that failed: `tests/again.py`, on small suites of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
INI = "[pytest]\nmarkers =\n    kills: kills\n"
LATE = """
def test_late():
    from pathlib import Path
    seen = Path("seen")
    is_first = not seen.exists()
    seen.touch()
    assert not is_first
"""
WRONG = "def test_wrong():\n    assert False\n"


def run(directory: Path, *options: str, **files: str) -> tuple[int, list[str]]:
    """The exit code, and what is said of tests that failed."""
    (directory / "pytest.ini").write_text(INI)
    for name, text in files.items():
        (directory / f"test_{name}.py").write_text(text)
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "tests.again", "-p", "no:cacheprovider", *options],
        cwd=directory,
        # The plugins of others take most of the time of so small a suite.
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    said = ran.stdout.partition("once more, alone")[2].splitlines()
    return ran.returncode, [line for line in said if ": test_" in line and line.startswith("failed")]


@pytest.mark.parametrize("options", [(), ("-p", "xdist", "-n", "2")], ids=["one process", "several"])
def test_what_passes_alone_is_forgiven_and_named(tmp_path: Path, options: tuple[str, ...]) -> None:
    code, said = run(tmp_path, *options, late=LATE, right="def test_right():\n    pass\n")

    assert code == 0
    assert said == ["failed beside others, passed alone: test_late.py::test_late"]


def test_what_fails_alone_too_is_not_forgiven_and_takes_the_others_with_it(tmp_path: Path) -> None:
    code, said = run(tmp_path, late=LATE, wrong=WRONG)

    assert code == 1
    assert said == [
        "failed beside others, passed alone: test_late.py::test_late",
        "failed beside others, failed alone: test_wrong.py::test_wrong",
    ]


def test_what_kills_is_never_forgiven(tmp_path: Path) -> None:
    code, said = run(tmp_path, late="import pytest\n\npytestmark = pytest.mark.kills\n" + LATE)

    assert code == 1
    assert said == ["failed, and counts as it is: test_late.py::test_late"]


def test_many_failures_are_no_matter_of_the_crowd(tmp_path: Path) -> None:
    many = "import pytest\n\n@pytest.mark.parametrize('n', range(11))" + LATE.replace("late()", "late(n)")
    code, said = run(tmp_path, late=many.replace('"seen"', 'f"seen{n}"'))

    assert (code, said) == (1, [])


def test_a_suite_that_cannot_be_read_is_not_forgiven(tmp_path: Path) -> None:
    code, _ = run(tmp_path, late=LATE, broken="import nothing_of_that_name\n")

    assert code == 2
