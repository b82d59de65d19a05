"""Turns from what hooks told: also where it comes out of order, twice, in part, or not at all."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from memory_core.domain.event import EventKind, Outcome
from memory_core.domain.excerpt import Voice
from memory_core.domain.hook_journal import UNOBSERVED, ClosedBy, Folded, HookTurn, Observed, fold
from memory_core.domain.session_event import TranscriptKind
from tests.domain.transcripts import read


def said(*some: tuple[EventKind, dict[str, Any]]) -> list[Observed]:
    return [Observed(seq=seq, kind=kind, **more) for seq, (kind, more) in enumerate(some, start=1)]


def prompt(text: str = "Go", **more: Any) -> tuple[EventKind, dict[str, Any]]:
    return EventKind.USER_PROMPT, {"body": text, **more}


def pre(call: str | None = "c1", tool: str = "Bash", **more: Any) -> tuple[EventKind, dict[str, Any]]:
    return EventKind.PRE_TOOL_USE, {"call_id": call, "tool": tool, **more}


def post(
    call: str | None = "c1", result: str = "fine", tool: str = "Bash", **more: Any
) -> tuple[EventKind, Any]:
    return EventKind.POST_TOOL_USE, {"call_id": call, "tool": tool, "result": result, **more}


def stop(text: str = "Done") -> tuple[EventKind, dict[str, Any]]:
    return EventKind.STOP, {"body": text}


END: tuple[EventKind, dict[str, Any]] = (EventKind.SESSION_END, {})


def folded(
    *some: tuple[EventKind, dict[str, Any]], is_ended: bool = True, must_advance: bool = False
) -> Folded:
    return fold(said(*some), after=0, is_ended=is_ended, must_advance=must_advance)


def turns(*some: tuple[EventKind, dict[str, Any]]) -> tuple[HookTurn, ...]:
    return folded(*some).turns


def told(turn: HookTurn) -> list[str]:
    """What a turn says, as whoever reads its transcript gets it."""
    return [
        f"{each.voice.value}: {each.text}"
        for each in read(*((str(kind), body) for kind, body in turn.events))
    ]


def test_a_prompt_begins_a_turn_a_stop_ends_it():
    first, second = turns(prompt("One"), stop("Done one"), prompt("Two"), stop("Done two"))

    assert told(first) == ["prompt: One", "answer: Done one"]
    assert (first.closed_by, second.closed_by) == (ClosedBy.STOP, ClosedBy.STOP)


def test_a_call_is_started_and_completed():
    (turn,) = turns(prompt(), pre(command="ls"), post(result="a b"), stop())

    assert told(turn) == ["prompt: Go", "call: ls", "result: a b", "answer: Done"]
    assert turn.unobserved == ()
    assert [kind for kind, _ in turn.events] == [
        TranscriptKind.USER_MESSAGE,
        TranscriptKind.TOOL_CALL,
        TranscriptKind.TOOL_RESULT,
        TranscriptKind.ASSISTANT_MESSAGE,
        TranscriptKind.AUDIT,
    ]


def test_the_last_event_says_of_what_the_turn_was_made():
    (turn,) = turns(prompt(), pre("c9"), stop())

    assert turn.events[-1][1] == {
        "record": "hook_turn",
        "version": 1,
        "first_observation": 1,
        "last_observation": 3,
        "closed_by": "stop",
        "unobserved": ["c9"],
    }


def test_parallel_calls_are_each_answered_whatever_the_order_of_their_ends():
    (turn,) = turns(
        prompt(),
        pre("a", command="one"),
        pre("b", command="two"),
        post("b", "second"),
        post("a", "first"),
        stop(),
    )

    assert told(turn)[1:5] == ["call: one", "result: first", "call: two", "result: second"]
    assert turn.unobserved == ()


def test_a_call_whose_end_nobody_told_is_unobserved():
    (turn,) = turns(prompt(), pre("a"), pre("b"), post("b"), stop())

    results = {body["tool_call_id"]: body for kind, body in turn.events if kind is TranscriptKind.TOOL_RESULT}
    assert turn.unobserved == ("a",)
    assert (results["a"]["origin"], results["a"]["content"][0]["data"]) == ("unobserved", UNOBSERVED)
    assert results["b"]["origin"] == "tool"


def test_an_end_without_a_beginning_is_a_call_all_the_same():
    (turn,) = turns(prompt(), post("a", "text", command="ls"), stop())

    assert told(turn)[1:3] == ["call: ls", "result: text"]


def test_an_end_that_comes_before_its_beginning_is_one_call():
    (turn,) = turns(prompt(), post("a", "text"), pre("a"), stop())

    assert sum(kind is TranscriptKind.TOOL_CALL for kind, _ in turn.events) == 1
    assert turn.unobserved == ()


def test_an_end_that_comes_after_the_stop_leaves_the_call_unobserved():
    first, second = turns(prompt(), pre("a"), stop(), post("a", "late"), END)

    assert first.unobserved == ("a",)
    assert "result: late" in told(second)


def test_what_is_told_twice_is_one_call():
    (turn,) = turns(prompt(), pre("a"), pre("a"), post("a", "one"), post("a", "two"), stop())

    assert [line for line in told(turn) if line.startswith("result")] == ["result: one"]


def test_calls_without_ids_are_matched_by_tool_and_input():
    (turn,) = turns(
        prompt(),
        pre(None, command="one"),
        pre(None, command="two"),
        pre(None, tool="Read"),
        post(None, "second", command="two"),
        post(None, "other", tool="Read"),
        post(None, "first"),
        stop(),
    )

    assert told(turn)[1:5] == ["call: one", "result: first", "call: two", "result: second"]
    assert turn.unobserved == ()


def test_a_tool_that_failed_is_told_so():
    (turn,) = turns(prompt(), pre(), post(outcome=Outcome.ERROR), stop())
    excerpts = read(*((str(kind), body) for kind, body in turn.events))

    assert [each.is_error for each in excerpts if each.voice is Voice.RESULT] == [True]


def test_a_prompt_ends_the_turn_before_it():
    first, second = turns(prompt("One"), pre("a"), prompt("Two"), stop())

    assert (first.closed_by, first.unobserved) == (ClosedBy.PROMPT, ("a",))
    assert second.closed_by is ClosedBy.STOP


def test_the_end_of_the_session_ends_its_last_turn():
    assert turns(prompt(), pre("a"), END)[0].closed_by is ClosedBy.SESSION_END
    assert turns(prompt(), pre("a"))[0].closed_by is ClosedBy.SESSION_END


def test_a_turn_that_is_not_over_is_left_for_the_next_time():
    found = folded(prompt("One"), stop(), prompt("Two"), pre("a"), is_ended=False)

    assert len(found.turns) == 1
    assert found.through == 2


def test_a_turn_that_is_too_long_is_cut_where_no_call_is_open():
    found = folded(prompt(), pre("a"), post("a"), pre("b"), is_ended=False, must_advance=True)

    (turn,) = found.turns
    assert (turn.closed_by, turn.unobserved, found.through) == (ClosedBy.CUT, (), 3)


def test_what_a_subagent_does_is_told_by_who_started_it():
    (turn,) = turns(prompt(), prompt("inner", agent_id="x"), pre("z", agent_id="x"), stop())

    assert told(turn) == ["prompt: Go", "answer: Done"]


def test_the_agents_own_summary_is_no_summary_of_ours():
    (turn,) = turns(prompt(), (EventKind.POST_COMPACTION, {"body": "so far"}), stop())

    assert TranscriptKind.SUMMARY not in [kind for kind, _ in turn.events]
    assert turn.events[1][1]["text"] == "so far"


def test_boundaries_alone_make_no_events():
    found = folded((EventKind.SESSION_START, {}), (EventKind.NOTIFICATION, {"body": "x"}), END)

    assert [turn.events for turn in found.turns] == [()]
    assert found.through == 3


observations = st.lists(
    st.builds(
        dict,
        kind=st.sampled_from(EventKind),
        body=st.sampled_from(["", "text", " "]),
        tool=st.sampled_from([None, "Bash", "Read"]),
        call_id=st.sampled_from([None, "a", "b"]),
        command=st.sampled_from([None, "ls"]),
        result=st.sampled_from([None, "", "fine"]),
        outcome=st.sampled_from(Outcome),
        agent_id=st.sampled_from([None, None, None, "sub"]),
    ),
    max_size=25,
)


@given(observations, st.booleans(), st.booleans())
def test_whatever_is_told_every_call_is_answered_once_and_nothing_is_lost(
    some: list[dict[str, Any]], is_ended: bool, must_advance: bool
):
    observed = [Observed(seq=seq, **each) for seq, each in enumerate(some, start=1)]

    found = fold(observed, after=0, is_ended=is_ended, must_advance=must_advance)

    for turn in found.turns:
        calls = [b["tool_calls"][0]["id"] for k, b in turn.events if k is TranscriptKind.TOOL_CALL]
        results = [b["tool_call_id"] for k, b in turn.events if k is TranscriptKind.TOOL_RESULT]
        assert calls == results
        assert len(set(calls)) == len(calls)
    assert 0 <= found.through <= len(observed)
    if observed and (is_ended or must_advance):
        assert found.through > 0
    if is_ended:
        assert found.through == len(observed)
    # Cut anywhere, it goes on where it stopped.
    prompts = sum(
        each.kind is EventKind.USER_PROMPT and bool(each.body.strip()) and each.agent_id is None
        for each in observed[: found.through]
    )
    assert prompts == sum(k is TranscriptKind.USER_MESSAGE for turn in found.turns for k, _ in turn.events)
