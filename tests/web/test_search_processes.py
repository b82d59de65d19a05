"""Processes that only search give the answers of this one, and whatever becomes of them, every question is answered."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Generator
from dataclasses import fields, replace
from multiprocessing import Pipe
from pathlib import Path

import numpy
import pytest

from memory_core.commands.pages import WritePage
from memory_core.domain.embedding import EmbeddingModel
from memory_core.domain.project import Project
from memory_core.models.query_embedder import QueryVector
from memory_core.recall.search import Found, Question, search
from memory_core.recall.turns import Lost, Turns
from memory_core.recall.vectors import QuestionVector
from memory_core.store import projects
from memory_core.store.vector_matrix import VectorMatrix
from tests.books import Books
from tests.patience import until
from web import search_process
from web.search_process import Asked, packed
from web.search_processes import SearchProcess, SearchProcesses

_FENCE = re.compile(r"memoryd:recalled \w+")
pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def books(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Books]:
    (tmp_path / "db").mkdir()
    made = Books(tmp_path / "db")
    for number in range(12):
        body = f"# Rule {number}\n\nThe parser reads header {number} before the body."
        made.apply(WritePage(workspace="default", project="alpha", path=f"notes/rule-{number}.md", body=body))
    monkeypatch.setenv("MEMORYD_DATA_DIR", str(tmp_path))
    yield made
    made.close()


@pytest.fixture
def elsewhere(books: Books) -> Generator[SearchProcess]:
    made = SearchProcess()
    yield made
    made.close()


def _question(books: Books, text: str = "parser header 7") -> Question:
    with books.database.snapshot() as reading:
        project = Project.from_row(projects.named(reading, "default", "alpha"))
    return Question(
        text=text, projects=[project], now=books.clock.now_us(), principal="ada", explain=True, limit=5
    )


def _here(books: Books, question: Question) -> Found:
    with books.database.snapshot() as reading:
        return search(reading, question)


def _plain(found: Found) -> Found:
    """Without what differs from one time to the next."""
    hits = [replace(hit, snippet=_FENCE.sub("", hit.snippet)) for hit in found.hits]
    return replace(found, hits=hits, timings_ms={})


def test_another_process_finds_what_this_one_finds(books: Books, elsewhere: SearchProcess) -> None:
    for text in ("parser header 7", "rule-3.md", "nothing of the kind", "", "¿?"):
        question = _question(books, text)

        assert _plain(elsewhere(question)) == _plain(_here(books, question))


def test_it_finds_what_was_written_after_its_start(books: Books, elsewhere: SearchProcess) -> None:
    books.apply(
        WritePage(workspace="default", project="alpha", path="notes/new.md", body="# Quokka\n\nA quokka.")
    )

    assert [hit.path for hit in elsewhere(_question(books, "quokka")).hits] == ["notes/new.md"]


def test_a_question_goes_over_whole_with_its_vector() -> None:
    vector = QuestionVector(
        query=QueryVector(
            model=EmbeddingModel(provider="p", model="m", dimensions=3),
            vector=numpy.array([0.6, 0.0, 0.8], dtype=numpy.float32),
        ),
        matrix=VectorMatrix(),
    )
    sent = Question(
        text="é?",
        projects=None,
        now=5,
        principal="ada",
        limit=3,
        include_expired=True,
        pages_only=True,
        vector=vector,
    )

    came = search_process._question(
        search_process.msgspec.msgpack.decode(packed(sent), type=Asked), vector.matrix
    )

    assert came.vector is not None
    assert came.vector.query.model == vector.query.model
    assert came.vector.query.vector.tolist() == vector.query.vector.tolist()
    assert replace(came, vector=None) == replace(sent, vector=None)
    assert {field.name for field in fields(Question)} <= set(Asked.__struct_fields__)


def test_one_that_is_killed_is_lost_and_says_so(books: Books, elsewhere: SearchProcess) -> None:
    os.kill(elsewhere.process.pid, signal.SIGKILL)

    with pytest.raises(Lost):
        elsewhere(_question(books))
    assert not elsewhere.is_alive


def test_one_that_cannot_read_the_database_is_lost_and_the_error_is_met_here(
    books: Books, elsewhere: SearchProcess
) -> None:
    question = _question(books)
    books.store.path.rename(books.store.path.with_name("elsewhere.sqlite"))

    with pytest.raises(Lost):
        elsewhere(question)


def test_it_ends_with_whoever_holds_the_other_end(elsewhere: SearchProcess) -> None:
    elsewhere._connection.close()

    until(lambda: not elsewhere.is_alive, saying="the process has ended")


def test_it_ends_where_nobody_asks_for_a_while(books: Books) -> None:
    near, far = Pipe()

    search_process.answer_all(far, books.database, idle_seconds=0.01)

    assert near.recv_bytes() == search_process.READY


def test_who_waits_has_one_process_started_and_what_dies_is_replaced(books: Books) -> None:
    turns, question = Turns[Question, Found](0), _question(books)
    beside = SearchProcesses(turns, most=1)
    try:
        for _ in range(3):
            beside.somebody_waited()
        assert turns.answer(question, lambda: pytest.fail("there is no turn here")).hits
        (one,) = beside._running

        os.kill(one.process.pid, signal.SIGKILL)
        until(lambda: not one.is_alive, saying="it is gone")
        beside.somebody_waited()
        # Who is sent to the dead one waits for the other.
        assert turns.answer(question, lambda: pytest.fail("there is no turn here")).hits
        (other,) = beside._running
        assert other is not one
    finally:
        beside.close()
    assert not other.is_alive


def test_a_process_that_cannot_start_is_not_tried_at_once_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    monkeypatch.setenv("MEMORYD_DATA_DIR", str(tmp_path))
    monkeypatch.setattr("web.search_processes._MODULE", "web.there_is_no_such_module")
    beside = SearchProcesses(Turns[Question, Found](1), most=1)

    beside.somebody_waited()
    until(lambda: caplog.records, saying="it is said that it did not start")
    until(lambda: not beside._is_starting, saying="the try is over")
    beside.somebody_waited()

    assert not beside._is_starting
    assert len(caplog.records) == 1
