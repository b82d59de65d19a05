"""Which marker file counts, and what is read out of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from client.marker import NAME, marker_for
from client.policy import decision_on
from client.server import with_marker
from memory_core import limits

FULL = """\
workspace = "acme"
project = "ledger"
project_strategy = "repo-root"
drop_subagent_captures = "yes"
[recall]
default_global = true
[briefing]
inject_on_session_start = 1
max_chars = 2000
[memory]
recall_entries = 3
recall_bytes = true
confidence_threshold = 0.9
[capture]
ignore_paths = ["secrets/**"]
"""


def mark(directory: Path, text: str = 'workspace = "w"\n') -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / NAME).write_text(text, encoding="utf-8")
    return directory


def found(cwd: Path, home: Path) -> str:
    cwd.mkdir(parents=True, exist_ok=True)
    return marker_for(str(cwd), str(home)).root


def test_the_first_one_upwards_wins_and_none_is_merged(home: Path):
    mark(home, FULL)
    inner = mark(home / "src/app")

    assert found(home / "src/app/deep/er", home) == str(inner)
    assert marker_for(str(inner), str(home)).told["drop_subagent"] == ""
    assert found(home / "other", home) == str(home)


def test_the_search_ends_at_the_home(home: Path, tmp_path: Path):
    mark(tmp_path)
    assert found(home / "src", home) == ""


def test_elsewhere_it_ends_at_the_root_of_the_repository(home: Path, tmp_path: Path):
    mark(tmp_path / "work")
    (tmp_path / "work/repo/.git").mkdir(parents=True)
    assert found(tmp_path / "work/repo/src", home) == ""

    mark(tmp_path / "work/repo")
    assert found(tmp_path / "work/repo/src", home) == str(tmp_path / "work/repo")


def test_without_a_repository_it_does_not_leave_the_directory(home: Path, tmp_path: Path):
    mark(tmp_path / "work")

    assert found(tmp_path / "work", home) == str(tmp_path / "work")
    assert found(tmp_path / "work/below", home) == ""


def test_all_that_it_says_is_told(home: Path):
    marker = marker_for(str(mark(home / "a", FULL)), str(home))

    assert marker.told == {
        "workspace": "acme",
        "project": "ledger",
        "drop_subagent": "1",
        "default_global": "1",
        "briefing": "1",
        "briefing_budget": "2000",
        "recall_entries": "3",
        "recall_bytes": "none",
        "recall_confidence": "0.9",
    }
    assert (marker.capture, marker.problem) == ({"ignore_paths": ["secrets/**"]}, "")


def test_a_strategy_counts_only_without_a_project(home: Path):
    text = 'workspace = "w"\nproject_strategy = "{}"\n'
    assert marker_for(str(mark(home / "a", text.format("repo_root"))), str(home)).scope == {
        "workspace": "w",
        "project_strategy": "repo-root",
    }
    assert marker_for(str(mark(home / "b", text.format("magic"))), str(home)).scope == {"workspace": "w"}


def test_without_a_workspace_the_scope_is_not_used_and_the_rest_is(home: Path):
    marker = marker_for(str(mark(home, 'project = "x"\ndrop_subagent_captures = "on"\n')), str(home))

    assert (marker.scope, marker.told["drop_subagent"]) == ({}, "1")
    assert "workspace is missing" in marker.problem


@pytest.mark.parametrize("data", [b"a = = 1", b"\xff\xfe", b"#" * (limits.MARKER_MAX_BYTES + 1)])
def test_one_that_cannot_be_read_may_have_wished_anything(data: bytes, home: Path):
    (home / NAME).write_bytes(data)
    marker = marker_for(str(home), str(home))

    assert (marker.scope, marker.capture) == ({}, "unreadable")
    assert str(home) in marker.problem


def test_a_command_uses_it_unless_told_otherwise(home: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(mark(home / "a", FULL))
    none = {"workspace": None, "project": None}

    assert with_marker(none) == {"workspace": "acme", "project": "ledger"}
    for named in (
        {**none, "project": "x"},
        {**none, "workspace": "other"},
        {"path": "p"},
        {**none, "global": True},
    ):
        assert with_marker(named) == named
    monkeypatch.setenv("MEMORYD_IGNORE_MARKER", "1")
    assert with_marker(none) == none


def test_a_command_says_that_it_passes_a_broken_one_over(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(mark(home / "a", "workspace = = 1\n"))
    none = {"workspace": None, "project": None}

    assert with_marker(none) == none
    said = capsys.readouterr().err
    assert f"{home / 'a' / NAME} cannot be read" in said
    assert "line 1" in said


def test_why_a_broken_one_captures_nothing_is_named(home: Path):
    directory = mark(home / "a", "workspace = = 1\n")
    told = decision_on({}, marker_for(str(directory), str(home)), cwd=str(directory), home=str(home))

    assert "line 1" in str(told["reason"])
    assert "[capture] is no table" not in str(told["reason"])
