"""Local models while several processes bind, add and remove them at once, and after one of those was killed at it."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import pytest

from memory_core.commands import embeddings
from memory_core.config import Settings
from memory_core.errors import Conflict, CoreError
from memory_core.ids import IdSource
from memory_core.models import local_files
from memory_core.models.local_files import MODEL_FILE, VOCABULARY_FILE, LocalModel
from memory_core.store.database import open_writer
from tests.factories import FakeClock, Store, database
from tests.patience import SECONDS
from workers import local_models
from workers.writer.embeddings import Binding

ROUNDS = 30
_SPAWN = multiprocessing.get_context("spawn")
_together: list[Barrier] = []


@pytest.fixture
def home(tmp_path: Path) -> Settings:
    settings = Settings(data_dir=tmp_path / "data")
    settings.database.parent.mkdir(parents=True)
    database(settings.database.parent).close()
    (settings.data_dir / "source").mkdir()
    for name in ("net", "words"):
        (settings.data_dir / "source" / name).write_bytes(b"words\n" * 4_000)
    return settings


def files(home: Settings) -> dict[str, Path]:
    return {
        MODEL_FILE: home.data_dir / "source" / "net",
        VOCABULARY_FILE: home.data_dir / "source" / "words",
    }


@pytest.fixture
def pair() -> Iterator[ProcessPoolExecutor]:
    """Two processes, whose `_at_once` waits until both are there."""
    with ProcessPoolExecutor(2, _SPAWN, initializer=_meet_at, initargs=(_SPAWN.Barrier(2),)) as made:
        yield made


def _meet_at(barrier: Barrier) -> None:
    _together.append(barrier)


def both(
    pair: ProcessPoolExecutor, first: Callable[..., str], second: Callable[..., str], *given: Any
) -> list[str]:
    runs = [pair.submit(_at_once, each, *given) for each in (first, second)]
    return [run.result(SECONDS) for run in runs]


def _at_once(act: Callable[..., str], *given: Any) -> str:
    """What came of it: a word of `act`'s, or the code of its error."""
    _together[0].wait(SECONDS)
    try:
        return act(*given)
    except CoreError as error:
        return error.code


def add(home: Settings, _number: int = 0, name: str = "mine") -> str:
    local_files.add(home.models, name, files(home), max_tokens=64, measure=lambda _: 8)
    return "added"


def remove_later(home: Settings, number: int) -> str:
    """`number` lets it come sooner or later than who binds, at every point of what that one does."""
    for _ in range(number % 15 * 500):
        (home.models / "mine").exists()
    return remove(home)


def remove(home: Settings, _number: int = 0) -> str:
    local_models.remove(home, "mine")
    return "removed"


def bind(home: Settings, _number: int) -> str:
    """As a writer does that was configured for it, turn after turn."""
    binding = Binding(home)
    store = opened(home)
    with pytest.MonkeyPatch.context() as configured:
        configured.setenv("MEMORYD_MODELS__EMBED_PROVIDER", "local")
        configured.setenv("MEMORYD_MODELS__EMBED_MODEL", "mine")
        try:
            while (home.models / "mine").exists():
                with store.transaction() as tx:
                    was_bound = binding.keep(tx)
                if was_bound:
                    with store.transaction() as tx:
                        assert binding.keep(tx) == 0
                    return "bound"
        finally:
            store.close()
    return "gone"


def opened(home: Settings) -> Store:
    clock = FakeClock()
    return Store(path=home.database, connection=open_writer(home.database), clock=clock, ids=IdSource(clock))


@pytest.mark.stack
def test_of_one_who_binds_a_model_and_one_who_removes_it_one_wins(home: Settings, pair: ProcessPoolExecutor):
    seen: set[str] = set()
    for number in range(ROUNDS):
        if not (home.models / "mine").exists():
            add(home)

        binding, removing = both(pair, bind, remove_later, home, number)

        is_there = (home.models / "mine" / MODEL_FILE).is_file()
        if binding == "bound":
            assert (removing, is_there) == ("conflict", True), number
        else:
            assert (binding, removing, is_there) == ("gone", "removed", False), number
        seen.add(binding)
        store = opened(home)
        with store.transaction() as tx:
            embeddings.bind(tx, None)
        store.close()
    assert seen == {"bound", "gone"}


@pytest.mark.stack
def test_who_adds_or_removes_the_same_model_at_once_does_it_once(home: Settings, pair: ProcessPoolExecutor):
    for number in range(ROUNDS // 3):
        assert sorted(both(pair, add, add, home, number)) == ["added", "conflict"]
        assert local_files.faults(local_files.find(home.models, "mine")) == []

        first, second = sorted(both(pair, remove, remove, home, number))

        # The other one finds it busy or gone, never damaged.
        assert second == "removed"
        assert first in ("conflict", "not_found")
        assert [entry.name for entry in home.models.iterdir()] == [".lock"]


def _hang(said: Connection) -> None:
    said.send("here")
    threading.Event().wait()


def _adds_and_hangs(home: Settings, said: Connection) -> None:
    def measure(_model: LocalModel) -> int:
        _hang(said)
        return 8

    local_files.add(home.models, "half", files(home), max_tokens=64, measure=measure)


def _removes_and_hangs(home: Settings, said: Connection) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local_files.shutil, "rmtree", lambda *_, **__: _hang(said))
        local_files.remove(home.models, "mine", lambda _: [])


def _is_about_to_remove(home: Settings, said: Connection) -> None:
    def references(_model: LocalModel) -> list[str]:
        _hang(said)
        return []

    local_files.remove(home.models, "mine", references)


@pytest.mark.kills
@pytest.mark.parametrize(
    ("work", "left", "stays"),
    [
        (_adds_and_hangs, ".half.part", True),
        (_removes_and_hangs, ".mine.gone", False),
        (_is_about_to_remove, None, True),
    ],
)
def test_what_a_killed_process_left_is_never_listed_and_goes_with_the_next_change(
    home: Settings, work: Callable[..., None], left: str | None, stays: bool
):
    add(home)
    ours, theirs = _SPAWN.Pipe()
    process = _SPAWN.Process(target=work, args=(home, theirs), daemon=True)
    process.start()
    assert ours.poll(SECONDS)
    with pytest.raises(Conflict, match="try again"), local_files.binding(home.models):
        pytest.fail("a model was bound while another one was changed")
    process.kill()
    process.join(SECONDS)

    names = {entry.name for entry in home.models.iterdir()} - {".lock", "mine"}
    assert names == ({left} if left else set())
    listed = [model for model in local_files.listed(home.models) if not model.is_built_in]
    assert [model.name for model in listed] == (["mine"] if stays else [])
    assert [local_files.faults(model) for model in listed] == [[] for _ in listed]
    add(home, name="next")
    assert {entry.name for entry in home.models.iterdir()} == {".lock", "next", *(["mine"] if stays else [])}
