"""`scripts/bench-recall`: questions that quote, and another server that is asked the same."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from scripts.recall_bench import metrics, peer
from scripts.recall_bench.sets import QUOTATION, LabelledSet, with_quotations

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.timeout(120)


def said(number: int, text: str, scope: str = "boat") -> dict[str, Any]:
    return {
        "id": f"{scope}-{number}",
        "session": f"{scope}-session",
        "scope": scope,
        "ts": None,
        "speaker": "Ina",
        "text": text,
    }


def labelled(*documents: dict[str, Any]) -> LabelledSet:
    question = {
        "id": "q",
        "scope": "boat",
        "category": "plain",
        "text": "hull paint",
        "rel_docs": ["boat-0"],
        "rel_sessions": ["boat-session"],
    }
    return LabelledSet(name="invented", documents=list(documents), queries=[question])


@pytest.fixture
def other_server(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), *sys.path]))
    return f"{sys.executable} -m tests.bench.other_memory"


def test_a_quotation_is_answered_by_each_document_of_its_scope_that_holds_it():
    text = "the hull was painted green in May"
    whole = labelled(said(0, text), said(1, f"I said that {text} again"), said(2, text, scope="car"))

    asked = with_quotations(whole, 3).queries[1:]

    assert [one["category"] for one in asked] == [QUOTATION] * 3
    for one in asked:
        assert one["rel_docs"] == [
            document["id"]
            for document in whole.documents
            if document["scope"] == one["scope"] and one["text"] in document["text"]
        ]
    assert with_quotations(whole, 3) == with_quotations(whole, 3)


def test_scores_tell_questions_from_quotations():
    whole = with_quotations(labelled(said(0, "the hull was painted green in May")), 1)

    scores = metrics.evaluated(whole, {"q": ["boat-0"], "quotation-0": []}, "document")

    assert scores["question"].means["hit@1"] == 1.0
    assert scores[QUOTATION].means["hit@1"] == 0.0
    assert scores["all"].means["hit@1"] == 0.5


def test_another_server_is_told_each_document_and_answers_with_their_ids(other_server: str):
    whole = labelled(
        said(0, "hull paint is green"), said(1, "masts are tall"), said(2, "hull paint too", scope="car")
    )

    with peer.opened(whole, other_server) as ask:
        assert ask("semantic", "hull paint", "boat", 10) == ["boat-0"]
        assert ask("exact", "are tall", "boat", 10) == ["boat-1"]
        assert ask("exact", "nothing of that", "boat", 10) == []


def test_a_memory_that_another_server_does_not_keep_ends_the_measurement(other_server: str):
    with (
        pytest.raises(RuntimeError, match=r"did not store boat-0: Out of room"),
        peer.opened(labelled(said(0, "refuse this")), other_server),
    ):
        pass
