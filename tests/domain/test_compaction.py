"""When a transcript is compacted and up to where: shares, turns that stay, and what an earlier summary changes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core.domain.compaction import Earlier, EventSize, Policy, Turn, plan, total_tokens, turns_of
from memory_core.errors import Corrupt, Invalid

WINDOW = Policy(context_window_tokens=1_000)


def turns(*tokens: int, first: int = 1) -> list[Turn]:
    """Turns of one event each."""
    return [
        Turn(first_sequence=first + at, last_sequence=first + at, tokens=size)
        for at, size in enumerate(tokens)
    ]


def test_compaction_plan_triggers_at_eighty_and_preserves_four_turns():
    said = turns(*[200] * 8)

    assert plan(said, WINDOW, current_tokens=799) is None
    made = plan(said, WINDOW, current_tokens=800)

    assert made is not None
    assert (made.trigger_tokens, made.target_tokens, made.preserved_turns) == (800, 500, 4)
    # 300 have to go: two turns of 200.
    assert (made.through_sequence, made.estimated_removed_tokens) == (2, 400)


def test_the_trigger_is_rounded_up_and_the_target_down():
    odd = Policy(context_window_tokens=1_001)

    assert (odd.trigger_tokens, odd.target_tokens) == (801, 500)


def test_nothing_is_planned_where_only_preserved_turns_could_go():
    assert plan(turns(*[1_000] * 4), WINDOW) is None
    # One is old enough, but it frees too little.
    assert plan(turns(10, *[1_000] * 4), WINDOW) is None
    assert plan(turns(4_000, *[10] * 4), WINDOW) is not None


def test_turns_are_counted_where_the_client_reports_no_use():
    made = plan(turns(400, 400, 50, 50, 50, 50), WINDOW)

    assert made is not None
    assert (made.current_tokens, made.through_sequence) == (1_000, 2)


def test_a_boundary_is_the_last_event_of_a_turn():
    turn = [
        EventSize(sequence=at, turn_id=b"a", turn_index=at - 1, turn_size=3, size_bytes=300)
        for at in (1, 2, 3)
    ]
    rest = [
        EventSize(sequence=at, turn_id=bytes([at]), turn_index=0, turn_size=1, size_bytes=10)
        for at in (4, 5, 6, 7)
    ]

    made = plan(turns_of([*turn, *rest]), WINDOW)

    assert made is not None
    assert made.through_sequence == 3


def test_an_empty_payload_still_counts():
    assert (
        turns_of([EventSize(sequence=1, turn_id=b"a", turn_index=0, turn_size=1, size_bytes=0)])[0].tokens
        == 1
    )


@pytest.mark.parametrize(
    "events",
    [
        [(1, b"a", 0, 2)],
        [(1, b"a", 1, 2)],
        [(1, b"a", 0, 2), (2, b"b", 0, 1)],
        [(1, b"a", 0, 2), (2, b"a", 0, 2)],
        [(1, b"a", 0, 2), (3, b"a", 1, 2)],
        [(1, b"a", 0, 2), (2, b"a", 1, 3)],
        [(1, b"a", 0, 1), (3, b"b", 0, 1)],
    ],
)
def test_a_transcript_that_is_not_whole_turns_is_not_planned(events: list[tuple[int, bytes, int, int]]):
    sizes = [
        EventSize(sequence=sequence, turn_id=turn, turn_index=index, turn_size=size, size_bytes=1)
        for sequence, turn, index, size in events
    ]

    with pytest.raises(Corrupt):
        turns_of(sizes)


def test_a_second_plan_never_ends_before_the_earlier_summary():
    """Turns 3 to 6 were preserved at the first compaction; its summary is event 7; then four more were said."""
    behind = turns(200, 200, 200, 200, 50, 100, 100, 100, 100, first=3)
    earlier = Earlier(through_sequence=2, summary_sequence=7)

    made = plan(behind, WINDOW, earlier=earlier)

    assert made is not None
    # By size alone three turns would do, which ends at event 5; the queue would refuse that.
    assert made.through_sequence == 7
    assert made.estimated_removed_tokens == 850


def test_a_second_plan_waits_while_a_preserved_turn_lies_before_the_summary():
    behind = turns(600, 200, 200, 200, 50, 100, 100, 100, first=3)

    assert plan(behind, WINDOW, earlier=Earlier(through_sequence=2, summary_sequence=7)) is None


def test_a_second_plan_goes_on_behind_the_summary_where_that_is_needed():
    behind = turns(10, 10, 10, 10, 10, 900, 10, 10, 10, 10, first=3)

    made = plan(behind, WINDOW, earlier=Earlier(through_sequence=2, summary_sequence=7))

    assert made is not None
    assert made.through_sequence == 8


@pytest.mark.parametrize(("window", "preserved"), [(0, 4), (-1, 4), (10, 0), (10, 65)])
def test_a_policy_without_sense_is_refused(window: int, preserved: int):
    with pytest.raises(Invalid):
        Policy(context_window_tokens=window, preserved_turns=preserved)


@given(
    sizes=st.lists(st.integers(1, 2_000), max_size=40),
    window=st.integers(1, 20_000),
    preserved=st.integers(1, 64),
    current=st.none() | st.integers(0, 100_000),
    summary_at=st.none() | st.integers(0, 39),
)
def test_a_plan_keeps_its_word(
    sizes: list[int], window: int, preserved: int, current: int | None, summary_at: int | None
):
    said = turns(*sizes, first=11)
    earlier = None
    if summary_at is not None and summary_at < len(said):
        earlier = Earlier(through_sequence=10, summary_sequence=said[summary_at].last_sequence)
    policy = Policy(context_window_tokens=window, preserved_turns=preserved)

    made = plan(said, policy, current_tokens=current, earlier=earlier)

    used = total_tokens(said) if current is None else current
    if made is None:
        return
    kept = [turn for turn in said if turn.last_sequence > made.through_sequence]
    assert used >= policy.trigger_tokens
    assert made.through_sequence in {turn.last_sequence for turn in said}
    assert len(kept) >= preserved
    assert made.estimated_removed_tokens == total_tokens(said) - total_tokens(kept)
    assert made.estimated_removed_tokens >= used - policy.target_tokens
    if earlier is not None:
        assert made.through_sequence >= earlier.summary_sequence
