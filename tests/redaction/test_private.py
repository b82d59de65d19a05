from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core.redaction.private import drop_private


@pytest.mark.parametrize(
    ("text", "kept", "count"),
    [
        ("use <private>door code 4471</private> please", "use  please", 1),
        ("<PRIVATE>a</Private>b", "b", 1),
        ("a<private>b<private>c</private>d</private>e", "ae", 1),
        ("a<private>never closed\nsecond line", "a", 1),
        ("a</private>b", "a</private>b", 0),
        ("a<private>b</private>c<private>d</private>e", "ace", 2),
        ("a<pri<private>x</private>vate>b</private>c", "ac", 2),
        ("a < b and <privateer>", "a < b and <privateer>", 0),
    ],
)
def test_private_parts_are_dropped(text: str, kept: str, count: int) -> None:
    assert drop_private(text.encode()) == (kept.encode(), count)


def test_halves_nested_too_deep_cost_the_rest_of_the_text() -> None:
    text = b"before"
    for _ in range(40):
        text = text.replace(b"before", b"before<pri<private>x</private>vate>", 1)

    kept, _ = drop_private(text + b" after")

    assert kept.startswith(b"before")
    assert b"<private>" not in kept
    assert b"after" not in kept


@given(st.lists(st.sampled_from(["<private>", "</private>", "<pri", "vate>", "word ", "<", "\n"])))
def test_no_opening_tag_survives(pieces: list[str]) -> None:
    kept, _ = drop_private("".join(pieces).encode())

    assert b"<private>" not in kept
