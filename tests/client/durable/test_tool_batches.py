"""Calls of one round together: side by side or one after the other, and complete whatever happens."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from client.durable import (
    AllowOnce,
    ApprovalRequest,
    FatalToolError,
    ListenerFailed,
    ToolFailed,
    TurnCancelled,
    TurnFailed,
)
from tests.client.durable.actors import Diary, says, wants
from tests.client.durable.conftest import MakeDesk

# --- a batch of which a part ran is completed (12.3, quirk 0) --------------------------------------


@pytest.mark.parametrize("moment", ["approval_requested", "asked", "approval_resolved", "tool_started"])
@pytest.mark.parametrize("how", ["cancelled", "listener fails"])
def test_a_stop_around_a_later_approval_leaves_no_journal_that_cannot_be_closed(
    make: MakeDesk, tmp_path: Path, moment: str, how: str
) -> None:
    diary = Diary()
    desk = make(tmp_path, diary.tool("look"), diary.tool(approval="it writes"))
    desk.model.then(wants(("look", {}), ("note", {}), ("look", {})))
    seen: list[str] = []

    def stop() -> None:
        if how == "cancelled":
            desk.session.cancel()
        else:
            raise OSError("the terminal is gone")

    def listen(event: Mapping[str, Any]) -> None:
        seen.append(event["type"])
        if event["type"] == moment and (moment != "tool_started" or seen.count("tool_started") == 2):
            stop()

    def approve(_: ApprovalRequest) -> AllowOnce:
        if moment == "asked":
            stop()
        return AllowOnce()

    with pytest.raises(TurnCancelled if how == "cancelled" else (ListenerFailed, TurnFailed)):
        desk.run(on_event=listen, approve=approve)

    assert diary.entries == ["look"]
    assert desk.results()[0] == "look done"
    assert len(desk.results()) == 3
    assert desk.session.is_usable
    desk.model.then(says("going on"))
    desk.run("and now?")
    assert desk.is_settled()


def test_fatal_tool_checkpoints_complete_uncertain_batch(make: MakeDesk, tmp_path: Path) -> None:
    diary = Diary()

    def die(*_: Any) -> str:
        raise FatalToolError("the sandbox is gone")

    desk = make(tmp_path, diary.tool("look"), diary.tool("die", does=die))
    desk.model.then(wants(("look", {"n": 1}), ("die", {}), ("look", {"n": 2})))

    with pytest.raises(ToolFailed, match="the sandbox is gone"):
        desk.run()

    assert diary.entries == ["look 1", "die"]
    assert desk.results()[0] == "look done"
    assert "may have happened" in desk.results()[1]
    assert desk.results()[2].startswith("Not executed")
    assert desk.session.is_usable
    assert desk.is_settled()


# --- side by side --------------------------------------------------------------------------------


def test_neighbouring_calls_of_parallel_tools_run_side_by_side(make: MakeDesk, tmp_path: Path) -> None:
    together = threading.Barrier(3)
    diary = Diary()
    meet = diary.tool("meet", does=lambda *_: f"met {together.wait(60)}", is_parallel=True)
    desk = make(tmp_path, meet)
    desk.model.then(wants(*[("meet", {"n": n}) for n in range(3)]), says("done"))

    desk.run()

    assert sorted(diary.entries) == ["meet 0", "meet 1", "meet 2"]
    assert [step for step in desk.steps if step in ("start", "complete")] == ["start"] * 3 + ["complete"] * 3
    assert desk.is_settled()


def test_results_of_calls_that_end_in_another_order_stand_in_the_order_of_the_plan(
    make: MakeDesk, tmp_path: Path
) -> None:
    second = threading.Event()

    def act(given: Mapping[str, Any], _: Any) -> str:
        if given["n"] == 1:
            assert second.wait(60)
        else:
            second.set()
        return f"result {given['n']}"

    desk = make(tmp_path, Diary().tool(does=act, is_parallel=True))
    desk.model.then(wants(("note", {"n": 1}), ("note", {"n": 2})), says("done"))

    desk.run()

    assert desk.results() == ["result 1", "result 2"]
    assert desk.is_settled()


def test_a_call_of_any_other_tool_runs_alone(make: MakeDesk, tmp_path: Path) -> None:
    running: list[str] = []
    most: list[int] = []

    def act(given: Mapping[str, Any], _: Any) -> str:
        running.append("x")
        most.append(len(running))
        running.pop()
        return "done"

    desk = make(tmp_path, Diary().tool(does=act), Diary().tool("look", does=act, is_parallel=True))
    desk.model.then(wants(("look", {}), ("note", {}), ("note", {}), ("look", {})), says("done"))

    desk.run()

    assert most == [1, 1, 1, 1]
    assert desk.steps.count("start") == 4
    starts = [step for step in desk.steps if step in ("start", "complete")]
    assert starts == ["start", "complete"] * 4


def test_a_cancelled_turn_waits_for_tools_that_finish_what_they_began(make: MakeDesk, tmp_path: Path) -> None:
    desk: Any = None
    both = threading.Barrier(2)

    def act(given: Mapping[str, Any], context: Any) -> str:
        both.wait(60)
        if given["n"] == 1:
            desk.session.cancel()
            return "first"
        while not context.cancelled.is_set():
            threading.Event().wait(0.001)
        return "second"

    desk = make(tmp_path, Diary().tool(does=act, is_parallel=True))
    desk.model.then(wants(("note", {"n": 1}), ("note", {"n": 2})))

    with pytest.raises(TurnCancelled):
        desk.run()

    assert desk.results() == ["first", "second"]
    assert desk.is_settled()


def test_a_cancelled_turn_does_not_wait_for_an_interruptible_tool(make: MakeDesk, tmp_path: Path) -> None:
    desk: Any = None
    release = threading.Event()

    def act(*_: Any) -> str:
        desk.session.cancel()
        release.wait(25)
        return "too late"

    desk = make(tmp_path, Diary().tool(does=act, on_cancel="interruptible"))
    desk.model.then(wants(("note", {})))
    try:
        with pytest.raises(TurnCancelled):
            desk.run()
    finally:
        release.set()

    assert "may have happened" in desk.results()[0]
    assert desk.session.is_usable
    assert desk.is_settled()
