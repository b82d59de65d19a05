"""A small invented set, asked through `memory_query`: what must be found, and which rules find it."""

from __future__ import annotations

from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scripts.recall_bench import feeding, metrics
from scripts.recall_bench.sets import LabelledSet

_SAID = {
    "s1": ("2031-03-02", [
        ("Wanda", "Did you take the kiln to the workshop in the end?"),
        ("Piet", "Yes, the old one from the harbour, it took two of us."),
        ("Wanda", "I finally painted the lighthouse last weekend."),
    ]),
    "s2": ("2031-06-14", [
        ("Piet", "What colour did you choose for the boat?"),
        ("Wanda", "A deep green, nearly black."),
        ("Piet", "My sister adopted a greyhound called Biscuit."),
    ]),
    "s3": ("2031-09-20", [
        ("Wanda", "The rye bread failed again, too much water."),
        ("Piet", "Try parseDoughRatio from my notes, it computes the water."),
        ("Wanda", "We met Lena at the choir, she sings alto."),
    ]),
}  # fmt: skip
_ASKED = {
    "What did Wanda paint?": "s1/2",
    "Where did Piet get the kiln from?": "s1/1",
    "What colour is the boat?": "s2/1",
    "Who has a greyhound?": "s2/2",
    "What went wrong with the bread in September 2031?": "s3/0",
    "parse dough ratio": "s3/1",
    "Which voice does Lena sing?": "s3/2",
}


@pytest.fixture(scope="module")
def labelled() -> LabelledSet:
    documents = [
        {
            "id": f"{session}/{n}",
            "session": session,
            "scope": "c",
            "ts": f"{day}T10:00",
            "speaker": who,
            "text": text,
        }
        for session, (day, turns) in _SAID.items()
        for n, (who, text) in enumerate(turns)
    ]
    queries = [
        {"id": text, "scope": "c", "category": "x", "text": text, "rel_docs": [d], "rel_sessions": [d[:2]]}
        for text, d in _ASKED.items()
    ]
    return LabelledSet(name="invented", documents=documents, queries=queries)


@pytest.fixture(scope="module")
def asked(
    labelled: LabelledSet, tmp_path_factory: pytest.TempPathFactory
) -> Generator[tuple[feeding.Ask, dict[str, str]]]:
    with feeding.in_process(labelled, tmp_path_factory.mktemp("floor")) as (ask, database):
        yield ask, feeding.documents_by_event(labelled, database)


def found(asked: tuple[feeding.Ask, dict[str, str]], text: str) -> list[str]:
    ask, documents = asked
    return [documents[hit["event_id"]] for hit in ask(text, "c", 10).get("hits", []) if "event_id" in hit]


def test_what_was_said_is_found(labelled: LabelledSet, asked: tuple[feeding.Ask, dict[str, str]]):
    run = {query["id"]: found(asked, query["text"]) for query in labelled.queries}

    scores = metrics.evaluated(labelled, run, "document")["all"].means

    assert scores["recall@5"] == 1.0, run
    assert scores["mrr@10"] >= 0.8, run


def test_the_answer_behind_a_question_is_found_without_a_word_of_it(
    asked: tuple[feeding.Ask, dict[str, str]],
):
    assert "s2/1" in found(asked, "What colour is the boat?")[:2]


def test_what_somebody_said_comes_before_what_others_said(asked: tuple[feeding.Ask, dict[str, str]]):
    assert found(asked, "Piet notes water")[0] == "s3/1"
    assert found(asked, "Wanda bread water")[0] == "s3/0"


def test_a_date_of_the_question_prefers_its_days(asked: tuple[feeding.Ask, dict[str, str]]):
    assert found(asked, "Wanda in March 2031")[0].startswith("s1/")
    assert found(asked, "Wanda in September 2031")[0].startswith("s3/")


@settings(
    max_examples=80,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(noise=st.text(max_size=60), behind=st.text(max_size=60))
def test_a_plain_word_is_found_whatever_stands_around_it(
    asked: tuple[feeding.Ask, dict[str, str]], noise: str, behind: str
):
    assert "s2/2" in found(asked, f"{noise} greyhound {behind}")


def test_the_metrics_are_those_of_a_hand_computed_example():
    one = metrics.score(["a", "x", "b", "a"], {"a", "b", "c"})

    assert one["recall@1"] == pytest.approx(1 / 3)
    assert one["recall@5"] == pytest.approx(2 / 3)
    assert (one["hit@1"], one["mrr@10"]) == (1.0, 1.0)
    assert one["ndcg@10"] == pytest.approx((1 + 0.5) / (1 + 0.6309297535714575 + 0.5))
