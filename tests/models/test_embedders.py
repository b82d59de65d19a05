"""Every embedder keeps the promises of the port, against a server that speaks its vendor's wire format."""

from __future__ import annotations

import logging
from collections.abc import Generator
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import numpy
import pytest

from memory_core import limits
from memory_core.errors import Invalid
from memory_core.models import errors, vendors
from memory_core.models.port import Embedder, Usage
from memory_core.models.settings import ModelSettings, choose_embedder
from memory_core.models.wire import embedding_vendors
from memory_core.registry import discover
from tests.models.conftest import HOSTILE, Counting
from tests.models.fakes.embedding import EMBEDDERS, FakeEmbedder, SeenTexts
from tests.models.fakes.shape import KEY
from tests.models.server import QuickClock, Reply, Server, json_reply, serving

USED = Usage(input_tokens=10)


@dataclass
class Bench:
    provider: str
    fake: FakeEmbedder
    server: Server
    clock: QuickClock
    meter: Counting

    def embedder(self, **settings: Any) -> Embedder:
        given = {
            "embed_provider": self.provider,
            "embed_model": self.fake.model,
            "embed_base_url": self.fake.base_url(self.server.port),
            "embed_api_key": "" if self.provider == "openai_compatible" else KEY,
            **settings,
        }
        found = choose_embedder(ModelSettings(**given), self.clock, self.meter)
        assert found is not None
        return found

    @property
    def seen(self) -> list[SeenTexts]:
        return [self.fake.read(asked) for asked in self.server.asked]


@pytest.fixture(params=sorted(EMBEDDERS))
def bench(request: pytest.FixtureRequest) -> Generator[Bench]:
    fake = EMBEDDERS[request.param]
    with serving(fake.read) as server:
        yield Bench(provider=request.param, fake=fake, server=server, clock=QuickClock(), meter=Counting())


def test_every_registered_embedder_is_tested_here():
    discover(vendors)

    # The local one has no wire format: tests/models/test_local_embedder.py.
    assert sorted([*EMBEDDERS, "local"]) == embedding_vendors.names()


def test_texts_become_rows_of_length_one_in_their_order(bench: Bench):
    bench.server.will(bench.fake.answer([[3, 4, 0], [0, 0, -2]]))
    embedder = bench.embedder()

    got = embedder.embed(["first", "second"])

    assert got.vectors.dtype == numpy.float32
    assert numpy.allclose(got.vectors, [[0.6, 0.8, 0], [0, 0, -1]])
    assert (got.usage, got.unknown_fields) == (USED, 0)
    assert embedder.dimensions == 3
    (seen,) = bench.seen
    assert seen.texts == ["first", "second"]
    assert seen.dimensions == bench.fake.default_dimensions


@pytest.mark.parametrize("kind", ["document", "query"])
def test_what_a_text_is_for_is_told(bench: Bench, kind: Any):
    bench.server.will(bench.fake.answer([[1, 0]]))

    bench.embedder().embed(["a"], kind)

    assert bench.seen[0].kind == (kind if bench.fake.knows_kinds else None)


def test_a_prefix_stands_before_texts_of_its_kind(bench: Bench):
    bench.server.will(bench.fake.answer([[1, 0]]), bench.fake.answer([[1, 0]]))
    embedder = bench.embedder(embed_query_prefix="ask: ", embed_document_prefix="doc: ")

    embedder.embed(["a"], "query")
    embedder.embed(["a"], "document")

    assert [seen.texts for seen in bench.seen] == [["ask: a"], ["doc: a"]]


def test_dimensions_are_asked_for_where_that_is_possible(bench: Bench):
    bench.server.will(bench.fake.answer([[1, 0]]))

    bench.embedder(embed_dimensions=2).embed(["a"])

    expected = None if bench.provider == "openai_compatible" else 2
    assert bench.seen[0].dimensions == expected


def test_many_texts_go_in_several_requests(bench: Bench):
    size = limits.EMBED_REQUEST_TEXTS
    bench.server.will(bench.fake.answer([[1, 0]] * size), bench.fake.answer([[0, 1]] * 4))

    got = bench.embedder().embed([f"text {n}" for n in range(size + 4)])

    assert got.vectors.shape == (size + 4, 2)
    assert [len(seen.texts) for seen in bench.seen] == [size, 4]
    assert got.vectors[0].tolist() == [1, 0]
    assert got.vectors[-1].tolist() == [0, 1]
    assert got.usage == USED + USED
    assert bench.meter.settled == [(USED, "ok")] * 2


def test_long_texts_fill_a_request_by_their_bytes(bench: Bench):
    fitting = limits.EMBED_REQUEST_MAX_BYTES // limits.EMBED_TEXT_MAX_BYTES
    bench.server.will(bench.fake.answer([[1, 0]] * fitting), bench.fake.answer([[1, 0]]))

    bench.embedder().embed(["é" * limits.EMBED_TEXT_MAX_BYTES] * (fitting + 1))

    first, second = bench.seen
    assert (len(first.texts), len(second.texts)) == (fitting, 1)
    assert len(second.texts[0].encode()) == limits.EMBED_TEXT_MAX_BYTES


def test_blank_texts_none_and_too_many_are_refused_before_anything_is_sent(bench: Bench):
    embedder = bench.embedder()

    for texts in ([], ["a", " \n"], ["a"] * (limits.EMBED_TEXTS_MAX + 1)):
        with pytest.raises(Invalid):
            embedder.embed(texts)

    assert bench.server.asked == []


@pytest.mark.parametrize(
    "rows",
    [
        [[1, 0]],
        [[1, 0], [1, 0], [1, 0]],
        [[1, 0], [1, 0, 0]],
        [[], []],
        [[1, 0], [0, 0]],
        [[1, 0], [float("nan"), 1]],
        [[1, 0], [float("inf"), 1]],
    ],
    ids=["too few", "too many", "of two lengths", "empty", "zeros", "not a number", "endless"],
)
def test_vectors_that_are_none_are_malformed(bench: Bench, rows: Any):
    bench.server.will(bench.fake.answer(rows))

    with pytest.raises(errors.Malformed):
        bench.embedder().embed(["a", "b"])


def test_another_length_than_asked_for_is_refused(bench: Bench):
    bench.server.will(bench.fake.answer([[1, 0, 0]]))

    with pytest.raises(errors.WrongDimensions, match="3 dimensions instead of 2"):
        bench.embedder(embed_dimensions=2).embed(["a"])


def test_another_length_than_before_is_refused(bench: Bench):
    bench.server.will(bench.fake.answer([[1, 0]]), bench.fake.answer([[1, 0, 0]]))
    embedder = bench.embedder()
    embedder.embed(["a"])

    with pytest.raises(errors.WrongDimensions):
        embedder.embed(["a"])


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, errors.Rejected),
        (401, errors.Unauthorized),
        (403, errors.Unauthorized),
        (404, errors.NoSuchModel),
        (413, errors.TooLong),
    ],
)
def test_an_error_that_no_retry_can_help_ends_the_call(
    bench: Bench, status: int, kind: type[errors.ProviderError]
):
    bench.server.will(bench.fake.failure(status, words=f"about {KEY}"))

    with pytest.raises(kind) as caught:
        bench.embedder().embed(["a"])

    assert type(caught.value) is kind
    assert KEY not in str(caught.value)
    assert bench.clock.slept == []


@pytest.mark.parametrize("status", [429, 500, 503, 529])
def test_a_passing_error_is_tried_again(bench: Bench, status: int):
    bench.clock.stop()
    bench.server.will(bench.fake.failure(status, {"retry-after": "4"}), bench.fake.answer([[1, 0]]))

    bench.embedder().embed(["a"])

    assert bench.clock.paused == 4.0


def test_an_answer_that_stalls_times_out(bench: Bench):
    bench.server.will(bench.fake.answer([[1, 0]]).broken(0, "stall"))

    with pytest.raises(errors.TimedOut):
        bench.embedder(timeout_seconds=2.0).embed(["a"])


def test_a_connection_that_is_cut_is_tried_again(bench: Bench):
    whole = bench.fake.answer([[1, 0]])
    (body,) = list(whole.chunks)
    half = Reply(headers=whole.headers, chunks=[body[: len(body) // 2]], ends="cut")
    bench.server.will(half, bench.fake.answer([[1, 0]]))

    assert bench.embedder().embed(["a"]).vectors.shape == (1, 2)


def test_an_answer_past_the_cap_is_not_read_to_its_end(bench: Bench, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(limits, "MODEL_ANSWER_MAX_BYTES", 100_000)
    bench.server.will(
        Reply(headers={"content-type": "application/json"}, chunks=repeat(b" " * 4_000, 10_000))
    )

    with pytest.raises(errors.AnswerTooLong):
        bench.embedder().embed(["a"])


@pytest.mark.parametrize(
    "body", [{}, [], "text", {"data": None, "embeddings": None}, {"data": [1], "embeddings": [1]}]
)
def test_an_answer_of_something_else_is_malformed(bench: Bench, body: Any):
    bench.server.will(json_reply(body))

    with pytest.raises(errors.Malformed):
        bench.embedder().embed(["a"])


def test_unknown_fields_are_counted_and_harm_nothing(bench: Bench):
    bench.server.will(bench.fake.answer([[1, 0]], news=True))

    assert bench.embedder().embed(["a"]).unknown_fields == 2


def test_a_redirect_is_not_followed(bench: Bench):
    there = f"http://127.0.0.1:{bench.server.port}/elsewhere"
    bench.server.will(Reply(status=307, headers={"location": there}))

    with pytest.raises(errors.ProviderError):
        bench.embedder().embed(["a"])

    assert len(bench.server.asked) == 1


def test_a_cancelled_call_sends_nothing(bench: Bench):
    with pytest.raises(errors.Cancelled):
        bench.embedder().embed(["a"], cancel=lambda: True)

    assert bench.server.asked == []


def test_a_call_is_cancelled_while_its_answer_is_awaited(bench: Bench):
    bench.server.will(bench.fake.answer([[1, 0]]).broken(0, "stall"))

    with pytest.raises(errors.Cancelled):
        bench.embedder().embed(["a"], cancel=bench.server.stalling.is_set)


def test_a_call_is_cancelled_between_two_requests(bench: Bench):
    bench.server.will(bench.fake.answer([[1, 0]] * limits.EMBED_REQUEST_TEXTS))

    with pytest.raises(errors.Cancelled) as caught:
        bench.embedder().embed(
            ["a"] * (limits.EMBED_REQUEST_TEXTS + 1), cancel=lambda: bool(bench.meter.settled)
        )

    assert caught.value.usage == USED


def test_the_environment_has_no_say(bench: Bench, monkeypatch: pytest.MonkeyPatch):
    for name, value in HOSTILE.items():
        monkeypatch.setenv(name, value)
    bench.server.will(bench.fake.answer([[1, 0]]))

    assert bench.embedder().embed(["a"]).vectors.shape == (1, 2)


def test_neither_key_nor_text_is_in_a_log_or_a_name(
    bench: Bench, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
):
    caplog.set_level(logging.DEBUG)
    bench.server.will(bench.fake.failure(500, words=KEY), bench.fake.answer([[1, 0]]))
    embedder = bench.embedder()

    got = embedder.embed(["text-that-no-log-may-hold"])

    output = capfd.readouterr()
    records = [str(vars(record)) for record in caplog.records]
    said = [caplog.text, *records, output.out, output.err, repr(embedder), repr(got)]
    assert not [text for text in said if KEY in text or "text-that-no-log" in text]
