"""Vectors as a part of search: found in other words, merged with words, and missed without harm."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

from memory_core.errors import Unavailable
from memory_core.models.query_embedder import QueryVector
from memory_core.recall.vectors import QuestionVector
from memory_core.store.vector_matrix import VectorMatrix
from memory_core.tools import call_tool
from tests.books import Books
from tests.factories import Store
from tests.jobs.embedding_model import A, B, Maker, vector_of
from tests.tools.context import Context
from tests.vectors.conftest import say, write


@pytest.fixture
def books(tmp_path):
    made = Books(tmp_path)
    yield made
    made.close()


@pytest.fixture
def maker(books: Books) -> Maker:
    made = Maker(books.store)
    made.bind(A)
    return made


def context(books: Books, meant: str, model: Any = A) -> Context:
    """What is asked means what `meant` says."""
    vector = QuestionVector(
        query=QueryVector(model=model, vector=vector_of(meant, model)), matrix=VectorMatrix()
    )
    return Context(books, vectors=lambda _text: vector)


def query(of: Context, text: str, **more: Any) -> dict[str, Any]:
    return call_tool("memory_query", {"query": text, "project": "alpha", "workspace": "default", **more}, of)


def fill(store: Store) -> None:
    write(store, "notes/retries.md", "# Retries\nthe uploader tries three times")
    write(store, "notes/birds.md", "# Birds\nherons nest behind the wall")
    say(store, "please rename the parser")


def test_what_shares_no_word_is_found_by_its_meaning(books: Books, maker: Maker):
    fill(books.store)
    maker.all()

    found = query(context(books, "Retries the uploader tries three times"), "attempts", explain=True)

    assert found["hits"][0]["path"] == "notes/retries.md"
    assert "vector" in found["streams_active"]
    details = found["hits"][0]["score_details"]["streams"]["vector"]
    assert details["rank"] == 1
    assert details["cosine"] > 0.9
    assert "vector" in found["timings_ms"]


def test_a_turn_is_found_by_its_meaning(books: Books, maker: Maker):
    fill(books.store)
    maker.all()

    found = query(context(books, "please rename the parser"), "refactoring")

    assert "rename the parser" in found["hits"][0]["snippet"]


def test_what_is_far_is_no_answer(books: Books, maker: Maker):
    fill(books.store)
    maker.all()
    away = -sum(
        vector_of(text)
        for text in ("Retries the uploader tries three times", "Birds herons nest behind the wall")
    )
    vector = QuestionVector(
        query=QueryVector(model=A, vector=(away / numpy.linalg.norm(away)).astype(numpy.float32)),
        matrix=VectorMatrix(),
    )

    found = query(Context(books, vectors=lambda _: vector), "zymurgy")

    assert [hit["path"] for hit in found["hits"] if hit["path"].startswith("notes/")] == []


def test_a_dead_embedder_is_named_and_words_answer(books: Books, maker: Maker, caplog):
    fill(books.store)
    maker.all()

    def dead(_text: str) -> Any:
        raise Unavailable("the embedder failed a moment ago")

    found = query(Context(books, vectors=dead), "uploader")

    assert found["hits"][0]["path"] == "notes/retries.md"
    assert found["streams_failed"] == ["vector"]
    assert "vector" not in found["streams_active"]
    assert "question_not_embedded" in [getattr(r, "action", "") for r in caplog.records]


def test_without_an_embedder_the_stream_is_not_asked(books: Books, maker: Maker):
    fill(books.store)

    found = query(Context(books), "uploader")

    assert not found.get("streams_failed")
    assert "vector" not in found["streams_active"]


def test_a_question_by_another_model_than_the_kept_vectors_is_answered_by_words(books: Books, maker: Maker):
    fill(books.store)
    maker.all()

    found = query(context(books, "herons nest behind the wall", B), "uploader")

    assert [hit["path"] for hit in found["hits"]] == ["notes/retries.md"]


def test_nothing_of_another_project_comes_by_its_meaning(books: Books, maker: Maker):
    fill(books.store)
    write(books.store, "notes/secret.md", "# Retries\nthe uploader tries three times and a secret", "beta")
    maker.all()

    found = query(context(books, "Retries the uploader tries three times and a secret"), "attempts", limit=50)

    assert {hit["project"] for hit in found["hits"]} == {"alpha"}
