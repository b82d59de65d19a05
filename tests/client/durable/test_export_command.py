"""`memoryd export`, against the real gate."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path

import pytest

from client.durable.directory import identity_of
from tests.client.durable.gate import Gate
from tests.client.prompt import Prompt
from tests.durable.working import Client, said

pytestmark = pytest.mark.timeout(60)


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
