"""Every language model keeps the promises of the port, against a server that speaks its vendor's wire format."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from memory_core import limits
from memory_core.clock import MICROSECONDS
from memory_core.models import errors, vendors
from memory_core.models.port import Message, Request, Role, StopReason, Usage, ask
from memory_core.models.schema import Schema
from memory_core.models.wire import language_vendors
from memory_core.registry import discover
from tests.models.conftest import LANGUAGE_MODELS, Bench
from tests.models.fakes.shape import KEY
from tests.models.server import NOW_US

FACTS = Schema(
    name="facts",
    json={
        "type": "object",
        "properties": {
            "facts": {
                "type": "array",
                "maxItems": 3,
                "items": {
                    "type": "object",
                    "properties": {
                        "text": {"type": "string", "minLength": 1},
                        "sure": {"type": "number", "minimum": 0, "maximum": 1},
                        "source": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                    },
                    "required": ["text", "sure", "source"],
                    "additionalProperties": False,
                },
            }
        },
        "required": ["facts"],
        "additionalProperties": False,
    },
)
GOOD = '{"facts":[{"text":"tea","sure":0.5,"source":null}]}'
USED = Usage(input_tokens=30, output_tokens=12, cached_tokens=8)
PROMPT = "prompt-text-that-no-log-may-hold"


def test_every_registered_model_is_tested_here():
    discover(vendors)

    assert sorted(LANGUAGE_MODELS) == language_vendors.names()


def test_it_answers(bench: Bench):
    bench.server.will(bench.fake.answer("Grüße aus dem Wiki"))

    answer = bench.model().complete(ask("Greet me"))

    assert (answer.text, answer.model, answer.stop_reason) == (
        "Grüße aus dem Wiki",
        bench.fake.model,
        StopReason.END,
    )
    assert answer.usage == USED
    assert answer.unknown_fields == 0
    assert bench.meter.settled == [(USED, "ok")]


def test_all_options_arrive_and_no_others(bench: Bench):
    bench.server.will(bench.fake.answer("Yes"))
    conversation = (
        Message(role=Role.USER, text="One?"),
        Message(role=Role.ASSISTANT, text="One."),
        Message(role=Role.USER, text="Two?"),
    )

    bench.model().complete(
        Request(
            system="Be brief", messages=conversation, max_output_tokens=77, temperature=0.25, stop=("END",)
        )
    )

    (seen,) = bench.seen
    assert seen.model == bench.fake.model
    assert seen.system == "Be brief"
    assert seen.messages == [("user", "One?"), ("assistant", "One."), ("user", "Two?")]
    assert seen.max_output_tokens == 77
    assert seen.stop == ["END"]
    assert seen.temperature == (0.25 if bench.fake.takes_temperature else None)
    assert seen.schema is None


def test_more_tokens_than_the_settings_allow_are_not_asked_for(bench: Bench):
    bench.server.will(bench.fake.answer("a"), bench.fake.answer("b"))
    model = bench.model(max_output_tokens=50)

    model.complete(ask("x", max_output_tokens=1_000))
    model.complete(ask("x"))

    assert [seen.max_output_tokens for seen in bench.seen] == [50, 50]
    assert [planned.output_tokens_max for planned in bench.meter.planned] == [50, 50]


def test_an_answer_cut_at_its_limit_says_so(bench: Bench):
    bench.server.will(bench.fake.answer("Once upon", stop="length"))

    answer = bench.model().complete(ask("Tell"))

    assert (answer.text, answer.stop_reason) == ("Once upon", StopReason.LENGTH)


def test_a_structured_answer_fits_its_schema(bench: Bench):
    bench.server.will(bench.fake.answer(GOOD))

    answer = bench.model().complete_structured(ask("Which facts?"), FACTS)

    assert answer.value == {"facts": [{"text": "tea", "sure": 0.5, "source": None}]}
    assert (answer.repairs, answer.usage) == (0, USED)
    (seen,) = bench.seen
    assert seen.schema is not None
    assert "facts" in seen.schema["properties"]


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ('{"facts": [', "not one JSON value"),
        ('Sure! {"facts": []}', "not one JSON value"),
        ('{"facts":[{"text":"tea","sure":2,"source":null}]}', "$.facts[0].sure"),
        ('{"facts":[{"text":"tea","sure":1}]}', "without source"),
        ('{"facts":[],"more":1}', "does not name"),
        ('{"facts":NaN}', "not one JSON value"),
        ("[" * 100 + "]" * 100, "nests deeper"),
    ],
)
def test_a_structured_answer_that_does_not_fit_is_repaired_once(bench: Bench, bad: str, said: str):
    bench.server.will(bench.fake.answer(bad), bench.fake.answer(GOOD))

    answer = bench.model().complete_structured(ask("Which facts?"), FACTS)

    assert answer.value["facts"][0]["text"] == "tea"
    assert (answer.repairs, answer.usage) == (1, USED + USED)
    first, second = bench.seen
    assert second.messages[: len(first.messages)] == first.messages
    role, shown = second.messages[-2]
    assert (role, shown) == ("assistant", bad)
    assert said in second.messages[-1][1]
    assert len(bench.meter.settled) == 2


def test_a_structured_answer_in_a_fence_needs_no_repair(bench: Bench):
    bench.server.will(bench.fake.answer(f"```json\n{GOOD}\n```"))

    assert bench.model().complete_structured(ask("Which?"), FACTS).repairs == 0


def test_a_second_bad_answer_ends_the_call(bench: Bench):
    bench.server.will(bench.fake.answer("no"), bench.fake.answer("still no"))

    with pytest.raises(errors.BadAnswer) as caught:
        bench.model().complete_structured(ask("Which facts?"), FACTS)

    assert caught.value.usage == USED + USED
    assert len(bench.server.asked) == 2


def test_a_structured_answer_that_was_cut_is_not_repaired(bench: Bench):
    bench.server.will(bench.fake.answer('{"facts": [', stop="length"))

    with pytest.raises(errors.BadAnswer, match="max_output_tokens"):
        bench.model().complete_structured(ask("Which facts?"), FACTS)

    assert len(bench.server.asked) == 1


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, errors.Rejected),
        (401, errors.Unauthorized),
        (402, errors.OutOfCredit),
        (403, errors.Unauthorized),
        (404, errors.NoSuchModel),
        (413, errors.TooLong),
    ],
)
def test_an_error_that_no_retry_can_help_ends_the_call(
    bench: Bench, status: int, kind: type[errors.ProviderError]
):
    bench.server.will(bench.fake.failure(status, words=f"{PROMPT} {KEY}"))

    with pytest.raises(kind) as caught:
        bench.model().complete(ask("x"))

    assert type(caught.value) is kind
    assert not caught.value.can_retry
    assert PROMPT not in str(caught.value)
    assert KEY not in str(caught.value)
    assert bench.clock.slept == []
    assert bench.meter.settled == [(Usage(), kind.code)]


def test_a_prompt_that_does_not_fit_is_told_apart(bench: Bench):
    bench.server.will(bench.fake.too_long())

    with pytest.raises(errors.TooLong):
        bench.model().complete(ask("x"))


@pytest.mark.parametrize("status", [429, 500, 503, 529])
def test_a_passing_error_is_tried_again(bench: Bench, status: int):
    bench.clock.stop()
    bench.server.will(bench.fake.failure(status), bench.fake.failure(status), bench.fake.answer("at last"))

    answer = bench.model().complete(ask("x"))

    assert answer.text == "at last"
    assert bench.clock.paused == limits.MODEL_RETRY_SECONDS * 3
    assert len(bench.meter.settled) == 3


def test_a_passing_error_is_not_tried_for_ever(bench: Bench):
    bench.server.will(*[bench.fake.failure(529)] * limits.MODEL_TRIES)

    with pytest.raises(errors.Overloaded) as caught:
        bench.model().complete(ask("x"))

    assert caught.value.can_retry
    assert len(bench.server.asked) == limits.MODEL_TRIES


@pytest.mark.parametrize("form", ["seconds", "date"])
def test_what_the_provider_asks_for_is_waited(bench: Bench, form: str):
    until = datetime.fromtimestamp(NOW_US / MICROSECONDS, tz=UTC) + timedelta(seconds=7)
    asked_for = "7" if form == "seconds" else format_datetime(until, usegmt=True)
    bench.clock.stop()
    bench.server.will(bench.fake.failure(429, {"retry-after": asked_for}), bench.fake.answer("now"))

    assert bench.model().complete(ask("x")).text == "now"
    assert bench.clock.paused == 7.0


def test_a_longer_pause_is_not_waited_but_told(bench: Bench):
    bench.server.will(bench.fake.failure(429, {"retry-after": "60"}))

    with pytest.raises(errors.RateLimited) as caught:
        bench.model().complete(ask("x"))

    assert caught.value.retry_after_seconds == 60
    assert bench.clock.slept == []


def test_a_pause_past_the_time_of_the_call_is_not_waited(bench: Bench):
    bench.server.will(bench.fake.failure(429, {"retry-after": "20"}))

    with pytest.raises(errors.RateLimited):
        bench.model(timeout_seconds=10.0).complete(ask("x"))

    assert bench.clock.slept == []


def test_a_refusal_is_told_apart(bench: Bench):
    bench.server.will(bench.fake.refusal())

    with pytest.raises(errors.Refused) as caught:
        bench.model().complete(ask("x"))

    assert caught.value.usage.output_tokens == 12
    assert len(bench.server.asked) == 1


@pytest.mark.parametrize("text", ["", " \n"])
def test_an_empty_answer_is_a_bad_one(bench: Bench, text: str):
    bench.server.will(bench.fake.answer(text))

    with pytest.raises(errors.BadAnswer) as caught:
        bench.model().complete(ask("x"))

    assert caught.value.usage == USED


def test_an_error_in_the_middle_of_an_answer_is_tried_again(bench: Bench):
    failing = bench.fake.failing_midway()
    if failing is None:
        pytest.skip("the vendor has no such error")
    bench.server.will(failing, bench.fake.answer("whole"))

    assert bench.model().complete(ask("x")).text == "whole"


def test_unknown_fields_are_counted_and_harm_nothing(bench: Bench):
    bench.server.will(bench.fake.answer("fine", news=True))

    answer = bench.model().complete(ask("x"))

    assert answer.text == "fine"
    assert answer.unknown_fields >= 1


def test_what_it_may_cost_is_told_before(bench: Bench):
    bench.server.will(bench.fake.answer("x"))

    bench.model().complete(ask("a" * 3_000, max_output_tokens=9))

    (planned,) = bench.meter.planned
    assert (planned.provider, planned.model, planned.output_tokens_max) == (
        bench.provider,
        bench.fake.model,
        9,
    )
    assert 1_000 <= planned.input_tokens <= 1_100
