"""Who gets which handoff, and in which states one can be: against plain models."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from memory_core import limits
from memory_core.domain import recalled
from memory_core.domain.handoff import (
    TRANSITIONS,
    Draft,
    Handoff,
    HandoffState,
    Move,
    after,
    best,
    capped,
    is_eligible,
    render,
    superseded,
)

NOW = 1_780_000_000_000_000


def handoff(number: int = 1, **overrides) -> Handoff:
    values = {
        "id": number.to_bytes(16, "big"),
        "draft": Draft(summary="the summary", from_agent="claude-code"),
        "is_manual": False,
        "created_at": NOW,
        "cwd": "/repo",
    }
    return Handoff(**values | overrides)


@pytest.mark.parametrize(
    ("cwd", "asked_in", "eligible"),
    [
        ("/repo", "/repo", True),
        ("/repo", "/repo/api", True),
        ("/repo", "/repo-other", False),
        ("/repo/api", "/repo", False),
        (None, "/anywhere", True),
        ("/repo", None, True),
    ],
)
def test_an_automatic_one_reaches_its_directory_and_those_below(cwd, asked_in, eligible):
    assert is_eligible(handoff(cwd=cwd), asked_in, None) is eligible


def test_one_left_by_hand_reaches_the_whole_project():
    assert is_eligible(handoff(is_manual=True, cwd="/elsewhere"), "/repo", None)


def test_a_session_never_gets_its_own():
    assert not is_eligible(handoff(is_manual=True, from_session_id=b"me"), "/repo", b"me")


def test_by_hand_beats_automatic_then_newer_then_more_specific():
    manual = handoff(1, is_manual=True, created_at=NOW - 10)
    newer = handoff(2, created_at=NOW + 5)
    deep = handoff(3, cwd="/repo/api")
    shallow = handoff(4)
    order = []
    left = [shallow, deep, newer, manual]
    while (found := best(left, cwd="/repo/api", session_id=None)) is not None:
        order.append(found)
        left.remove(found)

    assert order == [manual, newer, deep, shallow]


def test_accepting_an_automatic_one_voids_what_ranks_below_it():
    accepted = handoff(5, created_at=NOW + 1)
    void = handoff(1)
    kept = [
        handoff(2, is_manual=True),
        handoff(3, cwd="/elsewhere"),
        handoff(4, owner="eve"),
        handoff(6, created_at=NOW + 2),
    ]

    assert superseded(accepted, [void, *kept, accepted], cwd="/repo/api") == [void]
    assert superseded(replace(accepted, is_manual=True), [void], cwd="/repo") == []


def test_a_rendered_one_names_where_it_comes_from_and_is_fenced():
    draft = Draft(
        summary="Did it",
        open_questions=("Why?",),
        next_steps=("Ship",),
        files_touched=("a.py",),
        from_agent="claude-code",
        to_agent="codex",
        model="opus",
    )

    text = render(handoff(draft=draft))

    for part in ("claude-code", "codex", "(opus)", "2026-05-28T20:26:40Z", "Did it", "Why?", "Ship", "a.py"):
        assert part in text
    assert recalled.strip(text).strip() == text.splitlines()[0]


def test_a_rendered_one_cannot_close_its_fence_and_keeps_the_budget():
    evil = recalled.fence("x", "y").splitlines()[-1]
    big = Draft(
        summary=evil + "s" * 3_000,
        open_questions=(evil + "q" * 1_400,) * 4,
        next_steps=("n" * 1_400,) * 4,
        files_touched=("f" * 500,) * 8,
    )

    text = render(handoff(draft=big))

    assert len(text) <= limits.INJECTED_CONTEXT_MAX_CHARS
    assert recalled.strip(text).strip() == text.splitlines()[0]
    assert len(re.findall(r"<!-- memoryd:recalled [0-9a-f]{16} end -->", text)) == 1


@given(st.lists(st.text(max_size=3_000), max_size=40), st.text(max_size=5_000))
@settings(max_examples=40)
def test_caps_hold_and_say_so(items: list[str], summary: str):
    kept = capped(Draft(summary=summary, open_questions=tuple(items), files_touched=tuple(items)))

    assert len(kept.summary) <= limits.HANDOFF_SUMMARY_MAX_CHARS
    assert len(kept.open_questions) <= limits.HANDOFF_ITEMS_MAX + 1
    assert sum(map(len, kept.open_questions)) <= limits.HANDOFF_LIST_MAX_CHARS + 40
    assert sum(map(len, kept.files_touched)) <= limits.HANDOFF_FILES_MAX_CHARS + 40
    wanted = [item for item in items if item.strip()]
    if len(kept.open_questions) < len(wanted):
        assert "more were cut" in kept.open_questions[-1]


class HandoffStates(RuleBasedStateMachine):
    """The table against a model in plain words: who holds it, is it gone."""

    def __init__(self) -> None:
        super().__init__()
        self.state = HandoffState.OPEN
        self.holder = False
        self.is_gone: str | None = None

    def move(self, move: Move) -> bool:
        next_state = after(self.state, move)
        self.state = next_state or self.state
        return next_state is not None

    @rule()
    def offer(self) -> None:
        assert self.move(Move.OFFER) is (self.is_gone is None)
        self.holder = self.holder or self.is_gone is None

    @rule()
    def release(self) -> None:
        assert self.move(Move.RELEASE) is self.holder
        self.holder = False

    @rule()
    def accept(self) -> None:
        if self.move(Move.ACCEPT):
            assert self.is_gone is None
            self.is_gone, self.holder = "accepted", False

    @precondition(lambda self: self.is_gone is None)
    @rule()
    def expire(self) -> None:
        assert self.move(Move.EXPIRE)
        self.is_gone, self.holder = "expired", False

    @invariant()
    def the_state_says_what_the_model_says(self) -> None:
        expected = self.is_gone or ("offered" if self.holder else "open")
        assert self.state.value == expected


TestHandoffStates = HandoffStates.TestCase


def test_nothing_comes_back_from_accepted_or_expired():
    assert {state for state, _ in TRANSITIONS} == {HandoffState.OPEN, HandoffState.OFFERED}
