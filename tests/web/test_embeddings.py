"""Embeddings over HTTP: how far they are, making them on demand, and what a question's embedder may cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from memory_core.commands import embeddings
from memory_core.domain.embedding import EmbeddingModel
from memory_core.errors import Unavailable
from memory_core.models.errors import Unreachable
from memory_core.models.query_embedder import QueryEmbedder
from tests.jobs.embedding_model import WordEmbedder
from tests.web.house import House
from web.question_vectors import QuestionVectors

MODEL = EmbeddingModel(provider="openai", model="m", dimensions=8)
PATH = "/api/v1/embeddings"


@pytest.fixture
def house(house_factory: Callable[..., House]) -> Iterator[House]:
    house = house_factory()
    house.start_writer()
    yield house
    house.stop_writer()


def bind(house: House, model: EmbeddingModel | None = MODEL) -> None:
    house.engine.originate(lambda tx: int(embeddings.bind(tx, model)))


def write(house: House, project: str, path: str) -> None:
    body = {"project": project, "workspace": "default", "path": path, "body": f"# {path}\nwords"}
    assert house.post("/api/v1/tools/memory_write_page", body).status_code == 200


def test_without_an_embedder_it_says_so_and_nothing_is_made(house: House):
    assert house.get(PATH).json == {"state": "off"}
    answer = house.post(PATH, {})
    assert answer.status_code == 409
    assert "memoryd[local]" in answer.json["error"]


def test_how_far_they_are_of_all_and_of_one_project(house: House):
    write(house, "alpha", "a")
    write(house, "alpha", "b")
    write(house, "beta", "c")
    bind(house)

    everything, alpha = house.get(PATH).json, house.get(f"{PATH}?project=alpha&workspace=default").json

    assert (everything["state"], everything["done"], everything["total"]) == ("waiting", 0, 3)
    assert everything["progress"] == "0 of 3, time left unknown"
    assert (everything["index"], everything["dimensions"]) == ("memory", 8)
    assert alpha["total"] == 2
    assert house.get(f"{PATH}?project=absent").status_code == 404


def test_making_them_is_one_job_however_often_it_is_asked_for(house: House):
    write(house, "alpha", "a")
    bind(house)

    first, second = house.post(PATH, {}).json, house.post(PATH, {"force": True, "project": "alpha"}).json

    assert first["job"] == second["job"]
    assert house.get(PATH).json["state"] == "working"
    assert house.get(PATH).json["job"] == first["job"]


def test_making_them_needs_an_admin_and_a_body_that_fits(house: House):
    bind(house)
    token = house.add_token("write")
    assert house.post(PATH, {}, Authorization=f"Bearer {token}").status_code == 403
    assert house.post(PATH, {"forse": True}).status_code == 400
    assert house.post(PATH, {"force": True, "project": "absent"}).status_code == 404


def test_status_tells_of_vectors(house: House):
    bind(house)
    vitals = house.post("/api/v1/tools/memory_status", {}).json["health"]
    assert vitals["vectors"]["progress"] == "0 of 0"


def vectors(house: House, inner: WordEmbedder) -> QuestionVectors:
    clock = house.parts.clock
    return QuestionVectors(house.parts.database, clock, QueryEmbedder(lambda: inner, clock))


def test_a_question_is_embedded_only_where_there_is_something_to_compare_it_with(house: House):
    inner = WordEmbedder(identity=MODEL)
    assert vectors(house, inner).vector("x") is None
    bind(house)
    made: Any = vectors(house, inner).vector("x")
    assert made.query.model == MODEL


def test_a_paused_provider_is_not_asked_and_the_local_one_is(house: House):
    bind(house)
    inner = WordEmbedder(identity=MODEL)
    house.post("/api/v1/models/pause", {"reason": "too dear"})
    with pytest.raises(Unavailable, match="paused"):
        vectors(house, inner).vector("x")
    assert inner.asked == []
    bind(house, EmbeddingModel(provider="local", model="m", dimensions=8))

    assert vectors(house, inner).vector("x") is not None


def test_an_embedder_that_fails_is_an_error_of_ours(house: House):
    bind(house)
    inner = WordEmbedder(identity=MODEL)
    inner.fails = lambda _: Unreachable()
    with pytest.raises(Unreachable):
        vectors(house, inner).vector("x")
