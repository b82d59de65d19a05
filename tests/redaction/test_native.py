"""The native scanner's compiled rules: taken over from the installation, made anew where they are of no use."""

from __future__ import annotations

from pathlib import Path

import pytest

from memory_core.redaction import native
from memory_core.redaction.native import NativeScanner


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installation's compiled rules; made by the real one's, so that few tests compile for seconds."""
    directory = tmp_path / "installed"
    NativeScanner(directory)
    monkeypatch.setattr(native, "INSTALLED_RULES", directory)
    return directory


def test_a_new_data_directory_takes_over_the_rules_of_the_installation(tmp_path: Path, installed: Path):
    (made,) = installed.iterdir()

    NativeScanner(tmp_path / "data")

    assert [file.read_bytes() for file in (tmp_path / "data").iterdir()] == [made.read_bytes()]


def test_damaged_rules_of_the_installation_are_made_anew(tmp_path: Path, installed: Path):
    (made,) = installed.iterdir()
    made.write_bytes(made.read_bytes()[:-4096])

    assert NativeScanner(tmp_path / "data").find(b"nothing here", 10.0) == []
