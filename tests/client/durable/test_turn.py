"""A turn from its input to its answer: what is written, in which order, and what happens when something fails."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from client.durable import (
    ModelFailed,
    ModelReply,
    ReasoningDelta,
    TextDelta,
    TooManyRounds,
)
from memory_core import limits
from memory_core.errors import Invalid
from tests.client.durable.actors import Diary, allowing, says, wants
from tests.client.durable.conftest import MakeDesk


def test_the_input_is_journaled_before_the_model_is_asked(make: MakeDesk, tmp_path: Path) -> None:
    seen: list[list[str]] = []
    desk = make(tmp_path)
    desk.model.then(lambda _: seen.append(list(desk.steps)) or says("hello"))

    result = desk.run("hi")

    assert seen == [["begin"]]
    assert desk.steps == ["begin", "end"]
    assert result.text == "hello"
    assert desk.said() == [("user", "hi"), ("assistant", "hello")]
    assert desk.audit() == ["turn_started", "model_started", "model_completed", "turn_completed"]
    assert desk.is_settled()


def test_a_round_with_tools_is_planned_started_completed_and_checkpointed_in_this_order(
    make: MakeDesk,
    tmp_path: Path,
) -> None:
    diary = Diary()
    desk = make(tmp_path, diary.tool(approval="it writes"))
    desk.model.then(wants(("note", {"n": 1})), says("noted"))

    result = desk.run(approve=allowing)

    assert desk.steps == [
        *("begin", "plan", "ask", "decide", "start", "complete", "checkpoint", "end"),
    ]
    assert diary.entries == ["note 1"]
    assert result.rounds == 2
    assert result.last_sequence == len(desk.server.events)
    assert desk.is_settled()


def test_a_start_is_journaled_before_the_tool_runs_and_a_result_before_it_is_told(
    make: MakeDesk, tmp_path: Path
) -> None:
    desk: Any = None
    seen: dict[str, list[str]] = {}

    def look(*_: Any) -> str:
        seen["run"] = list(desk.steps)
        return "done"

    desk = make(tmp_path, Diary().tool(does=look))
    desk.model.then(wants(("note", {})), says("noted"))

    def listen(event: Any) -> None:
        seen[event["type"]] = list(desk.steps)

    desk.run(on_event=listen)

    assert seen["run"][-1] == "start"
    assert seen["tool_started"][-1] == "start"
    assert seen["tool_completed"][-1] == "complete"
    assert seen["turn_completed"][-1] == "end"


def test_later_tool_batch_starts_after_durable_checkpoint_without_repeating_input(
    make: MakeDesk, tmp_path: Path
) -> None:
    diary = Diary()
    desk = make(tmp_path, diary.tool())
    desk.model.then(wants(("note", {"n": 1})), wants(("note", {"n": 2})), says("noted"))

    desk.run("go")

    assert desk.steps.index("checkpoint") < len(desk.steps) - 1 - desk.steps[::-1].index("plan")
    assert [text for role, text in desk.said() if role == "user"] == ["go"]
    assert desk.kinds().count("user_message") == 1
    assert desk.audit().count("turn_started") == 1
    assert desk.is_settled()


def test_the_next_turn_goes_on_from_the_history(make: MakeDesk, tmp_path: Path) -> None:
    desk = make(tmp_path, Diary().tool(), system_prompt="be brief")
    desk.model.then(wants(("note", {})), says("one"), says("two"))

    desk.run("first")
    desk.run("second")

    request = desk.model.requests[-1]
    assert [message.role.value for message in request.messages] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
    ]
    assert request.system_prompt == "be brief"
    assert desk.is_settled()


# --- the model -----------------------------------------------------------------------------------


def test_streamed_words_are_told_and_the_answer_is_what_was_streamed(make: MakeDesk, tmp_path: Path) -> None:
    desk = make(tmp_path)

    def stream(_: Any) -> Iterator[Any]:
        yield ReasoningDelta("hm")
        yield TextDelta("hel")
        yield TextDelta("lo")
        yield ModelReply()

    desk.model.then(stream)

    assert desk.run().text == "hello"
    deltas = [event for event in desk.events if event["type"].endswith("_delta")]
    assert [(event["type"], event["text"]) for event in deltas] == [
        ("reasoning_delta", "hm"),
        ("text_delta", "hel"),
        ("text_delta", "lo"),
    ]
    assert desk.session.history[-1].reasoning == "hm"
    assert not any(kind.endswith("_delta") for kind in desk.audit())


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(RuntimeError("no route to the vendor"), id="an error"),
        pytest.param("not a reply", id="no reply"),
        pytest.param(lambda _: iter([TextDelta("half")]), id="a stream that breaks off"),
        pytest.param(says(""), id="an empty reply"),
    ],
)
def test_a_model_that_fails_leaves_the_history_as_it_was_and_the_session_usable(
    make: MakeDesk, tmp_path: Path, line: Any
) -> None:
    desk = make(tmp_path)
    desk.model.then(line)

    with pytest.raises(ModelFailed):
        desk.run("lost")

    assert desk.said() == []
    assert desk.kinds() == ["audit", "audit", "audit", "error"]
    failure = desk.server.events[-1].payload
    assert failure["record"] == "failed_turn"
    assert failure["input"]["content"] == [{"type": "text", "data": "lost"}]
    desk.model.then(says("better"))
    assert desk.run("again").text == "better"
    assert desk.is_settled()


def test_oversized_model_output_persists_failure_and_leaves_adapter_reusable(
    make: MakeDesk, tmp_path: Path
) -> None:
    desk = make(tmp_path)
    desk.model.then(says("x" * (limits.MODEL_FIELD_MAX_BYTES + 1)))

    with pytest.raises(ModelFailed, match="cannot be kept"):
        desk.run()

    assert desk.kinds()[-1] == "error"
    assert desk.session.is_usable
    assert desk.is_settled()


def test_a_failure_after_a_checkpoint_keeps_what_the_checkpoint_wrote(make: MakeDesk, tmp_path: Path) -> None:
    desk = make(tmp_path, Diary().tool())
    desk.model.then(wants(("note", {})), RuntimeError("gone"))

    with pytest.raises(ModelFailed):
        desk.run("go")

    assert [role for role, _ in desk.said()] == ["user", "assistant", "tool"]
    assert desk.server.events[-1].payload["record"] == "failed_turn_after_checkpoint"
    desk.model.then(says("back"))
    desk.run("again")
    assert desk.is_settled()


def test_max_round_limit_rolls_back_complete_tool_batch(make: MakeDesk, tmp_path: Path) -> None:
    diary = Diary()
    desk = make(tmp_path, diary.tool(), max_rounds=2)
    desk.model.then(wants(("note", {"n": 1})), wants(("note", {"n": 2}), ("note", {"n": 3})))

    with pytest.raises(TooManyRounds):
        desk.run()

    assert diary.entries == ["note 1"]
    assert [role for role, _ in desk.said()] == ["user", "assistant", "tool"]
    assert desk.session.is_usable
    assert desk.is_settled()


# --- the input -----------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", " \n", "x" * (limits.FIELD_REDACTED_MAX_BYTES + 1), "half \ud83d"])
def test_invalid_input_never_enters_durable_history_and_adapter_stays_reusable(
    make: MakeDesk, tmp_path: Path, text: str
) -> None:
    desk = make(tmp_path)

    with pytest.raises(Invalid):
        desk.run(text)

    assert desk.steps == []
    assert desk.session.is_usable
    desk.model.then(says("fine"))
    assert desk.run("better").text == "fine"
