"""Calls of tools: checked, allowed, run alone or side by side, and complete whatever happens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from client.durable import (
    AllowOnce,
    ApprovalRequest,
    Deny,
    Poisoned,
    ToolError,
    ToolOutput,
    TurnFailed,
)
from memory_core import limits
from memory_core.domain.tool_journal import denial_text
from memory_core.errors import Invalid
from tests.client.durable.actors import NUMBERED, Diary, allowing, says, wants
from tests.client.durable.conftest import MakeDesk

# --- what becomes a result of its own ------------------------------------------------------------


def test_denied_approval_does_not_invoke_tool_and_keeps_history_complete(
    make: MakeDesk, tmp_path: Path
) -> None:
    diary = Diary()
    desk = make(tmp_path, diary.tool(approval="it writes"))
    desk.model.then(wants(("note", {})), says("then not"))

    desk.run(approve=lambda _: Deny("not on a Friday"))

    assert diary.entries == []
    assert desk.results() == [denial_text("not on a Friday")]
    assert "start" not in desk.steps
    assert desk.is_settled()


def test_a_denial_is_kept_however_it_is_worded(make: MakeDesk, tmp_path: Path) -> None:
    desk = make(tmp_path, Diary().tool(approval="it writes"))
    desk.model.then(wants(("note", {})), says("then not"))

    desk.run(approve=lambda _: Deny("no\x1b[31m\nnever " + "x" * 2 * limits.APPROVAL_TEXT_MAX_BYTES))

    (said,) = desk.results()
    assert said.startswith(denial_text("no [31m never xxx"))
    assert desk.is_settled()


def test_nobody_to_ask_means_no(make: MakeDesk, tmp_path: Path) -> None:
    diary = Diary()
    desk = make(tmp_path, diary.tool(approval="it writes"))
    desk.model.then(wants(("note", {})), says("then not"))

    desk.run()

    assert diary.entries == []
    assert "nobody is here" in desk.results()[0]


@pytest.mark.parametrize("given", [{"n": "one"}, {}, {"n": 1, "m": 2}, "n = 1", [1]])
def test_schema_mismatch_becomes_complete_recoverable_tool_result(
    make: MakeDesk, tmp_path: Path, given: Any
) -> None:
    diary = Diary()
    desk = make(tmp_path, diary.tool(schema=NUMBERED))
    desk.model.then(wants(("note", given)), wants(("note", {"n": 1})), says("at last"))

    assert desk.run().text == "at last"

    assert diary.entries == ["note 1"]
    assert "do not fit" in desk.results()[0]
    assert desk.is_settled()


def test_arguments_as_json_text_are_read(make: MakeDesk, tmp_path: Path) -> None:
    diary = Diary()
    desk = make(tmp_path, diary.tool(schema=NUMBERED))
    desk.model.then(wants(("note", '{"n": 4}')), says("done"))

    desk.run()

    assert diary.entries == ["note 4"]


def test_disabled_tool_call_never_reaches_approval_or_invocation(make: MakeDesk, tmp_path: Path) -> None:
    diary = Diary()
    asked: list[ApprovalRequest] = []
    desk = make(tmp_path, diary.tool(approval="it writes"), diary.tool("look"))
    desk.session.narrow_tools(["look"])
    desk.model.then(wants(("note", {})), says("then not"))

    desk.run(approve=lambda request: asked.append(request) or AllowOnce())

    assert (diary.entries, asked) == ([], [])
    assert "no tool note" in desk.results()[0]
    assert "ask" not in desk.steps
    assert desk.is_settled()


@pytest.mark.parametrize(
    ("does", "said"),
    [
        pytest.param(ToolError("no such file"), "no such file", id="a tool error"),
        pytest.param(
            ZeroDivisionError("by zero"), "The tool failed: ZeroDivisionError: by zero", id="any error"
        ),
        pytest.param(
            ToolOutput(content="half done", is_error=True), "half done", id="an output that is an error"
        ),
        pytest.param("", "(no output)", id="nothing"),
        pytest.param(7, "The tool returned int; tools return text or a ToolOutput.", id="a number"),
        pytest.param("a\0b\ud83d", "a\ufffdb?", id="what cannot be stored"),
    ],
)
def test_what_a_tool_says_or_raises_becomes_its_result(
    make: MakeDesk, tmp_path: Path, does: Any, said: str
) -> None:
    def act(*_: Any) -> Any:
        if isinstance(does, BaseException):
            raise does
        return does

    desk = make(tmp_path, Diary().tool(does=act))
    desk.model.then(wants(("note", {})), says("I see"))

    desk.run()

    assert desk.results() == [said]
    assert desk.is_settled()


def test_long_outputs_are_cut_and_say_so_and_a_turn_keeps_only_so_much(
    make: MakeDesk, tmp_path: Path
) -> None:
    calls = 14
    desk = make(tmp_path, Diary().tool(does=lambda *_: "ä" * limits.TOOL_OUTPUT_MAX_BYTES))
    desk.model.then(wants(*[("note", {"n": n}) for n in range(calls)]), says("enough"))

    desk.run()

    sizes = [len(text.encode()) for text in desk.results()]
    assert len(sizes) == calls
    assert max(sizes) <= limits.TOOL_OUTPUT_MAX_BYTES
    assert sum(sizes) <= limits.TURN_TOOL_OUTPUT_MAX_BYTES
    assert desk.results()[0].endswith(f"[cut: the output was {2 * limits.TOOL_OUTPUT_MAX_BYTES} bytes]")
    assert desk.results()[-1].startswith("[left out")
    assert desk.is_settled()


# --- approvals -----------------------------------------------------------------------------------


def test_whoever_is_asked_sees_the_call_and_why(make: MakeDesk, tmp_path: Path) -> None:
    asked: list[ApprovalRequest] = []
    desk = make(tmp_path, Diary().tool(approval=lambda given: f"writes {given['n']}"))
    desk.model.then(wants(("note", {"n": 5})), says("done"))

    desk.run(approve=lambda request: asked.append(request) or AllowOnce())

    (request,) = asked
    assert (request.tool_name, request.arguments, request.reason) == ("note", {"n": 5}, "writes 5")
    assert request.directory == str(tmp_path.resolve())


def test_a_tool_may_need_no_approval_for_some_arguments(make: MakeDesk, tmp_path: Path) -> None:
    diary = Diary()
    desk = make(tmp_path, diary.tool(approval=lambda given: "big" if given["n"] > 9 else None))
    desk.model.then(wants(("note", {"n": 1}), ("note", {"n": 10})), says("done"))

    desk.run(approve=lambda _: Deny())

    assert diary.entries == ["note 1"]


def test_what_was_allowed_once_is_asked_again(make: MakeDesk, tmp_path: Path) -> None:
    asked: list[ApprovalRequest] = []
    desk = make(tmp_path, Diary().tool(approval="it writes"))
    desk.model.then(wants(("note", {"n": 1}), ("note", {"n": 1})), wants(("note", {"n": 1})), says("done"))

    desk.run(approve=lambda request: asked.append(request) or AllowOnce())

    assert len({request.call_id for request in asked}) == 3


@pytest.mark.parametrize("reason", ["a\x1b[2J", "a\u202egpj.exe", "two\nlines", " ", "x" * 5_000, 7])
def test_approval_reason_control_characters_fail_before_policy_or_invocation(
    make: MakeDesk, tmp_path: Path, reason: Any
) -> None:
    diary = Diary()
    asked: list[ApprovalRequest] = []
    desk = make(tmp_path, diary.tool(approval=lambda _: reason))
    desk.model.then(wants(("note", {})))

    with pytest.raises(TurnFailed, match="reason"):
        desk.run(approve=lambda request: asked.append(request) or AllowOnce())

    assert (diary.entries, asked) == ([], [])
    assert desk.session.is_usable
    assert desk.is_settled()


def test_an_answer_that_is_none_fails_the_turn(make: MakeDesk, tmp_path: Path) -> None:
    diary = Diary()
    desk = make(tmp_path, diary.tool(approval="it writes"))
    desk.model.then(wants(("note", {})))

    with pytest.raises(TurnFailed, match="AllowOnce"):
        desk.run(approve=lambda _: True)

    assert diary.entries == []
    assert desk.is_settled()


# --- the tools of a session ----------------------------------------------------------------------


def test_tools_are_narrowed_within_the_snapshot_only(make: MakeDesk, tmp_path: Path) -> None:
    desk = make(tmp_path, Diary().tool(), Diary().tool("look"))

    with pytest.raises(Invalid, match="shell"):
        desk.session.narrow_tools(["look", "shell"])

    desk.session.narrow_tools(["look"])
    assert desk.session.enabled_tools == {"look"}


def test_enabled_tool_subset_is_transient_and_snapshot_neutral(make: MakeDesk, tmp_path: Path) -> None:
    desk = make(tmp_path, Diary().tool(), Diary().tool("look"))
    before = desk.server.snapshot
    desk.session.narrow_tools(["look"])
    desk.model.then(says("hello"))
    desk.run()

    assert [tool["name"] for tool in desk.model.requests[-1].tools] == ["look"]
    assert desk.server.snapshot == before

    desk.session.release()
    desk.session.open()
    assert desk.session.enabled_tools == {"note", "look"}


def test_a_disabled_tool_is_shown_while_the_history_holds_a_call_of_it(
    make: MakeDesk, tmp_path: Path
) -> None:
    desk = make(tmp_path, Diary().tool(), Diary().tool("look"), Diary().tool("other"))
    desk.model.then(wants(("note", {})), says("one"), says("two"))
    desk.run()

    desk.session.narrow_tools(["look"])
    desk.run()

    assert [tool["name"] for tool in desk.model.requests[-1].tools] == ["look", "note"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "two words"},
        {"name": "x" * 65},
        {"description": "x" * (limits.TOOL_DESCRIPTION_MAX_BYTES + 1)},
        {"on_cancel": "never"},
        {"schema": {"type": "object", "dependentRequired": {}}},
        {"schema": {"type": "thing"}},
    ],
)
def test_a_tool_that_cannot_be_offered_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        Diary().tool(**wrong)


def test_two_tools_of_one_name_and_too_many_tools_are_refused(make: MakeDesk, tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="one name"):
        make(tmp_path, Diary().tool(), Diary().tool())
    with pytest.raises(Invalid, match="at most"):
        make(tmp_path, *[Diary().tool(f"t{n}") for n in range(limits.TOOLS_MAX + 1)])


def test_a_poisoned_session_offers_nothing(make: MakeDesk, tmp_path: Path) -> None:
    desk = make(tmp_path, Diary().tool(approval="it writes"))
    desk.session.drop()

    with pytest.raises(Poisoned):
        desk.run(approve=allowing)
