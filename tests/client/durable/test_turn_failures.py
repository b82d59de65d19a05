"""How a turn ends that does not succeed: by its listener, by being cancelled, by a journal that cannot be written."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from client.durable import (
    HistoryFull,
    InUse,
    ListenerFailed,
    ListenerFailedAfterCommit,
    Poisoned,
    TextDelta,
    TurnCancelled,
)
from memory_core import limits
from memory_core.errors import OutcomeUnknown, Unavailable
from tests.client.durable.actors import Desk, Diary, allowing, says, wants
from tests.client.durable.conftest import MakeDesk

# --- the listener --------------------------------------------------------------------------------


def failing_at(kind: str) -> Callable[[Any], None]:
    def listen(event: Any) -> None:
        if event["type"] == kind:
            raise OSError("the terminal is gone")

    return listen


def test_fallible_output_aborts_before_successful_history_commit(make: MakeDesk, tmp_path: Path) -> None:
    desk = make(tmp_path)

    def stream(_: Any) -> Iterator[Any]:
        yield TextDelta("hello")
        yield says("hello")

    desk.model.then(stream)

    with pytest.raises(ListenerFailed):
        desk.run(on_event=failing_at("text_delta"))

    assert desk.said() == []
    assert "assistant_message" not in desk.kinds()
    assert desk.session.is_usable
    assert desk.is_settled()


def test_terminal_sink_failure_preserves_committed_turn_without_failure_diagnostic(
    make: MakeDesk, tmp_path: Path
) -> None:
    desk = make(tmp_path)
    desk.model.then(says("kept"))

    with pytest.raises(ListenerFailedAfterCommit) as raised:
        desk.run(on_event=failing_at("turn_completed"))

    assert raised.value.result.text == "kept"
    assert desk.said()[-1] == ("assistant", "kept")
    assert "error" not in desk.kinds()
    assert desk.session.is_usable
    assert desk.is_settled()


def test_event_sink_failure_before_tool_invocation_rolls_back(make: MakeDesk, tmp_path: Path) -> None:
    diary = Diary()
    desk = make(tmp_path, diary.tool(approval="it writes"))
    desk.model.then(wants(("note", {})))

    with pytest.raises(ListenerFailed):
        desk.run(on_event=failing_at("approval_requested"), approve=allowing)

    assert diary.entries == []
    assert desk.said() == []
    assert desk.server.events[-1].payload["record"] == "failed_turn"
    assert desk.session.is_usable
    assert desk.is_settled()


def test_event_sink_failure_after_tool_invocation_checkpoints_batch(make: MakeDesk, tmp_path: Path) -> None:
    diary = Diary()
    desk = make(tmp_path, diary.tool())
    desk.model.then(wants(("note", {"n": 1}), ("note", {"n": 2})))

    with pytest.raises(ListenerFailed):
        desk.run(on_event=failing_at("tool_completed"))

    assert diary.entries == ["note 1"]
    assert desk.results()[0] == "note done"
    assert desk.results()[1].startswith("Not executed")
    assert desk.session.is_usable
    assert desk.is_settled()


def test_a_history_that_could_not_be_resumed_is_not_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "HISTORY_MESSAGES_MAX", 7)
    diary = Diary()
    desk = Desk(tmp_path, diary.tool())
    desk.model.then(says("one"), wants(("note", {"n": 1})), wants(("note", {"n": 2})))
    desk.run()

    with pytest.raises(HistoryFull):
        desk.run()

    assert diary.entries == ["note 1"]
    assert len(desk.session.history) <= 7
    assert desk.session.is_usable
    assert desk.is_settled()
    desk.session.open()
    desk.model.then(wants(("note", {"n": 3})))
    with pytest.raises(HistoryFull):
        desk.run()


# --- cancelling ----------------------------------------------------------------------------------


def cancelling_at(desk: Desk, kind: str) -> Callable[[Any], None]:
    def listen(event: Any) -> None:
        if event["type"] == kind:
            desk.session.cancel("enough")

    return listen


def test_cancellation_from_model_events_stops_before_tool_start(make: MakeDesk, tmp_path: Path) -> None:
    diary = Diary()
    desk = make(tmp_path, diary.tool())
    desk.model.then(wants(("note", {})))

    with pytest.raises(TurnCancelled, match="enough"):
        desk.run(on_event=cancelling_at(desk, "tool_call"))

    assert diary.entries == []
    assert "plan" not in desk.steps
    assert desk.audit()[-1] == "cancelled"
    assert desk.session.is_usable
    assert desk.is_settled()


def test_cancellation_after_tool_start_checkpoints_result_and_stops_batch(
    make: MakeDesk, tmp_path: Path
) -> None:
    desk: Any = None
    diary = Diary()

    def cancel(*_: Any) -> str:
        desk.session.cancel()
        return "finished all the same"

    desk = make(tmp_path, diary.tool(does=cancel))
    desk.model.then(wants(("note", {"n": 1}), ("note", {"n": 2})))

    with pytest.raises(TurnCancelled):
        desk.run()

    assert diary.entries == ["note 1"]
    assert desk.results()[0] == "finished all the same"
    assert desk.results()[1].startswith("Not executed")
    assert desk.audit()[-1] == "cancelled"
    assert desk.session.is_usable
    assert desk.is_settled()


def test_a_model_that_hangs_does_not_hold_a_cancelled_turn(make: MakeDesk, tmp_path: Path) -> None:
    desk = make(tmp_path)

    def hang(request: Any) -> Any:
        desk.session.cancel()
        threading.Event().wait(25)
        return says("too late")

    desk.model.then(hang)

    with pytest.raises(TurnCancelled):
        desk.run()

    assert desk.session.is_usable
    assert desk.said() == []


# --- the journal fails ---------------------------------------------------------------------------


def test_a_turn_that_could_not_begin_leaves_the_session_usable(make: MakeDesk, tmp_path: Path) -> None:
    desk = make(tmp_path)
    desk.server.steps.fail("begin", Unavailable("the broker is away"))

    with pytest.raises(Unavailable):
        desk.run()

    assert desk.session.is_usable
    assert desk.model.requests == []
    assert desk.is_settled()


@pytest.mark.parametrize("step", ["plan", "end"])
def test_a_checkpoint_that_cannot_be_written_abandons_the_turn_where_nothing_ran(
    make: MakeDesk, tmp_path: Path, step: str
) -> None:
    desk = make(tmp_path, Diary().tool())
    desk.model.then(wants(("note", {})) if step == "plan" else says("lost"))
    desk.server.steps.fail(step, Unavailable("the broker is away"))

    with pytest.raises(Unavailable):
        desk.run()

    assert desk.said() == []
    assert desk.session.is_usable
    assert desk.is_settled()


@pytest.mark.parametrize("step", ["complete", "checkpoint"])
def test_a_checkpoint_that_cannot_be_written_after_a_tool_ran_poisons(
    make: MakeDesk, tmp_path: Path, step: str
) -> None:
    desk = make(tmp_path, Diary().tool())
    desk.model.then(wants(("note", {})))
    desk.server.steps.fail(step, Unavailable("the broker is away"), once=False)

    with pytest.raises(Unavailable):
        desk.run()

    assert not desk.session.is_usable
    with pytest.raises(Poisoned):
        desk.run("again")
    with pytest.raises(Poisoned):
        desk.session.close()


def test_a_turn_that_nobody_knows_the_end_of_poisons_until_the_session_is_opened_anew(
    make: MakeDesk, tmp_path: Path
) -> None:
    desk = make(tmp_path)
    desk.model.then(says("was it kept?"))
    desk.server.steps.fail("end", OutcomeUnknown(), after=True)

    with pytest.raises(OutcomeUnknown):
        desk.run("hi")

    assert not desk.session.is_usable
    assert desk.said() == []
    desk.session.open()
    assert desk.session.is_usable
    assert desk.said() == [("user", "hi"), ("assistant", "was it kept?")]


def test_a_second_turn_at_the_same_time_is_refused(make: MakeDesk, tmp_path: Path) -> None:
    desk = make(tmp_path)

    def run_inside(_: Any) -> Any:
        with pytest.raises(InUse):
            desk.run("inside")
        return says("done")

    desk.model.then(run_inside)
    assert desk.run().text == "done"
