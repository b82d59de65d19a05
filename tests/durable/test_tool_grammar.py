"""Every rule of an open journal, broken one at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from memory_core import limits
from memory_core.domain import tool_grammar
from memory_core.domain.agent_message import Role, ToolCall, said
from memory_core.domain.audit_event import (
    AuditEvent,
    CallPlanned,
    ModelCompleted,
    ToolCompleted,
    ToolOutput,
    ToolStarted,
    TurnCompleted,
    TurnStarted,
)
from memory_core.domain.tool_journal import (
    NOT_EXECUTED_TEXT,
    UNCERTAIN_TEXT,
    CallState,
    Invocation,
    Journal,
    Origin,
    denial_text,
)
from memory_core.errors import Invalid
from tests.durable.journals import (
    allow,
    asks,
    begun,
    call,
    deny,
    fine,
    new_id,
    planned,
    prompt,
    request,
    wrong,
)

A = call("shell", command="make test")
B = call("read_file", path="a.py")
NOT_RUN = wrong(NOT_EXECUTED_TEXT)
LOST = wrong(UNCERTAIN_TEXT)


def started(of: ToolCall) -> ToolStarted:
    return ToolStarted(call_id=of.id, tool_name=of.name)


def ended(of: ToolCall, output: ToolOutput | None = None) -> ToolCompleted:
    return ToolCompleted(call_id=of.id, tool_name=of.name, output=output or fine())


def with_events(*events: AuditEvent, **of_a: Any) -> Journal:
    """A journal that plans A and B, with these events behind the round; `of_a`: what the row of A says."""
    journal = planned(A, B)
    batch = journal.open_batch
    first = replace(batch.invocations[0], **of_a)
    changed = replace(batch, audit=batch.audit + events, invocations=(first, batch.invocations[1]))
    return replace(journal, batch=changed)


def completed(output: ToolOutput | None = None, origin: Origin = Origin.TOOL) -> dict[str, Any]:
    return {"state": CallState.COMPLETED, "output": output or fine(), "origin": origin}


STARTED = {"state": CallState.STARTED}
LEGAL: dict[str, Callable[[], Journal]] = {
    "planned": with_events,
    "asked": lambda: with_events(request(A)),
    "allowed": lambda: with_events(request(A), allow(A)),
    "denied and not told yet": lambda: with_events(request(A), deny(A)),
    "started": lambda: with_events(started(A), **STARTED),
    "allowed and started": lambda: with_events(request(A), allow(A), started(A), **STARTED),
    "completed": lambda: with_events(started(A), ended(A), **completed()),
    "failed": lambda: with_events(started(A), ended(A, wrong()), **completed(wrong())),
    "a tool that is not there": lambda: with_events(ended(A, wrong()), **completed(wrong())),
    "denied": lambda: with_events(
        request(A),
        deny(A),
        ended(A, wrong(denial_text("not now"))),
        **completed(wrong(denial_text("not now"))),
    ),
    "denied without a reason": lambda: with_events(
        request(A), deny(A, None), ended(A, wrong(denial_text(None))), **completed(wrong(denial_text(None)))
    ),
    "uncertain": lambda: with_events(started(A), ended(A, LOST), **completed(LOST, Origin.UNCERTAIN)),
    "not executed": lambda: with_events(ended(A, NOT_RUN), **completed(NOT_RUN, Origin.NOT_EXECUTED)),
    "allowed, not executed": lambda: with_events(
        request(A), allow(A), ended(A, NOT_RUN), **completed(NOT_RUN, Origin.NOT_EXECUTED)
    ),
    "denied, not executed": lambda: with_events(
        request(A), deny(A), ended(A, NOT_RUN), **completed(NOT_RUN, Origin.NOT_EXECUTED)
    ),
}
#: What is said about the events of one call.
_ORDER, _OPEN, _NOT_THERE = "each once, in this order", "while its approval is open", "not in the batch"
ILLEGAL: dict[str, tuple[Callable[[], Journal], str]] = {
    "started twice": (lambda: with_events(started(A), started(A), **STARTED), _ORDER),
    "asked twice": (lambda: with_events(request(A), request(A)), _ORDER),
    "decided before asked": (lambda: with_events(allow(A), request(A)), _ORDER),
    "decided twice": (lambda: with_events(request(A), allow(A), deny(A)), _ORDER),
    "decided, never asked": (lambda: with_events(allow(A)), "nobody asked for"),
    "asked after the start": (lambda: with_events(started(A), request(A), **STARTED), _ORDER),
    "completed twice": (lambda: with_events(started(A), ended(A), ended(A), **completed()), _ORDER),
    "started after its end": (lambda: with_events(ended(A), started(A), **completed()), _ORDER),
    "asked after its end": (lambda: with_events(started(A), ended(A), request(A), **completed()), _ORDER),
    "started, approval open": (lambda: with_events(request(A), started(A), **STARTED), _OPEN),
    "completed, approval open": (
        lambda: with_events(request(A), ended(A, wrong()), **completed(wrong())),
        _OPEN,
    ),
    "not executed, approval open": (
        lambda: with_events(request(A), ended(A, NOT_RUN), **completed(NOT_RUN, Origin.NOT_EXECUTED)),
        _OPEN,
    ),
    "denied and started": (lambda: with_events(request(A), deny(A), started(A), **STARTED), "never started"),
    "allowed, not started, by the tool": (
        lambda: with_events(request(A), allow(A), ended(A, wrong()), **completed(wrong())),
        "is not_executed",
    ),
    "success without a start": (lambda: with_events(ended(A), **completed()), "only after it was started"),
    "denied in other words": (
        lambda: with_events(
            request(A), deny(A), ended(A, wrong("it failed")), **completed(wrong("it failed"))
        ),
        "says that it was denied",
    ),
    "denied for another reason": (
        lambda: with_events(
            request(A),
            deny(A, "never"),
            ended(A, wrong(denial_text("now"))),
            **completed(wrong(denial_text("now"))),
        ),
        "says that it was denied",
    ),
    "uncertain without a start": (
        lambda: with_events(ended(A, LOST), **completed(LOST, Origin.UNCERTAIN)),
        "uncertain",
    ),
    "uncertain success": (
        lambda: with_events(started(A), ended(A), **completed(fine(), Origin.UNCERTAIN)),
        "uncertain",
    ),
    "not executed after a start": (
        lambda: with_events(started(A), ended(A, NOT_RUN), **completed(NOT_RUN, Origin.NOT_EXECUTED)),
        "never started",
    ),
    "not executed success": (
        lambda: with_events(ended(A), **completed(fine(), Origin.NOT_EXECUTED)),
        "never started",
    ),
    "unobserved": (
        lambda: with_events(started(A), ended(A), **completed(fine(), Origin.UNOBSERVED)),
        "only what hooks tell",
    ),
    "started in the row only": (lambda: with_events(**STARTED), "its audit says planned"),
    "started in the audit only": (lambda: with_events(started(A)), "its audit says started"),
    "completed in the row only": (lambda: with_events(started(A), **completed()), "its audit says started"),
    "completed in the audit only": (lambda: with_events(started(A), ended(A), **STARTED), "says completed"),
    "a result without completion": (lambda: with_events(output=fine()), "has no result"),
    "an origin without completion": (
        lambda: with_events(started(A), origin=Origin.TOOL, **STARTED),
        "has no result",
    ),
    "completed without an origin": (
        lambda: with_events(started(A), ended(A), state=CallState.COMPLETED, output=fine()),
        "an origin",
    ),
    "another output": (lambda: with_events(started(A), ended(A, fine("4 passed")), **completed()), "differ"),
    "an error that was none": (
        lambda: with_events(started(A), ended(A, wrong("3 passed")), **completed()),
        "differ",
    ),
    "another tool started": (
        lambda: with_events(ToolStarted(call_id=A.id, tool_name="read_file"), **STARTED),
        "another tool was started",
    ),
    "another tool completed": (
        lambda: with_events(
            started(A), ToolCompleted(call_id=A.id, tool_name="read_file", output=fine()), **completed()
        ),
        "differ",
    ),
    "a stranger's call": (lambda: with_events(started(call())), _NOT_THERE),
    "asked about another tool": (lambda: with_events(request(A, tool_name="read_file")), "another call"),
    "asked with other arguments": (
        lambda: with_events(request(A, arguments={"command": "rm"})),
        "another call",
    ),
    "asked on another host": (lambda: with_events(request(A, workspace_host="box")), "another directory"),
    "asked on another device": (lambda: with_events(request(A, workspace_device="1")), "another directory"),
    "asked in another directory": (lambda: with_events(request(A, workspace_inode="1")), "another directory"),
    "a relative root": (lambda: with_events(request(A, workspace_root="src")), "absolute path"),
    "no reason": (lambda: with_events(request(A, reason=" ")), "reason must be"),
    "a long reason": (lambda: with_events(request(A, reason="é" * 2_049)), "reason must be"),
    "a reason that moves the cursor": (
        lambda: with_events(request(A, reason="ok\x1b[2K")),
        "control character",
    ),
    "the turn ends inside": (
        lambda: with_events(TurnCompleted(turn_id=begun().open_turn.turn_id, model_rounds=1)),
        "no place behind",
    ),
    "the turn begins inside": (lambda: with_events(TurnStarted(turn_id=new_id())), "no place behind"),
}


@pytest.mark.parametrize("name", LEGAL)
def test_what_may_happen_to_a_call_is_accepted(name: str):
    tool_grammar.check(LEGAL[name]())


@pytest.mark.parametrize("name", ILLEGAL)
def test_what_may_not_happen_to_a_call_is_refused(name: str):
    make, told = ILLEGAL[name]
    with pytest.raises(Invalid, match=told):
        tool_grammar.check(make())


def test_calls_of_one_batch_run_side_by_side():
    journal = with_events(started(A), started(B), ended(B, wrong()), ended(A), **completed())
    batch = journal.open_batch
    second = replace(batch.invocations[1], **completed(wrong()))
    tool_grammar.check(replace(journal, batch=replace(batch, invocations=(batch.invocations[0], second))))


# --- the round -----------------------------------------------------------------------------------


def round_with(change: Callable[[list[AuditEvent]], object]) -> Journal:
    journal = planned(A, B)
    audit = list(journal.open_batch.audit)
    change(audit)
    return replace(journal, batch=replace(journal.open_batch, audit=tuple(audit)))


def swap(audit: list[AuditEvent]) -> None:
    audit[2], audit[3] = audit[3], audit[2]


def put(index: int, **change: Any) -> Callable[[list[AuditEvent]], None]:
    def changed(audit: list[AuditEvent]) -> None:
        audit[index] = replace(audit[index], **change)

    return changed


OTHER = new_id()
ROUNDS: dict[str, tuple[Callable[[list[AuditEvent]], object], str]] = {
    "no audit": (list.clear, "begins with model_started"),
    "no model_started": (lambda audit: audit.pop(1), "begins with model_started|tool_call events"),
    "no tool_call": (lambda audit: audit.pop(3), "begins with model_started"),
    "no model_completed": (lambda audit: audit.pop(), "begins with model_started"),
    "calls out of order": (swap, "in their order"),
    "a tool_call with other arguments": (put(2, call=ToolCall(A.id, A.name, {})), "in their order"),
    "a tool_call of another round": (put(2, round=2), "in their order"),
    "a model that ends in another round": (put(4, round=2), "one round"),
    "a round of before": (lambda a: [put(i, round=0)(a) for i in (1, 2, 3, 4)], "one round"),
    "a model that stopped": (put(4, finish_reason="stop"), "finishes with"),
    "turn_started of another turn": (put(0, turn_id=OTHER), "another turn"),
    "model_started of another turn": (put(1, turn_id=OTHER), "another turn"),
    "tool_call of another turn": (put(2, turn_id=OTHER), "another turn"),
    "model_completed of another turn": (put(4, turn_id=OTHER), "another turn"),
}


@pytest.mark.parametrize("name", ROUNDS)
def test_a_round_of_another_shape_is_refused(name: str):
    change, told = ROUNDS[name]
    with pytest.raises(Invalid, match=told):
        tool_grammar.check(round_with(change))


def test_a_turn_need_not_say_that_it_started():
    tool_grammar.check(round_with(lambda audit: audit.pop(0)))


def changed(journal: Journal, **of_batch: Any) -> Journal:
    return replace(journal, batch=replace(journal.open_batch, **of_batch))


def test_a_batch_of_another_shape_is_refused():
    journal = planned(A, B)
    batch = journal.open_batch
    turn = journal.open_turn
    swapped = (batch.invocations[1], batch.invocations[0])
    for broken, told in [
        (replace(journal, turn=None), "no turn is"),
        (replace(journal, turn=replace(turn, turn_id=OTHER)), "another turn"),
        (replace(journal, turn=replace(turn, checkpoint_count=1)), "plans 1 message"),
        (replace(journal, turn=replace(turn, input=prompt("something else"))), "the turn's input"),
        (changed(journal, messages=batch.messages[1:]), "plans 2 message"),
        (changed(journal, messages=(turn.input, said(Role.ASSISTANT, "done"))), "that calls tools"),
        (changed(journal, messages=(turn.input, turn.input)), "that calls tools"),
        (changed(journal, messages=(turn.input, asks(A))), "in their order"),
        (changed(journal, invocations=swapped), "in their order"),
        (
            changed(journal, invocations=(Invocation(call=ToolCall(A.id, "rm", {})), swapped[0])),
            "in their order",
        ),
    ]:
        with pytest.raises(Invalid, match=told):
            tool_grammar.check(broken)
    later = replace(journal, turn=replace(turn, checkpoint_count=1))
    with pytest.raises(Invalid, match="first checkpoint"):
        tool_grammar.check(changed(later, messages=batch.messages[1:]))


def test_outputs_of_a_round_have_768_kib():
    calls = [call() for _ in range(4)]
    journal = planned(*calls)
    long = fine("x" * (limits.TOOL_OUTPUT_MAX_BYTES))
    rows = tuple(replace(each, **completed(long)) for each in journal.open_batch.invocations)
    with pytest.raises(Invalid, match="all outputs"):
        tool_grammar.check(changed(journal, invocations=rows))


def test_the_audit_of_a_turns_end_has_its_order():
    turn = begun().open_turn
    of = {"turn_id": turn.turn_id}
    one, over = CallPlanned(round=1, call=A, **of), TurnCompleted(model_rounds=1, **of)
    spoken = ModelCompleted(round=1, finish_reason="stop", **of)
    for events in ([over], [TurnStarted(**of), spoken, over], [one, one, spoken, over]):
        tool_grammar.check_turn_events(turn, events, is_failed=False)
    for events, told in [
        ([], "ends with"),
        ([spoken], "ends with"),
        ([over, spoken], "ends with"),
        ([over, over], "no place"),
        ([spoken, one, over], "no place"),
        ([spoken, spoken, over], "no place"),
        ([spoken, TurnStarted(**of), over], "no place"),
        ([TurnStarted(**of), TurnStarted(**of), over], "no place"),
        ([started(A), over], "no place"),
        ([TurnStarted(turn_id=OTHER), over], "another turn"),
        ([TurnCompleted(turn_id=OTHER, model_rounds=1)], "another turn"),
    ]:
        with pytest.raises(Invalid, match=told):
            tool_grammar.check_turn_events(turn, events, is_failed=False)
    with pytest.raises(Invalid, match="cancelled or turn_failed"):
        tool_grammar.check_turn_events(turn, [over], is_failed=True)
    with pytest.raises(Invalid, match="first checkpoint"):
        tool_grammar.check_turn_events(
            replace(turn, checkpoint_count=1), [TurnStarted(**of), over], is_failed=False
        )
