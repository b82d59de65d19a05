"""Hits that a language model judges once more: the order it gives, and every reason to keep the one that was."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from memory_core import limits
from memory_core.commands.model_control import keep_budget
from memory_core.domain.budget import Budget, Cap
from tests.models.fakes.openai import OpenAICompatible
from tests.models.server import Server, serving
from tests.store.databases import with_transaction
from tests.web.house import House

SCOPE = {"project": "alpha", "workspace": "default"}
PAGES = ("one", "two", "three")


@pytest.fixture
def vendor() -> Iterator[Server]:
    with serving(OpenAICompatible().read) as server:
        yield server


@pytest.fixture
def house(house_factory: Callable[..., House], vendor: Server, monkeypatch: pytest.MonkeyPatch) -> House:
    for name, value in {
        "PROVIDER": "openai_compatible",
        "MODEL": OpenAICompatible.model,
        "BASE_URL": OpenAICompatible().base_url(vendor.port),
        "EMBED_PROVIDER": "none",
        "RERANKER": "model",
    }.items():
        monkeypatch.setenv(f"MEMORYD_MODELS__{name}", value)
    house = house_factory()
    house.start_writer()
    for name in PAGES:
        page = {"path": f"notes/{name}.md", "body": f"# Page {name}\n\nThe uploader, as told in {name}."}
        assert house.post("/api/v1/tools/memory_write_page", page | SCOPE).status_code == 200
    return house


def query(house: House, **more: Any) -> dict[str, Any]:
    answer = house.post("/api/v1/tools/memory_query", {"query": "uploader", "explain": True, **SCOPE, **more})
    assert answer.status_code == 200, answer.text
    return answer.json


def paths(answer: dict[str, Any]) -> list[str]:
    return [hit["path"] for hit in answer["hits"]]


def says(vendor: Server, scores: Sequence[float]) -> None:
    told = [{"id": number, "score": score} for number, score in enumerate(scores)]
    vendor.will(OpenAICompatible().answer(json.dumps({"scores": told})))


def usage(house: House) -> list[dict[str, Any]]:
    return house.rows("SELECT kind, calls, failed, input_tokens, output_tokens FROM model_usage")


def plain_order(house: House, vendor: Server) -> list[str]:
    says(vendor, [0.5, 0.5, 0.5])
    return paths(query(house))


def test_the_order_is_that_of_the_scores_and_explain_says_so(house: House, vendor: Server):
    before = plain_order(house, vendor)
    says(vendor, [0.1, 0.2, 0.9])

    answer = query(house)

    assert paths(answer) == before[::-1]
    details = [hit["score_details"] for hit in answer["hits"]]
    assert [(one["rerank"], one["rank_before"]) for one in details] == [(0.9, 3), (0.2, 2), (0.1, 1)]
    assert "reranker" in answer["streams_active"]
    assert answer["timings_ms"]["reranker"] > 0


def test_what_is_beyond_the_limit_is_judged_too_and_may_come_first(house: House, vendor: Server):
    before = plain_order(house, vendor)
    says(vendor, [0.1, 0.2, 0.9])

    assert paths(query(house, limit=1)) == [before[2]]


def test_a_search_over_http_is_judged_as_memory_query_is(house: House, vendor: Server):
    before = plain_order(house, vendor)
    says(vendor, [0.1, 0.2, 0.9])

    found = house.get("/api/v1/search?q=uploader&workspace=default&project=alpha").json

    assert [hit["path"] for hit in found] == before[::-1]


def test_what_it_used_counts_under_the_budget(house: House, vendor: Server):
    says(vendor, [0.1, 0.2, 0.9])
    query(house)

    assert usage(house) == [
        {"kind": "rerank", "calls": 1, "failed": 0, "input_tokens": 30, "output_tokens": 12}
    ]


@pytest.mark.parametrize("scores", [[0.9, 0.1], [0.1, 0.2, 0.3, 0.4]])
def test_an_answer_that_does_not_score_each_once_keeps_the_order_and_is_named(
    house: House, vendor: Server, scores: list[float]
):
    before = plain_order(house, vendor)
    says(vendor, scores)

    answer = query(house)

    assert (paths(answer), answer["streams_failed"]) == (before, ["reranker"])
    assert "rerank" not in answer["hits"][0]["score_details"]


def test_a_budget_that_is_used_up_keeps_the_order_and_sends_nothing(house: House, vendor: Server):
    before = plain_order(house, vendor)
    house.stop_writer()
    with_transaction(
        house.connection, lambda tx: keep_budget(tx, Budget(day=Cap(tokens=10))), house.parts.clock
    )
    house.start_writer()
    sent = len(vendor.asked)

    answer = query(house)

    assert (paths(answer), answer["streams_failed"], len(vendor.asked)) == (before, ["reranker"], sent)


def test_where_as_many_are_judged_as_may_be_one_more_keeps_its_order_at_once(house: House, vendor: Server):
    before = plain_order(house, vendor)
    sent = len(vendor.asked)
    slots = house.parts.reranking._slots
    for _ in range(limits.RERANKS_AT_ONCE):
        assert slots.acquire(blocking=False)

    answer = query(house)

    assert (paths(answer), answer["streams_failed"], len(vendor.asked)) == (before, ["reranker"], sent)
    assert 'memoryd_rerank_seconds_count{outcome="busy"} 1.0' in house.parts.meters.page().decode()
    for _ in range(limits.RERANKS_AT_ONCE):
        slots.release()
    says(vendor, [0.1, 0.2, 0.9])
    assert paths(query(house)) == before[::-1]


def test_a_search_everywhere_and_one_of_what_holds_everywhere_are_not_judged(house: House, vendor: Server):
    page = {
        "path": "notes/x.md",
        "body": "# X\n\nThe uploader.",
        "project": "_global",
        "workspace": "default",
    }
    house.post("/api/v1/tools/memory_write_page", page)
    page["path"] = "notes/y.md"
    house.post("/api/v1/tools/memory_write_page", page)
    everywhere = house.post("/api/v1/tools/memory_query", {"query": "uploader", "everywhere": True}).json

    assert len(everywhere["hits"]) > 1
    assert query(house, project="_global")["hits"]
    assert vendor.asked == []
    assert "reranker" not in everywhere.get("streams_failed", [])
