"""The embedder on this machine: the real model, in its own process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy
import pytest

from memory_core.clock import SystemClock
from memory_core.config import Settings
from memory_core.models import errors, local_files
from memory_core.models.bounds import Bounds
from memory_core.models.port import never
from memory_core.models.settings import ModelSettings, choose_embedder
from memory_core.models.vendors import local
from memory_core.models.vendors.local import LocalWire

ROOT = Path(__file__).parents[2]


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[subprocess.Popen[bytes]]]:
    """The processes that this test starts; ended by pid when it is over."""
    processes: list[subprocess.Popen[bytes]] = []
    monkeypatch.setattr(local, "_started", processes)
    yield processes
    for process in processes:
        process.kill()
        process.communicate()


@pytest.fixture
def wire(tmp_path: Path, started: list[subprocess.Popen[bytes]]) -> LocalWire:
    model = local_files.find(tmp_path / "models", "all-minilm-l6-v2")
    return LocalWire(model, tmp_path / "run")


def bounds(seconds: float = 60.0, cancel: Callable[[], bool] = never) -> Bounds:
    clock = SystemClock()
    return Bounds(clock=clock, cancel=cancel, deadline=clock.monotonic() + seconds)


def test_texts_of_one_meaning_are_nearer_than_others(wire: LocalWire):
    got = wire.embed(
        [
            "where did we decide to put the retry limit?",
            "the maximum number of retries is set in worker.toml",
            "bananas turn yellow when they are ripe",
        ],
        "document",
        bounds(),
    ).vectors

    near, far = float(got[0] @ got[1]), float(got[0] @ got[2])
    assert got.shape == (3, 384)
    assert numpy.allclose(numpy.linalg.norm(got, axis=1), 1.0, atol=1e-5)
    assert near > 0.4 > 0.1 > far


def test_a_text_has_one_vector_alone_and_among_others_and_however_long(wire: LocalWire):
    texts = ["the writer commits in groups", "word " * 5_000, "日本語のメモ", "x"]

    together = wire.embed(texts, "document", bounds()).vectors
    alone = numpy.concatenate([wire.embed([text], "query", bounds()).vectors for text in texts])

    assert numpy.allclose(together, alone, atol=1e-6)


def test_threads_and_processes_share_one_process(wire: LocalWire, started: list[subprocess.Popen[bytes]]):
    threads = [threading.Thread(target=wire.embed, args=(["a"], "query", bounds())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    script = f"""
        from tests.models import test_local_embedder as t
        from memory_core.models.vendors import local
        from pathlib import Path
        wire = local.LocalWire(t.local_files.find(Path({str(wire.run_dir)!r}), "all-minilm-l6-v2"), Path({str(wire.run_dir)!r}))
        wire.embed(["b"], "document", t.bounds())
        print(len(local._started))
    """

    other = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, cwd=ROOT, check=True
    )

    assert (len(started), other.stdout.strip()) == (1, "0")


def test_one_that_was_killed_is_started_again(wire: LocalWire, started: list[subprocess.Popen[bytes]]):
    first = wire.embed(["again"], "query", bounds()).vectors
    os.kill(started[0].pid, signal.SIGKILL)
    started[0].wait()

    second = wire.embed(["again"], "query", bounds()).vectors

    assert numpy.array_equal(first, second)
    assert len([process for process in started if process.poll() is None]) == 1


def test_it_ends_when_nobody_asks_it(wire: LocalWire, started: list[subprocess.Popen[bytes]]):
    replace(wire, idle_seconds=0.2).embed(["once"], "query", bounds())

    assert started[0].wait(timeout=60) == 0


@pytest.mark.kills
def test_it_dies_with_the_process_that_started_it(tmp_path: Path):
    script = f"""
        import sys, time
        from pathlib import Path
        from tests.models import test_local_embedder as t
        from memory_core.models.vendors import local
        place = Path({str(tmp_path)!r})
        local.LocalWire(t.local_files.find(place, "all-minilm-l6-v2"), place / "run").embed(["a"], "query", t.bounds())
        print(local._started[0].pid, flush=True)
        time.sleep(600)
    """
    parent = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    os.kill(pid, 0)

    parent.kill()
    parent.wait()

    deadline = time.monotonic() + 30
    while Path(f"/proc/{pid}").exists() and "Z" not in Path(f"/proc/{pid}/stat").read_text().split()[2]:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    parent.stdout.close()


def test_a_question_goes_before_the_texts_of_a_job(wire: LocalWire):
    wire.embed(["warm"], "query", bounds())
    done: list[str] = []

    def job() -> None:
        wire.embed(["a long text of a job " * 60] * 16, "document", bounds())
        done.append("job")

    thread = threading.Thread(target=job)
    thread.start()
    wire.embed(["a question"], "query", bounds())
    done.append("question")
    thread.join()

    assert done == ["question", "job"]


def test_a_cancelled_call_ends_before_its_texts_are_done(wire: LocalWire):
    wire.embed(["warm"], "query", bounds())
    asked = iter([False] * 3)

    with pytest.raises(errors.Cancelled):
        wire.embed(["a long text of a job " * 60] * 16, "document", bounds(cancel=lambda: next(asked, True)))


def test_the_path_of_the_socket_may_be_long(tmp_path: Path, started: list[subprocess.Popen[bytes]]):
    deep = tmp_path / ("d" * 60) / ("e" * 60) / "run dir"

    LocalWire(local_files.find(tmp_path, "all-minilm-l6-v2"), deep).embed(["a"], "query", bounds())

    assert (deep / "embedder.sock").stat().st_mode & 0o777 == 0o600


def test_nobody_meters_it_and_its_kind_of_text_may_have_a_prefix(
    tmp_path: Path, started: list[subprocess.Popen[bytes]]
):
    settings = Settings(data_dir=tmp_path)
    read = ModelSettings(embed_provider="local", embed_query_prefix="query: ")

    class Refusing:
        def reserve(self, planned: object) -> object:
            raise AssertionError("a local model costs nothing")

        def settle(self, reserved: object, usage: object, outcome: str) -> None: ...

    embedder = choose_embedder(read, SystemClock(), Refusing(), settings=settings)
    assert embedder is not None
    plain, asked = embedder.embed(["limit"]).vectors[0], embedder.embed(["limit"], "query").vectors[0]

    assert float(plain @ asked) < 0.99
    assert numpy.allclose(asked, embedder.embed(["query: limit"]).vectors[0], atol=1e-6)
