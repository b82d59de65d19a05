"""`memoryd export`, against the real gate."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path

import pytest

from client.durable.assets import Assets
from client.durable.directory import identity_of
from tests.client.durable.gate import Gate
from tests.client.prompt import Prompt
from tests.durable.working import Client, said


def test_what_is_kept_of_a_directory_is_exported(person: Prompt, gate: Gate, tmp_path: Path):
    place = asdict(identity_of(".", os.environ))
    client = Client(gate.house, directory=place, project="export")
    client.claim()
    client.append(said("one"), said("two"))
    person.says("knowledge", "remember", "build", "-b", "make all")
    person.says("knowledge", "remember", "build", "-b", "make test")
    person.says("knowledge", "remember", "elsewhere", "-b", "x", "--project", "another")
    file = tmp_path / "all.json"

    person.says("export", "--output", str(file))

    written = json.loads(file.read_text())
    assert (written["schema_version"], written["workspace"]["directory"]) == (1, place)
    assert [(s["session"]["id"], len(s["events"])) for s in written["sessions"]] == [(client.id, 2)]
    (known,) = written["knowledge"]
    assert (known["knowledge"]["key"], [v["version"] for v in known["versions"]]) == ("build", [2, 1])


@pytest.mark.parametrize("is_link", [False, True], ids=["a file", "a link to nothing"])
def test_export_refuses_to_replace_existing_file(person: Prompt, tmp_path: Path, is_link: bool):
    file = tmp_path / "all.json"
    if is_link:
        file.symlink_to(tmp_path / "nowhere")
    else:
        file.write_text("mine")

    person.says("export", "--output", str(file), code=1)

    assert "is there already" in person.err
    assert not (tmp_path / "nowhere").exists()
    assert file.is_symlink() if is_link else file.read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ([] if is_link else ["all.json"])


def test_an_empty_directory_is_exported_as_empty(person: Prompt):
    written = json.loads(person.says("export"))
    assert (written["sessions"], written["knowledge"]) == ([], [])


def test_an_export_names_assets_whose_bytes_are_not_in_it(person: Prompt, gate: Gate):
    place = asdict(identity_of(".", os.environ))
    client = Client(gate.house, directory=place, project="pictures")
    data = [b"\x89PNG\x00 first", b"\x89PNG\x00 second"]
    links = [Assets(gate.transport(), lambda: client.id).take_in(one, "image") for one in data]
    client.claim()
    told = [{"sha256": link.sha256, "bytes": link.bytes, "kind": "image"} for link in links]
    client.append(said("none"), {**said("two pictures"), "assets": told}, {**said("one"), "assets": told[:1]})
    client.post("release", {"directory": place})

    (whole,) = json.loads(person.says("export"))["sessions"]

    alone = json.loads(person.says("sessions", "export", client.id))
    assert whole["assets"] == alone["assets"]
    ids = [event["id"] for event in whole["events"]]
    named = [(ids.index(a["event_id"]), a["ordinal"], a["sha256"], a["kind"]) for a in whole["assets"]]
    first, second = (link["sha256"] for link in told)
    assert named == [(1, 0, first, "image"), (1, 1, second, "image"), (2, 0, first, "image")]
    assert all("assets" not in event for event in whole["events"])
    # What is named can be had.
    for event, ordinal in ((1, 1), (2, 0)):
        answer = gate.house.get(
            f"/api/v1/durable-sessions/{client.id}/events/{ids[event]}/assets/{ordinal}?kind=image"
        )
        assert answer.data == data[ordinal if event == 1 else 0]


def test_a_project_that_is_not_there_is_told_before_anything_is_written(person: Prompt):
    assert person.says("export", "--project", "nowhere", code=1) == ""
    assert "nowhere" in person.err
