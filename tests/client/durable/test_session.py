"""What a session is between turns: opened, poisoned, resumed, recovered, closed; its lease and its authority."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from client.durable import (
    Closed,
    FatalToolError,
    LeaseLost,
    ModelFailed,
    Poisoned,
    UncertainToolInvocations,
)
from client.durable.errors import DirectoryGone
from memory_core import limits
from memory_core.domain import tool_steps
from memory_core.domain.agent_message import Role, said
from memory_core.errors import (
    Corrupt,
    SessionBusy,
    StaleSessionLease,
    Unavailable,
)
from tests.client.durable.actors import Desk, Diary, allowing, says, wants
from tests.client.durable.conftest import MakeDesk
from tests.client.durable.steps import Killed

#: The steps of a turn with one tool that must be allowed.
STEPS = ("begin", "plan", "ask", "decide", "start", "complete", "checkpoint", "end")


def killed_at(desk: Desk, step: str, *, after: bool) -> None:
    """A turn with one tool, whose program ends at a step; the server clears its lease, as time would."""
    desk.model.then(wants(("note", {"n": 1})), says("noted"))
    desk.server.steps.fail(step, Killed(), after=after)
    with pytest.raises(Killed):
        desk.run(approve=allowing)
    desk.server.expire()


# --- a turn that does not end ----------------------------------------------------------------------


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("step", STEPS)
def test_a_program_that_ends_at_any_step_is_resumed_exactly(tmp_path: Path, step: str, after: bool) -> None:
    diary = Diary()
    desk = Desk(tmp_path, diary.tool(approval="it writes"))
    killed_at(desk, step, after=after)
    is_uncertain = (step, after) in (("start", True), ("complete", False))
    resumed = desk.another()

    if is_uncertain:
        with pytest.raises(UncertainToolInvocations) as raised:
            resumed.open()
        assert [call.tool_name for call in raised.value.calls] == ["note"]
        assert not desk.server.is_held
        desk.server.accept_unknown_effects(desk.identity)
    resumed.open()

    assert desk.server.is_settled
    assert diary.entries == (["note 1"] if _has_run(step, after) else [])
    desk.model._lines.clear()
    desk.model.then(says("going on"))
    resumed.run("and now?")
    mine = resumed.history
    resumed.release()
    again = desk.another()
    again.open()
    assert again.history == mine


def _has_run(step: str, after: bool) -> bool:
    """Whether the tool ran before the end of the program."""
    return step in ("complete", "checkpoint", "end")


def test_dropped_run_poison_prevents_reuse_and_distillation_until_recovery(
    make: MakeDesk, tmp_path: Path
) -> None:
    desk = make(tmp_path, Diary().tool(approval="it writes"))
    desk.model.then(wants(("note", {})))
    desk.server.steps.fail("start", Killed())

    with pytest.raises(Killed):
        desk.run(approve=allowing)

    with pytest.raises(Poisoned):
        desk.run("again")
    with pytest.raises(Poisoned):
        desk.session.close()
    with pytest.raises(Poisoned):
        desk.session.set_title("a title")
    assert desk.server.distillations == 0

    desk.session.open()
    assert desk.session.is_usable
    assert desk.session.close() is not None


def test_a_session_is_poisoned_before_anything_is_sent(make: MakeDesk, tmp_path: Path) -> None:
    desk = make(tmp_path)
    desk.server.steps.before["begin"] = lambda: seen.append(desk.session.is_usable)
    desk.model.then(says("hello"))
    seen: list[bool] = []

    desk.run()

    assert seen == [False]
    assert desk.session.is_usable


def test_a_failure_that_cannot_be_written_down_poisons(make: MakeDesk, tmp_path: Path) -> None:
    desk = make(tmp_path)
    desk.model.then(RuntimeError("gone"))
    desk.server.steps.fail("fail", Unavailable("the broker is away"), once=False)

    with pytest.raises(ModelFailed):
        desk.run()

    assert not desk.session.is_usable
    desk.server.steps.before.clear()
    desk.session.open()
    assert desk.session.is_usable
    assert desk.server.is_settled


def test_malformed_pending_recovery_fails_closed_and_releases_session(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.session.release()
    desk.server.steps.fail("recover", Corrupt("the journal is not whole"), once=False)
    desk.server.journal = tool_steps.begun(
        desk.server.journal, "01890000-0000-7000-8000-000000000001", said(Role.USER, "hi")
    )

    with pytest.raises(Corrupt):
        desk.session.open()

    assert not desk.server.is_held
    assert not desk.session.is_usable
    with pytest.raises(Closed):
        desk.run()


# --- the lease -----------------------------------------------------------------------------------


def test_live_session_claim_excludes_another_resumer(make: MakeDesk, tmp_path: Path) -> None:
    desk = make(tmp_path)

    with pytest.raises(SessionBusy):
        desk.another().open()

    desk.session.release()
    desk.another().open()


def test_reclaimed_session_claim_invalidates_first_writer(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.server.expire()
    other = desk.another()
    other.open()
    desk.model.then(says("too late"))

    with pytest.raises(StaleSessionLease):
        desk.run()

    assert not desk.session.is_usable
    assert desk.server.events == []


def test_a_renewal_that_fails_cancels_the_turn_at_once_and_poisons(make: MakeDesk, tmp_path: Path) -> None:
    desk = make(tmp_path)
    asked = threading.Event()
    session = desk.another(renew_seconds=60, pause=lambda is_over, _: is_over.wait(0) or not asked.wait(60))
    desk.session.release()
    session.open()

    def hang(request: Any) -> Any:
        desk.server.steps.fail("renew", StaleSessionLease(), once=False)
        asked.set()
        threading.Event().wait(25)
        return says("too late")

    desk.model.then(hang)

    with pytest.raises(LeaseLost):
        session.run("hi")

    assert not session.is_usable
    assert "fail" not in desk.steps
    desk.server.steps.before.clear()
    session.open()
    assert session.is_usable
    assert desk.server.is_settled


def test_a_tool_that_runs_when_the_lease_is_lost_is_waited_for_and_told_if_that_is_possible(
    tmp_path: Path,
) -> None:
    desk: Any = None
    renewed = threading.Event()

    def act(_: Any, context: Any) -> str:
        desk.server.steps.fail("renew", Unavailable("no route"), once=False)
        renewed.set()
        while not context.cancelled.is_set():
            threading.Event().wait(0.001)
        return "it is done"

    desk = Desk(tmp_path, Diary().tool(does=act))
    session = desk.another(pause=lambda is_over, _: is_over.wait(0) or not renewed.wait(60))
    desk.session.release()
    session.open()
    desk.model.then(wants(("note", {})))

    with pytest.raises(LeaseLost):
        session.run("hi")

    assert not session.is_usable
    assert desk.server.result_of(0) == "it is done"
    desk.server.steps.before.clear()
    session.open()
    assert session.history[-1].text == "it is done"


def test_the_lease_is_renewed_while_a_turn_runs(make: MakeDesk, tmp_path: Path) -> None:
    desk = make(tmp_path)
    thrice = threading.Semaphore(0)
    session = desk.another(pause=lambda is_over, _: is_over.wait(0))
    desk.session.release()
    session.open()
    desk.server.steps.after["renew"] = thrice.release
    desk.model.then(lambda _: says("long") if all(thrice.acquire(timeout=60) for _ in range(3)) else None)

    assert session.run("hi").text == "long"


def test_a_session_that_was_idle_renews_its_lease_before_a_turn(make: MakeDesk, tmp_path: Path) -> None:
    desk = make(tmp_path)
    desk.model.then(says("one"), says("two"))

    desk.run()
    assert desk.steps == ["begin", "end"]

    desk.clock.advance(limits.SESSION_RENEW_SECONDS + 1)
    desk.run()
    assert desk.steps[2:] == ["renew", "begin", "end"]


def test_a_session_that_was_idle_for_too_long_must_be_opened_anew(make: MakeDesk, tmp_path: Path) -> None:
    desk = make(tmp_path)
    desk.server.expire()
    desk.clock.advance(3_600)

    with pytest.raises(StaleSessionLease):
        desk.run()

    assert not desk.session.is_usable
    desk.session.open()
    desk.model.then(says("hello again"))
    assert desk.run().text == "hello again"


def test_a_server_that_cannot_be_reached_before_a_turn_leaves_the_session_usable(
    make: MakeDesk, tmp_path: Path
) -> None:
    desk = make(tmp_path)
    desk.server.steps.fail("renew", Unavailable("no route"))
    desk.clock.advance(3_600)

    with pytest.raises(Unavailable):
        desk.run()

    assert desk.session.is_usable


# --- ends ------------------------------------------------------------------------------------------


def test_close_only_queues_distillation_for_an_explicit_worker(make: MakeDesk, tmp_path: Path) -> None:
    desk = make(tmp_path)
    desk.model.then(says("hello"))
    desk.run()
    asked = len(desk.model.requests)

    assert desk.session.close() is not None

    assert desk.server.distillations == 1
    assert len(desk.model.requests) == asked
    assert not desk.server.is_held
    with pytest.raises(Closed):
        desk.run()
    with pytest.raises(Closed):
        desk.session.close()


def test_closing_an_empty_session_gives_no_job(make: MakeDesk, tmp_path: Path) -> None:
    assert make(tmp_path).session.close() is None


def test_a_with_block_closes_at_a_good_end_and_lets_go_at_a_bad_one(make: MakeDesk, tmp_path: Path) -> None:
    desk = make(tmp_path)
    desk.model.then(says("hello"))
    with desk.session:
        desk.run()
    assert desk.server.distillations == 1

    again = desk.another()
    again.open()
    with pytest.raises(KeyError), again:
        raise KeyError
    assert desk.server.distillations == 1
    assert not desk.server.is_held


def test_a_poisoned_session_is_let_go_without_a_distillation(make: MakeDesk, tmp_path: Path) -> None:
    desk = make(tmp_path)
    desk.server.steps.fail("begin", Killed())
    with desk.session, pytest.raises(Killed):
        desk.run()
    assert desk.server.distillations == 0
    assert not desk.server.is_held


# --- the directory -----------------------------------------------------------------------------------


def test_a_fatal_tool_leaves_nothing_allowed_for_later(make: MakeDesk, tmp_path: Path) -> None:
    def die(*_: Any) -> str:
        raise FatalToolError("gone")

    asked: list[str] = []
    desk = make(tmp_path, Diary().tool(does=die, approval="it writes"))
    desk.model.then(wants(("note", {})), wants(("note", {})))

    for _ in range(2):
        with pytest.raises(Exception, match="gone"):
            desk.run(approve=lambda request: asked.append(request.call_id) or allowing(request))

    assert len(set(asked)) == 2


def test_a_session_needs_a_directory_that_is_there(make: MakeDesk, tmp_path: Path) -> None:
    with pytest.raises(DirectoryGone):
        make(tmp_path / "missing")
