"""Every call stays within its bounds: time, size, cancelling, and what may leave the machine or get into a log."""

from __future__ import annotations

import gc
import gzip
import logging
from collections.abc import Iterable, Iterator
from itertools import chain, repeat

import pytest

from memory_core import limits
from memory_core.models import errors
from memory_core.models.port import Message, Request, Role, ask
from tests.models.conftest import HOSTILE, Bench
from tests.models.fakes.shape import KEY, FakeLanguageModel
from tests.models.server import Reply

PROMPT = "prompt-text-that-no-log-may-hold"


@pytest.mark.parametrize("after", [0, 3])
def test_an_answer_that_stalls_times_out(bench: Bench, after: int):
    bench.server.will(bench.fake.answer("Slow").broken(after, "stall"))

    with pytest.raises(errors.TimedOut) as caught:
        bench.model(timeout_seconds=2.0).complete(ask("x"))

    assert caught.value.can_retry
    assert len(bench.server.asked) == 1


def test_a_call_ends_in_time_though_something_always_arrives(bench: Bench):
    bench.server.will(endless(bench.fake, _dripping(bench), "d"))

    with pytest.raises(errors.TimedOut):
        bench.model(timeout_seconds=2.0).complete(ask("x"))


def _dripping(bench: Bench) -> Iterator[None]:
    while not bench.server.over.wait(0.05):
        yield


def endless(fake: FakeLanguageModel, beats: Iterable[object], word: str) -> Reply:
    """An answer that says `word` at each beat."""
    whole = fake.answer(word * 2)
    chunks = list(whole.chunks)
    first = next(i for i, chunk in enumerate(chunks) if f'"{word}"'.encode() in chunk)
    return Reply(
        headers=whole.headers, chunks=chain(chunks[:first], (chunks[first] for _ in beats)), ends="cut"
    )


@pytest.mark.parametrize("after", [0, 2, 4])
def test_a_connection_that_is_cut_is_tried_again(bench: Bench, after: int):
    cut = bench.fake.answer("Half an answer").broken(after, "cut")
    bench.server.will(cut, bench.fake.answer("whole"))

    assert bench.model().complete(ask("x")).text == "whole"


def test_an_answer_without_its_end_is_not_taken_for_whole(bench: Bench):
    early = bench.fake.answer("Half an answer").broken(3, "end")
    bench.server.will(*[early] * limits.MODEL_TRIES)

    with pytest.raises(errors.Unreachable):
        bench.model().complete(ask("x"))


def test_a_server_that_is_not_there_is_said(bench: Bench):
    model = bench.model()
    bench.server.http.server_close()

    with pytest.raises(errors.Unreachable):
        model.complete(ask("x"))


def test_an_answer_past_the_cap_is_not_read_to_its_end(bench: Bench, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(limits, "MODEL_ANSWER_MAX_BYTES", 100_000)
    bench.server.will(endless(bench.fake, range(10_000), "x" * 4_000))

    with pytest.raises(errors.AnswerTooLong):
        bench.model().complete(ask("x"))

    assert len(bench.server.asked) == 1


def test_an_error_page_past_the_cap_is_not_read_to_its_end(bench: Bench, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(limits, "MODEL_ANSWER_MAX_BYTES", 100_000)
    bench.server.will(Reply(status=500, chunks=repeat(b"x" * 4_000, 10_000)))

    with pytest.raises(errors.AnswerTooLong):
        bench.model().complete(ask("x"))


@pytest.mark.parametrize(
    "body",
    [
        b"<html>a proxy's page</html>",
        b"data: {not json\n\n",
        b'data: "text"\n\n',
        b"data: [1,2]\n\n",
        b"\xff\xfe",
    ],
)
def test_an_answer_of_something_else_is_malformed_or_no_answer(bench: Bench, body: bytes):
    bench.server.will(
        *[Reply(headers={"content-type": "text/event-stream"}, chunks=[b"event: message_start\n", body])] * 3
    )

    with pytest.raises((errors.Malformed, errors.Unreachable)):
        bench.model().complete(ask("x"))


def test_a_packed_answer_is_not_unpacked(bench: Bench):
    whole = bench.fake.answer("x")
    packed = [gzip.compress(b"".join(whole.chunks))]
    bench.server.will(Reply(headers={**whole.headers, "content-encoding": "gzip"}, chunks=packed))

    with pytest.raises(errors.Malformed):
        bench.model().complete(ask("x"))


def test_a_redirect_is_not_followed(bench: Bench):
    there = f"http://127.0.0.1:{bench.server.port}/elsewhere"
    bench.server.will(Reply(status=307, headers={"location": there}))

    with pytest.raises(errors.ProviderError):
        bench.model().complete(ask("x"))

    assert len(bench.server.asked) == 1


def test_a_cancelled_call_sends_nothing(bench: Bench):
    with pytest.raises(errors.Cancelled):
        bench.model().complete(ask("x"), lambda: True)

    assert bench.server.asked == []
    assert bench.meter.planned == []


@pytest.mark.parametrize("after", [0, 3])
def test_a_call_is_cancelled_while_its_answer_arrives(bench: Bench, after: int):
    bench.server.will(bench.fake.answer("Slow").broken(after, "stall"))

    with pytest.raises(errors.Cancelled):
        bench.model().complete(ask("x"), bench.server.stalling.is_set)


def test_a_call_is_cancelled_in_a_pause(bench: Bench):
    bench.server.will(bench.fake.failure(529))

    with pytest.raises(errors.Cancelled):
        bench.model().complete(ask("x"), lambda: bool(bench.clock.slept))

    assert len(bench.server.asked) == 1


def test_a_meter_can_stop_a_retry(bench: Bench):
    class Stop(Exception):
        pass

    def reserve(planned: object) -> object:
        if bench.server.asked:
            raise Stop
        return 0

    bench.meter.reserve = reserve  # type: ignore[method-assign]
    bench.meter.settle = lambda *_: None  # type: ignore[method-assign]
    bench.server.will(bench.fake.failure(529))

    with pytest.raises(Stop):
        bench.model().complete(ask("x"))

    assert len(bench.server.asked) == 1


def test_the_environment_has_no_say(bench: Bench, monkeypatch: pytest.MonkeyPatch):
    for name, value in HOSTILE.items():
        monkeypatch.setenv(name, value)
    bench.server.will(bench.fake.answer("same"))

    # The server refuses every header that its vendor does not document, and every key but ours.
    assert bench.model().complete(ask("x")).text == "same"


def test_neither_key_nor_prompt_is_in_a_log_or_a_name(bench: Bench, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.DEBUG)
    for name in ("anthropic", "openai", "google_genai", "httpx2", "httpcore2"):
        logging.getLogger(name).setLevel(logging.DEBUG)
    bench.server.will(
        bench.fake.failure(500, words=f"{KEY} {PROMPT}"),
        bench.fake.answer(f"answer {PROMPT}"),
        bench.fake.failure(400, words=f"{KEY} {PROMPT}"),
    )
    model = bench.model()
    request = Request(system=PROMPT, messages=(Message(role=Role.USER, text=PROMPT),))

    answer = model.complete(request)
    with pytest.raises(errors.Rejected) as caught:
        model.complete(request)

    said = [
        caplog.text,
        *(str(vars(record)) for record in caplog.records),
        repr(model),
        repr(answer),
        repr(request),
        repr(caught.value),
        "".join(_chain(caught.value)),
    ]
    assert not [text for text in said if KEY in text or PROMPT in text]


def _chain(error: BaseException | None) -> list[str]:
    """What a traceback would show of the causes."""
    shown: list[str] = []
    while error is not None:
        shown.append(repr(error))
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return shown


def test_no_connection_stays_behind(bench: Bench, recwarn: pytest.WarningsRecorder):
    bench.server.will(bench.fake.answer("x"), bench.fake.refusal())
    model = bench.model()

    model.complete(ask("x"))
    with pytest.raises(errors.Refused):
        model.complete(ask("x"))
    gc.collect()

    assert [w for w in recwarn if issubclass(w.category, ResourceWarning)] == []
