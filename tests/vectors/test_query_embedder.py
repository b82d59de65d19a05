"""The embedding of a question: kept, bounded in time, and without a dead embedder being asked each time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy
import pytest

from memory_core import limits
from memory_core.clock import FakeClock, SystemClock
from memory_core.config import Settings
from memory_core.errors import Invalid, Unavailable
from memory_core.models.errors import TimedOut, Unreachable
from memory_core.models.query_embedder import QueryEmbedder
from tests.jobs.embedding_model import A, WordEmbedder, vector_of
from tests.models.fakes.embedding import EMBEDDERS
from tests.models.server import Reply, serving


class Asked(WordEmbedder):
    kinds: list[str]

    def embed(self, texts: Any, kind: str = "document", cancel: Any = None) -> Any:
        self.kinds = [*getattr(self, "kinds", []), kind]
        return super().embed(texts, kind, cancel)


def test_a_question_is_embedded_as_one_and_only_once():
    inner = Asked()
    embedder = QueryEmbedder(lambda: inner, FakeClock())

    first, second = embedder.vector("where is  the limit?"), embedder.vector(" where is the limit? ")

    assert first is not None
    assert first is second
    assert first.model == A
    assert numpy.array_equal(first.vector, vector_of("where is the limit?"))
    assert inner.kinds == ["query"]


def test_only_so_many_are_kept(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(limits, "QUERY_EMBED_CACHE", 2)
    inner = Asked()
    embedder = QueryEmbedder(lambda: inner, FakeClock())

    for text in ("a", "b", "a", "c", "a", "b"):
        embedder.vector(text)

    assert [texts for (texts,) in inner.asked] == ["a", "b", "c", "b"]


def test_without_an_embedder_there_is_no_vector_and_none_of_a_blank_question():
    assert QueryEmbedder(lambda: None, FakeClock()).vector("x") is None
    assert QueryEmbedder(WordEmbedder, FakeClock()).vector(" \n ") is None


def test_one_that_fails_is_left_alone_for_a_while():
    clock, inner = FakeClock(), WordEmbedder()
    failing: list[Exception] = []
    inner.fails = lambda _: failing.append(Unreachable()) or failing[-1]
    embedder = QueryEmbedder(lambda: inner, clock)

    with pytest.raises(Unreachable):
        embedder.vector("x")
    with pytest.raises(Unavailable, match="failed a moment ago"):
        embedder.vector("y")
    assert len(failing) == 1
    clock.advance(limits.QUERY_EMBED_PAUSE_SECONDS + 1)
    inner.fails = lambda _: None

    assert embedder.vector("y") is not None


def test_what_was_kept_is_given_also_while_the_embedder_is_away():
    inner = WordEmbedder()
    embedder = QueryEmbedder(lambda: inner, FakeClock())
    before = embedder.vector("x")
    inner.fails = lambda _: Unreachable()
    with pytest.raises(Unreachable):
        embedder.vector("y")

    assert embedder.vector("x") is before


def test_a_server_that_does_not_answer_costs_a_question_its_time_and_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(limits, "QUERY_EMBED_SECONDS", 0.3)
    fake = EMBEDDERS["openai_compatible"]
    with serving(fake.read) as server:
        for key, value in {
            "PROVIDER": "openai_compatible",
            "MODEL": "m",
            "DIMENSIONS": "3",
            "BASE_URL": fake.base_url(server.port),
        }.items():
            monkeypatch.setenv(f"MEMORYD_MODELS__EMBED_{key}", value)
        server.will(Reply(ends="stall"))
        embedder = QueryEmbedder.configured(Settings(data_dir=tmp_path), SystemClock())

        with pytest.raises(TimedOut):
            embedder.vector("x")


def test_settings_that_name_what_is_not_there_are_an_error_of_each_question(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("MEMORYD_MODELS__EMBED_PROVIDER", "local")
    monkeypatch.setenv("MEMORYD_MODELS__EMBED_MODEL", "absent")
    embedder = QueryEmbedder.configured(Settings(data_dir=tmp_path), FakeClock())

    with pytest.raises(Invalid, match="memoryd models add"):
        embedder.vector("x")
