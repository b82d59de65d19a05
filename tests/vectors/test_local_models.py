"""`memoryd models` beside a data directory: who refers to a model, and that nobody takes one away from who uses it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from memory_core.commands import embeddings
from memory_core.config import Settings
from memory_core.errors import Conflict, Corrupt, Invalid, Unavailable
from memory_core.models import local_files
from memory_core.models.local_files import MODEL_FILE, VOCABULARY_FILE
from memory_core.models.settings import embedding_model, read_settings
from tests.e2e.running import ROOT
from tests.factories import Store, database
from workers import local_models
from workers.writer.embeddings import Binding


@pytest.fixture
def home(tmp_path: Path) -> Settings:
    (tmp_path / "data" / "db").mkdir(parents=True)
    return Settings(data_dir=tmp_path / "data")


@pytest.fixture
def store(home: Settings):
    made = database(home.database.parent)
    yield made
    made.close()


def add(home: Settings, name: str = "mine") -> None:
    """The built-in model under another name: a real one, so that it can be run."""
    shipped = local_files.find(home.models, local_files.BUILT_IN.name)
    added = local_models.add(
        home, name, str(shipped.paths[MODEL_FILE]), str(shipped.paths[VOCABULARY_FILE]), 64
    )
    assert added["dimensions"] == 384


def configure(monkeypatch: pytest.MonkeyPatch, model: str) -> None:
    monkeypatch.setenv("MEMORYD_MODELS__EMBED_PROVIDER", "local")
    monkeypatch.setenv("MEMORYD_MODELS__EMBED_MODEL", model)


def bind(store: Store, binding: Binding) -> int:
    with store.transaction() as tx:
        return binding.keep(tx)


def test_an_added_model_is_one_of_its_own_and_goes_when_nobody_uses_it(home: Settings, store: Store):
    add(home)

    mine = next(m for m in local_models.listed(home)["models"] if m["name"] == "mine")
    assert (mine["in_use"], mine["built_in"], mine["max_tokens"]) == ([], False, 64)
    assert [m["faults"] for m in local_models.verify(home, None)["models"]] == [[], []]
    assert local_models.remove(home, "mine")["name"] == "mine"
    assert [m["name"] for m in local_models.listed(home)["models"]] == ["all-minilm-l6-v2"]


def test_files_that_are_no_model_are_refused_and_leave_nothing(home: Settings, tmp_path: Path):
    (tmp_path / "net.onnx").write_bytes(b"no network")
    (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n")

    with pytest.raises(Invalid, match="no sentence model that can be run"):
        local_models.add(home, "bad", str(tmp_path / "net.onnx"), str(tmp_path / "vocab.txt"), 64)
    assert [path.name for path in home.models.iterdir()] == [".lock"]


def test_a_configured_model_stays(home: Settings, store: Store, monkeypatch):
    add(home)
    configure(monkeypatch, "mine")

    with pytest.raises(Conflict, match="configured as embed_model"):
        local_models.remove(home, "mine")


def test_a_model_stays_while_it_is_bound_or_has_vectors_also_when_it_is_configured_no_more(
    home: Settings, store: Store, monkeypatch
):
    add(home)
    with monkeypatch.context() as configured:
        configure(configured, "mine")
        wanted = embedding_model(read_settings(home), home)
        assert bind(store, Binding(home)) == 1
    with pytest.raises(Conflict, match="it is the embedder of this install"):
        local_models.remove(home, "mine")
    with store.transaction() as tx:
        embeddings.bind(tx, None)
    store.connection.execute("INSERT INTO embeddings VALUES (1, zeroblob(16), zeroblob(1536), NULL, 1)")
    with pytest.raises(Conflict, match="in use: 1 vector"):
        local_models.remove(home, "mine")
    assert wanted is not None
    store.connection.execute("DELETE FROM embeddings")

    local_models.remove(home, "mine")


@pytest.mark.parametrize("reference", ["mine", "local:mine", "mine@"])
def test_a_model_that_a_durable_session_names_stays(
    home: Settings, store: Store, reference: str, monkeypatch
):
    add(home)
    identity = local_files.find(home.models, "mine").identity
    named = identity if reference.endswith("@") else reference
    store.connection.execute("PRAGMA foreign_keys=OFF")
    columns = store.all("SELECT name, type, \"notnull\" AS needed FROM pragma_table_info('durable_sessions')")
    values: dict[str, Any] = {c["name"]: 1 if c["type"] != "TEXT" else "{}" for c in columns if c["needed"]}
    values |= {"model_reference": named}
    names = ", ".join(f'"{name}"' for name in values)
    store.connection.execute("PRAGMA ignore_check_constraints=ON")
    store.connection.execute(
        f"INSERT INTO durable_sessions ({names}) VALUES ({', '.join('?' * len(values))})",
        list(values.values()),
    )

    with pytest.raises(Conflict, match="1 durable session names it"):
        local_models.remove(home, "mine")


def test_where_no_database_was_ever_made_nobody_refers_and_none_is_made(home: Settings):
    add(home)

    local_models.remove(home, "mine")

    assert not home.database.exists()


@pytest.mark.parametrize("damage", ["no database", "another schema"])
def test_a_database_that_cannot_be_asked_keeps_the_model(home: Settings, store: Store, damage: str):
    add(home)
    if damage == "no database":
        store.close()
        home.database.write_bytes(b"x" * 8192)
    else:
        store.connection.execute("UPDATE alembic_version SET version_num = '9999'")

    with pytest.raises(Unavailable, match="so it stays"):
        local_models.remove(home, "mine")

    assert local_files.faults(local_files.find(home.models, "mine")) == []


def test_a_broken_configuration_keeps_the_model(home: Settings, store: Store):
    add(home)
    (home.data_dir / "config.toml").write_text("[models]\nno_such_key = 1\n")

    with pytest.raises(Unavailable, match="no_such_key"):
        local_models.remove(home, "mine")


def test_a_model_is_not_removed_between_its_binding_and_the_commit(home: Settings, store: Store, monkeypatch):
    """The mutation lock is held until the row is seen committed: before that no other process can know of it."""
    add(home)
    binding = Binding(home)
    with monkeypatch.context() as configured:
        configure(configured, "mine")
        store.connection.execute("BEGIN IMMEDIATE")
        store.connection.execute("ROLLBACK")
        with store.transaction() as tx:
            assert binding.keep(tx) == 1
            # Not committed yet; the remover's own configuration knows nothing of it.
            with pytest.raises(Conflict, match="try again in a moment"):
                local_files.remove(home.models, "mine", lambda _: [])
        assert bind(store, binding) == 0
    with pytest.raises(Conflict, match="it is the embedder of this install"):
        local_models.remove(home, "mine")


def test_a_model_that_is_just_being_removed_is_not_bound(home: Settings, store: Store, monkeypatch):
    add(home)
    configure(monkeypatch, "mine")
    binding = Binding(home)

    def while_it_is_asked(_model: object) -> list[str]:
        assert bind(store, binding) == 0
        return []

    local_files.remove(home.models, "mine", while_it_is_asked)

    assert bind(store, binding) == 0
    assert store.all("SELECT * FROM embedding_models") == []


def test_a_model_that_comes_later_is_bound_then(home: Settings, store: Store, monkeypatch, caplog):
    configure(monkeypatch, "mine")
    binding = Binding(home)
    assert [bind(store, binding), bind(store, binding)] == [0, 0]
    assert [getattr(r, "action", "") for r in caplog.records] == ["embedder_unusable"]
    with monkeypatch.context() as other:
        other.delenv("MEMORYD_MODELS__EMBED_MODEL")
        add(home)

    assert [bind(store, binding), bind(store, binding), bind(store, binding)] == [1, 0, 0]


def test_a_damaged_model_is_said_so_and_not_run(home: Settings):
    add(home)
    path = local_files.find(home.models, "mine").paths[VOCABULARY_FILE]
    path.write_text(path.read_text() + "more\n")

    with pytest.raises(Corrupt, match=r"mine: vocab\.txt is not the file"):
        local_models.verify(home, "mine")
    from memory_core.models.local_runner import LocalRunner

    with pytest.raises(Corrupt):
        LocalRunner(local_files.find(home.models, "mine"))


def test_the_command_answers_json_and_says_errors_so(home: Settings, monkeypatch):
    def run(*arguments: str) -> tuple[int, Any]:
        done = subprocess.run(
            [sys.executable, "-m", "workers.local_models", *arguments],
            capture_output=True,
            env={"MEMORYD_DATA_DIR": str(home.data_dir), "PATH": "", "PYTHONPATH": str(ROOT)},
            check=False,
        )
        return done.returncode, json.loads(done.stdout)

    assert run("list")[1]["models"][0]["name"] == "all-minilm-l6-v2"
    code, said = run("remove", '{"name": "absent"}')
    assert (code, said["error"]) == (1, "not_found")
