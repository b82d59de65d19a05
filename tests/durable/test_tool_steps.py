"""The steps of a journal: what each leaves, and when it is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from memory_core import limits
from memory_core.domain import tool_checkpoint, tool_grammar, tool_steps
from memory_core.domain.agent_message import Message, Role, Text, said
from memory_core.domain.audit_event import (
    ApprovalResolved,
    Cancelled,
    ModelCompleted,
    ModelStarted,
    ToolCompleted,
    TurnCompleted,
    TurnFailed,
)
from memory_core.domain.session_event import NewEvent
from memory_core.domain.tool_journal import (
    INTERRUPTED_TEXT,
    NOT_EXECUTED_TEXT,
    CallState,
    Journal,
    Origin,
    denial_text,
)
from memory_core.domain.tool_steps import Round
from memory_core.errors import Conflict, Invalid, NotFound, UncertainCalls
from tests.durable.journals import (
    HERE,
    allow,
    asks,
    begun,
    call,
    deny,
    done,
    fine,
    new_id,
    planned,
    prompt,
    request,
    wrong,
)


def kinds(checkpoint: tool_checkpoint.Checkpoint) -> list[str]:
    return [event.kind.value for event in checkpoint.events]


def told(event: NewEvent) -> dict[str, Any]:
    return json.loads(event.payload_json)


def test_a_session_has_one_turn_at_a_time():
    with pytest.raises(Conflict, match="a turn is open"):
        tool_steps.begun(begun(), new_id(), prompt())


def test_a_batch_needs_a_turn_and_is_alone():
    with pytest.raises(Conflict, match="no turn is open"):
        tool_steps.planned(Journal(directory=HERE), asks(call()), Round(turn_id=new_id(), number=1))
    with pytest.raises(Conflict, match="open in this session already"):
        planned(journal=planned())


def test_a_call_goes_from_planned_over_started_to_completed():
    one = call()
    journal = planned(one)

    started = tool_steps.started(journal, one.id)
    completed = tool_steps.completed(started, one.id, fine())

    states = [each.open_batch.invocation(one.id).state for each in (journal, started, completed)]
    assert states == [CallState.PLANNED, CallState.STARTED, CallState.COMPLETED]
    assert completed.open_batch.invocation(one.id).origin is Origin.TOOL
    assert isinstance(completed.open_batch.audit[-1], ToolCompleted)


def test_a_step_that_does_not_exist_is_refused():
    one = call()
    started = tool_steps.started(planned(one), one.id)
    completed = tool_steps.completed(started, one.id, fine())
    for step in (
        lambda: tool_steps.started(started, one.id),
        lambda: tool_steps.started(completed, one.id),
        lambda: tool_steps.completed(completed, one.id, fine()),
        lambda: tool_steps.audited(started, request(one)),
        lambda: tool_steps.audited(completed, request(one)),
        lambda: tool_steps.discarded(started),
        lambda: tool_steps.discarded(completed),
        lambda: tool_steps.discarded(begun()),
        lambda: tool_checkpoint.round_done(started),
    ):
        with pytest.raises(Conflict):
            step()
    with pytest.raises(NotFound, match="has no call"):
        tool_steps.started(started, new_id())


def test_what_is_started_is_what_was_planned():
    one = call()
    turn = begun()
    batch = Round(turn_id=turn.open_turn.turn_id, number=1, starts_turn=True)
    journal = tool_steps.planned(turn, asks(one), batch, {one.id: "17a0"})

    assert tool_steps.started(journal, one.id, "17a0")
    assert tool_steps.audited(journal, request(one), "17a0")
    for step in (
        lambda: tool_steps.started(journal, one.id, "beef"),
        lambda: tool_steps.audited(journal, request(one), "beef"),
    ):
        with pytest.raises(Invalid, match="not the call that was planned"):
            step()


def test_denied_approval_does_not_invoke_tool_and_keeps_history_complete():
    one = call()
    denied = tool_steps.audited(tool_steps.audited(planned(one), request(one)), deny(one))
    with pytest.raises(Invalid, match="never started"):
        tool_steps.started(denied, one.id)

    told = tool_steps.completed(denied, one.id, wrong(denial_text("not now")))

    assert kinds(tool_checkpoint.round_done(told))[-1] == "tool_result"


# --- the wedge of an approval that is open, or allowed, when the turn is cancelled --------------------


@pytest.mark.parametrize("is_allowed", [False, True], ids=["its approval open", "allowed and not started"])
def test_a_call_that_is_closed_between_approval_and_start_does_not_wedge_its_batch(is_allowed: bool):
    first, second = call(), call()
    journal = done(planned(first, second), first)
    journal = tool_steps.audited(journal, request(second))
    if is_allowed:
        journal = tool_steps.audited(journal, allow(second))
    # What wedges: a result in the tool's name for a call that was never started.
    with pytest.raises(Invalid):
        tool_steps.completed(journal, second.id, wrong("cancelled"))

    closed = tool_steps.closed(journal, second.id)

    tool_grammar.check(closed)
    row = closed.open_batch.invocation(second.id)
    assert (row.origin, row.output) == (Origin.NOT_EXECUTED, wrong(NOT_EXECUTED_TEXT))
    decisions = [event for event in closed.open_batch.audit if isinstance(event, ApprovalResolved)]
    assert [each.reason for each in decisions] == [None if is_allowed else INTERRUPTED_TEXT]
    assert kinds(tool_checkpoint.round_done(closed))[-2:] == ["tool_result", "tool_result"]


def test_a_started_call_without_a_result_is_closed_as_uncertain():
    one = call()
    closed = tool_steps.closed(tool_steps.started(planned(one), one.id), one.id)
    assert closed.open_batch.invocation(one.id).origin is Origin.UNCERTAIN
    assert tool_steps.closed(closed, one.id) is closed


# --- the audit of a round --------------------------------------------------------------------------


def test_a_rounds_audit_is_read_only_in_its_one_form():
    one, two, turn_id = call(), call(), new_id()
    told = Round(turn_id=turn_id, number=3, usage={"output_tokens": 5}, starts_turn=False)
    audit = tool_steps.opening(told, [one, two])
    assert tool_steps.round_of(turn_id, audit, [one, two]) == told
    for broken in (
        audit[1:],
        audit[:-1],
        (audit[0], *reversed(audit[1:3]), audit[3]),
        (*audit, audit[-1]),
        (),
    ):
        with pytest.raises(Invalid, match="the audit of a batch is"):
            tool_steps.round_of(turn_id, broken, [one, two])
    with pytest.raises(Invalid):
        tool_steps.round_of(new_id(), audit, [one, two])
    with pytest.raises(Invalid):
        tool_steps.round_of(turn_id, audit, [one])


# --- the budget ------------------------------------------------------------------------------------


def test_a_batch_is_refused_before_it_could_outgrow_its_turn():
    turn = begun().open_turn
    room = limits.AGENT_TURN_EVENTS_MAX - len(planned().open_batch.audit) - 2 - 5
    for count, is_taken in ((room, True), (room + 1, False)):
        journal = Journal(directory=HERE, turn=replace(turn, event_count=count))
        if is_taken:
            assert planned(journal=journal)
        else:
            with pytest.raises(Invalid, match="2048 events"):
                planned(journal=journal)
    with pytest.raises(Invalid, match="bytes; end it"):
        planned(journal=Journal(directory=HERE, turn=replace(turn, event_bytes=6 * limits.MIB)))


def test_the_largest_batch_fits_into_the_turn_that_was_reserved_for_it():
    """Outputs of control characters, which cost six bytes each in JSON, and are written twice."""
    worst = Message(role=Role.USER, content=(Text("\x01" * 200_000),))
    calls = [call(text="y" * 31_000) for _ in range(16)]
    journal = planned(*calls, journal=begun(worst))
    for each in calls:
        journal = tool_steps.audited(journal, request(each, reason="é" * 2_048))
        journal = tool_steps.audited(journal, allow(each))
    room = limits.TURN_TOOL_OUTPUT_MAX_BYTES // 16
    journal = done(journal, *calls, outputs=[fine("\x01" * room)] * 16)

    checkpoint = tool_checkpoint.round_done(journal)

    after = checkpoint.journal.open_turn
    assert after.event_bytes > 9 * limits.MIB
    assert after.event_bytes <= limits.AGENT_TURN_MAX_BYTES
    assert after.event_count == len(checkpoint.events)
    assert (
        max(len(event.payload_json.encode()) for event in checkpoint.events) <= limits.EVENT_PAYLOAD_MAX_BYTES
    )


def test_the_arguments_of_a_round_have_512_kib():
    part = "y" * 130_000
    with pytest.raises(Invalid, match="arguments of a round"):
        planned(*(call(text=part) for _ in range(5)))


# --- what reaches the transcript -------------------------------------------------------------------


def test_a_round_is_written_as_message_audit_and_results():
    one, two = call(), call()
    journal = done(planned(one, two), two, one)

    checkpoint = tool_checkpoint.round_done(journal)

    audits = ["audit"] * len(journal.open_batch.audit)
    assert kinds(checkpoint) == ["user_message", *audits, "tool_call", "tool_result", "tool_result"]
    assert [told(event)["ordinal"] for event in checkpoint.events if event.kind == "audit"] == list(
        range(len(audits))
    )
    results = [told(event)["tool_call_id"] for event in checkpoint.events[-2:]]
    assert results == [one.id, two.id], "in the order of the calls, whichever ended first"
    assert checkpoint.journal.batch is None
    assert checkpoint.journal.open_turn.checkpoint_count == 1


def test_later_tool_batch_starts_after_durable_checkpoint_without_repeating_input():
    one, two = call(), call()
    journal = tool_checkpoint.round_done(done(planned(one), one)).journal

    again = tool_checkpoint.round_done(done(planned(two, journal=journal), two))

    assert kinds(again)[0] == "tool_call"
    assert "user_message" not in kinds(again)


def ending(journal: Journal) -> tuple[ModelStarted, ModelCompleted, TurnCompleted]:
    turn = journal.open_turn
    number = turn.checkpoint_count + 1
    return (
        ModelStarted(turn_id=turn.turn_id, round=number),
        ModelCompleted(turn_id=turn.turn_id, round=number, finish_reason="stop"),
        TurnCompleted(turn_id=turn.turn_id, model_rounds=number),
    )


def test_a_turn_ends_with_its_answer():
    journal = begun()
    last = said(Role.ASSISTANT, "hello")

    checkpoint = tool_checkpoint.turn_done(journal, last, ending(journal))

    assert kinds(checkpoint) == ["user_message", "audit", "audit", "audit", "assistant_message"]
    assert checkpoint.journal == Journal(directory=HERE)


def test_a_turn_may_end_with_its_last_batch():
    one = call()
    journal = done(planned(one), one)
    over = TurnCompleted(turn_id=journal.open_turn.turn_id, model_rounds=1)

    checkpoint = tool_checkpoint.turn_done(journal, None, [over])

    assert kinds(checkpoint)[-2:] == ["tool_call", "tool_result"]
    assert checkpoint.journal == Journal(directory=HERE)
    for message, audit in ((None, []), (None, [over, over]), (said(Role.ASSISTANT, "x"), [over])):
        with pytest.raises((Invalid, Conflict)):
            tool_checkpoint.turn_done(journal, message, audit)


def test_a_turn_does_not_end_with_calls_or_with_nothing():
    journal = begun()
    for message in (None, prompt(), asks(call())):
        with pytest.raises(Invalid, match="calls no tool"):
            tool_checkpoint.turn_done(journal, message, ending(journal))


def test_a_failure_keeps_the_input_and_after_a_checkpoint_only_the_failure():
    one = call()
    fresh = planned(one)
    failed = TurnFailed(turn_id=fresh.open_turn.turn_id, message="no answer")

    first = tool_checkpoint.turn_failed(fresh, "no answer", [failed])
    later = tool_checkpoint.turn_failed(
        tool_checkpoint.round_done(done(fresh, one)).journal, "no answer", [failed]
    )

    assert kinds(first) == kinds(later) == ["audit", "error"]
    assert told(first.events[-1])["record"] == "failed_turn"
    assert told(later.events[-1]) == {
        "record": "failed_turn_after_checkpoint",
        "version": 1,
        "error": "no answer",
    }
    assert first.journal == later.journal == Journal(directory=HERE)


def test_a_turn_with_a_started_call_cannot_just_fail():
    one, two = call(), call()
    for journal in (tool_steps.started(planned(one), one.id), done(planned(one, two), one)):
        over = Cancelled(turn_id=journal.open_turn.turn_id)
        with pytest.raises(Conflict, match="complete all of them"):
            tool_checkpoint.turn_failed(journal, "stopped", [over])


# --- recovery --------------------------------------------------------------------------------------


def test_recovers_tool_free_active_turns_at_both_checkpoint_states_once():
    two_rounds = begun()
    for _ in range(2):
        one = call()
        two_rounds = tool_checkpoint.round_done(done(planned(one, journal=two_rounds), one)).journal
    for journal, record in ((begun(), "failed_turn"), (two_rounds, "failed_turn_after_checkpoint")):
        checkpoint, report = tool_checkpoint.recovered(journal)
        assert kinds(checkpoint) == ["audit", "error"]
        assert told(checkpoint.events[-1])["record"] == record
        assert report == tool_checkpoint.Recovery(is_turn=True)
        with pytest.raises(Conflict, match="no turn is open"):
            tool_checkpoint.recovered(checkpoint.journal)


def test_a_mixed_batch_is_reconciled_call_by_call():
    exact, begun_one, asked, idle = call(), call(), call(), call()
    journal = done(planned(exact, begun_one, asked, idle), exact)
    journal = tool_steps.audited(tool_steps.started(journal, begun_one.id), request(asked))
    with pytest.raises(UncertainCalls) as refused:
        tool_steps.reconciled(journal, idle.id, accept_unknown_effects=False)
    assert refused.value.detail == {"calls": [{"call_id": begun_one.id, "tool_name": "shell"}]}
    with pytest.raises(Conflict, match="reconcile each"):
        tool_checkpoint.recovered(journal)

    for each in (begun_one, asked, idle, exact):
        accepts = each is begun_one
        journal = tool_steps.reconciled(journal, each.id, accept_unknown_effects=accepts)
    checkpoint, report = tool_checkpoint.recovered(journal)

    assert report == tool_checkpoint.Recovery(exact=1, uncertain=1, not_executed=2)
    assert kinds(checkpoint)[-5:] == ["tool_call", *["tool_result"] * 4]
    assert checkpoint.journal == Journal(directory=HERE)
