"""Which directory it is: the same after a rename, another one when it was replaced, none when it is gone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from client.durable import directory
from client.durable.errors import DirectoryGone
from memory_core.errors import Invalid, WorkspaceMismatch

NAMED = {"MEMORYD_HOST_ID": "ada-laptop"}


def test_workspace_identity_survives_directory_rename(tmp_path: Path) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    before.mkdir()
    one = directory.identity_of(before, NAMED)
    before.rename(after)
    other = directory.identity_of(after, NAMED)

    assert one.id == other.id
    assert (one.path, other.path) == (str(before), str(after))
    directory.verify(other)


def test_workspace_identity_rejects_directory_replaced_at_same_path(tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    found = directory.identity_of(place, NAMED)
    place.rename(tmp_path / "moved")
    place.mkdir()

    with pytest.raises(WorkspaceMismatch, match="another directory"):
        directory.verify(found)
    assert directory.identity_of(place, NAMED).id != found.id


def test_a_directory_that_vanished_fails_closed(tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    found = directory.identity_of(place, NAMED)
    place.rmdir()

    with pytest.raises(DirectoryGone):
        directory.verify(found)
    with pytest.raises(WorkspaceMismatch):
        directory.identity_of(place, NAMED)


def test_a_link_names_the_directory_behind_it(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")

    assert directory.identity_of(tmp_path / "link", NAMED) == directory.identity_of(tmp_path / "real", NAMED)


def test_a_file_is_no_directory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Invalid, match="no directory"):
        directory.identity_of(tmp_path / "file", NAMED)


def test_a_path_that_is_no_utf8_is_refused(tmp_path: Path) -> None:
    place = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    place.mkdir()
    with pytest.raises(Invalid, match="UTF-8"):
        directory.identity_of(place, NAMED)


def test_a_host_is_named_by_what_was_declared(tmp_path: Path) -> None:
    assert directory.host_id({"MEMORYD_HOST_ID": "  build-7 "}) == "build-7"
    with pytest.raises(Invalid):
        directory.identity_of(tmp_path, {"MEMORYD_HOST_ID": "two\nlines"})


def test_the_systems_id_names_a_host_and_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    system = "0123456789abcdef0123456789abcdef"
    monkeypatch.setattr(directory, "system_id", lambda: system)
    found = directory.host_id({})

    assert found == directory.host_id({})
    assert len(found) == 32
    assert found != system


def test_a_host_without_an_id_makes_one_and_keeps_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(directory, "system_id", lambda: "")
    environ = {"XDG_STATE_HOME": str(tmp_path)}
    found = directory.host_id(environ)
    file = tmp_path / "memoryd" / "host-id"

    assert found == directory.host_id(environ) == file.read_text().strip()
    assert file.stat().st_mode & 0o777 == 0o600
    assert [entry.name for entry in file.parent.iterdir()] == ["host-id"]
    file.write_text("")
    with pytest.raises(Invalid, match="MEMORYD_HOST_ID"):
        directory.host_id(environ)
