"""Candidates of knowledge: which forms are taken, and each bound from both sides."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core import limits
from memory_core.domain.distillation import Tombstone, Upsert, read_candidates, unpinned
from memory_core.errors import Invalid

UPSERT = {"action": "upsert", "key": "port", "content": "8443", "confidence": 0.8}
TOMBSTONE = {"action": "tombstone", "key": "port", "confidence": 1}


def read(*items: Any) -> Any:
    return read_candidates({"candidates": list(items)})


def test_both_forms_are_read():
    found = read(UPSERT | {"pinned": True}, TOMBSTONE | {"key": "host"})

    assert found == (
        Upsert(key="port", content="8443", confidence=0.8, pinned=True),
        Tombstone(key="host", confidence=1),
    )


def test_nothing_is_a_result():
    assert read() == ()


def test_what_is_pinned_by_itself_is_not_pinned():
    assert unpinned(read(UPSERT | {"pinned": True}, TOMBSTONE | {"key": "x"})) == (
        Upsert(key="port", content="8443", confidence=0.8),
        Tombstone(key="x", confidence=1),
    )


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        [UPSERT],
        {},
        {"candidates": {}},
        {"candidates": "[]"},
        {"candidates": None},
        {"candidates": [], "note": "x"},
        {"Candidates": []},
    ],
)
def test_another_container_is_refused(value: Any):
    with pytest.raises(Invalid):
        read_candidates(value)


@pytest.mark.parametrize(
    "item",
    [
        None,
        "upsert",
        {},
        {"action": "insert", "key": "a", "content": "b", "confidence": 1},
        {k: v for k, v in UPSERT.items() if k != "confidence"},
        {k: v for k, v in UPSERT.items() if k != "content"},
        UPSERT | {"why": "x"},
        UPSERT | {"pinned": 1},
        UPSERT | {"key": " "},
        UPSERT | {"key": 7},
        UPSERT | {"content": "\n"},
        UPSERT | {"content": None},
        UPSERT | {"confidence": "0.5"},
        UPSERT | {"confidence": True},
        UPSERT | {"confidence": float("nan")},
        UPSERT | {"confidence": float("inf")},
        UPSERT | {"confidence": -0.01},
        UPSERT | {"confidence": 1.01},
        UPSERT | {"key": "\ud800"},
        TOMBSTONE | {"content": "x"},
        TOMBSTONE | {"pinned": False},
    ],
)
def test_another_form_of_candidate_is_refused(item: Any):
    with pytest.raises(Invalid):
        read(item)


def test_keys_are_unique_across_both_actions():
    with pytest.raises(Invalid, match="twice"):
        read(UPSERT, TOMBSTONE)


def test_bounds_are_in_bytes_and_hold_from_both_sides():
    most = limits.KNOWLEDGE_KEY_MAX_BYTES // 2
    read(UPSERT | {"key": "é" * most, "content": "é" * (limits.KNOWLEDGE_CONTENT_MAX_BYTES // 2)})

    with pytest.raises(Invalid):
        read(UPSERT | {"key": "é" * most + "x"})
    with pytest.raises(Invalid):
        read(UPSERT | {"content": "é" * (limits.KNOWLEDGE_CONTENT_MAX_BYTES // 2) + "x"})


def test_there_are_at_most_128():
    many = [UPSERT | {"key": f"k{at}"} for at in range(limits.DISTILLATION_CANDIDATES_MAX)]

    assert len(read(*many)) == limits.DISTILLATION_CANDIDATES_MAX
    with pytest.raises(Invalid):
        read(*many, UPSERT)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(
                st.sampled_from(["candidates", "action", "key", "content", "confidence", "pinned", "x"]),
                inner,
            )
        ),
        max_leaves=12,
    )
)
def test_whatever_comes_is_read_or_refused(value: Any):
    try:
        found = read_candidates(value)
    except Invalid:
        return
    assert all(0 <= each.confidence <= 1 and each.key.strip() for each in found)
