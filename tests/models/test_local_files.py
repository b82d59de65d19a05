"""Models in `<data>/models`: added whole or not at all, known by their hashes, and not taken away from who uses them."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import pytest

from memory_core.errors import Conflict, Corrupt, Invalid, NotFound, StorageFailed, Unavailable
from memory_core.models import local_files
from memory_core.models.local_files import MODEL_FILE, VOCABULARY_FILE, LocalModel


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    source = tmp_path / "source"
    source.mkdir()
    (source / "net").write_bytes(b"network" * 1000)
    (source / "words").write_bytes(b"[PAD]\n[UNK]\n")
    return {MODEL_FILE: source / "net", VOCABULARY_FILE: source / "words"}


def added(tmp_path: Path, files: dict[str, Path], name: str = "mine") -> LocalModel:
    return local_files.add(tmp_path / "models", name, files, max_tokens=128, measure=lambda _: 7)


def nobody(_model: LocalModel) -> list[str]:
    return []


def test_the_one_that_is_shipped_is_whole_and_is_the_one_that_we_know(tmp_path: Path):
    model = local_files.find(tmp_path, local_files.BUILT_IN.name)

    assert local_files.faults(model) == []
    assert model.is_built_in


def test_an_added_model_is_known_by_its_bytes(tmp_path: Path, files: dict[str, Path]):
    model = added(tmp_path, files)

    assert local_files.find(tmp_path / "models", "mine") == model
    assert (model.manifest.dimensions, local_files.faults(model)) == (7, [])
    assert [m.name for m in local_files.listed(tmp_path / "models")] == ["all-minilm-l6-v2", "mine"]
    files[MODEL_FILE].write_bytes(b"other")
    assert added(tmp_path, files, "other").manifest.revision != model.manifest.revision


def test_a_changed_file_is_found(tmp_path: Path, files: dict[str, Path]):
    model = added(tmp_path, files)
    path = model.paths[MODEL_FILE]
    path.write_bytes(path.read_bytes().replace(b"network", b"nEtwork", 1))

    assert local_files.faults(model) == [f"{MODEL_FILE} is not the file that was added: other bytes"]
    with pytest.raises(Corrupt, match="mine is damaged"):
        local_files.check(model)
    path.unlink()
    assert "cannot be read" in local_files.faults(model)[0]


@pytest.mark.parametrize("name", ["", "../up", "Upper", ".hidden", "a/b", "x" * 65, "all-minilm-l6-v2"])
def test_a_name_that_cannot_be_is_refused(tmp_path: Path, files: dict[str, Path], name: str):
    with pytest.raises(Invalid, match="no name for a model"):
        added(tmp_path, files, name)


def test_a_model_that_cannot_be_run_leaves_nothing_behind(tmp_path: Path, files: dict[str, Path]):
    def fails(_model: LocalModel) -> int:
        raise Invalid("it is no model")

    with pytest.raises(Invalid, match="it is no model"):
        local_files.add(tmp_path / "models", "mine", files, max_tokens=128, measure=fails)

    assert [entry.name for entry in (tmp_path / "models").iterdir()] == [".lock"]


def test_a_name_is_taken_once(tmp_path: Path, files: dict[str, Path]):
    added(tmp_path, files)

    with pytest.raises(Conflict, match="memoryd models remove mine"):
        added(tmp_path, files)


def test_a_model_that_something_refers_to_stays(tmp_path: Path, files: dict[str, Path]):
    model = added(tmp_path, files)

    with pytest.raises(Conflict, match="mine is in use: 12 vectors"):
        local_files.remove(tmp_path / "models", "mine", lambda _: ["12 vectors"])

    assert local_files.faults(model) == []


def test_a_model_stays_where_nobody_can_say_who_refers_to_it(tmp_path: Path, files: dict[str, Path]):
    model = added(tmp_path, files)

    def broken(_model: LocalModel) -> list[str]:
        raise StorageFailed("the database cannot be read")

    with pytest.raises(Unavailable, match=r"the database cannot be read.*so it stays"):
        local_files.remove(tmp_path / "models", "mine", broken)

    assert local_files.faults(model) == []


def test_what_nobody_refers_to_goes_with_all_its_files(tmp_path: Path, files: dict[str, Path]):
    added(tmp_path, files)

    local_files.remove(tmp_path / "models", "mine", nobody)

    assert [entry.name for entry in (tmp_path / "models").iterdir()] == [".lock"]
    with pytest.raises(NotFound):
        local_files.remove(tmp_path / "models", "mine", nobody)
    with pytest.raises(Conflict, match=r"memoryd\[local\]"):
        local_files.remove(tmp_path / "models", "all-minilm-l6-v2", nobody)


def test_binding_and_removal_exclude_each_other(tmp_path: Path, files: dict[str, Path]):
    added(tmp_path, files)
    models = tmp_path / "models"

    with local_files.binding(models), pytest.raises(Conflict, match="try again"):
        local_files.remove(models, "mine", nobody)

    asked, go_on = threading.Event(), threading.Event()

    def slowly(_model: LocalModel) -> list[str]:
        asked.set()
        assert go_on.wait(60)
        return []

    remover = threading.Thread(target=local_files.remove, args=(models, "mine", slowly))
    remover.start()
    assert asked.wait(60)
    # While it is asked who refers to it, nobody can begin to.
    with pytest.raises(Conflict, match="try again"), local_files.binding(models):
        pytest.fail("a model was bound while it was removed")
    go_on.set()
    remover.join()
    with local_files.binding(models), pytest.raises(Invalid):
        local_files.find(models, "mine")


def test_a_manifest_that_cannot_be_read_is_named(tmp_path: Path, files: dict[str, Path]):
    model = added(tmp_path, files)
    (tmp_path / "models" / "mine" / "manifest.json").write_text("{")

    with pytest.raises(Invalid, match=r"manifest\.json that can be read; remove"):
        local_files.find(tmp_path / "models", "mine")
    shutil.copytree(model.paths[MODEL_FILE].parent, tmp_path / "models" / "twin")
    assert [m.name for m in local_files.listed(tmp_path / "models")] == ["all-minilm-l6-v2"]
