"""JSON that is given up before it is whole."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core import limits
from memory_core.domain import capped_json
from memory_core.domain.capped_json import TooLong
from memory_core.errors import Invalid
from tests.durable.working import nested

LARGE = 1 << 40
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=30,
)


@given(VALUES)
def test_it_is_the_json_that_everybody_reads(value: Any):
    text = capped_json.encode(value, max_bytes=LARGE)

    assert json.loads(text) == value
    assert text == json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    assert capped_json.measure(value, max_bytes=LARGE) == len(text)


@given(VALUES, st.integers(0, 200))
def test_nothing_past_the_cap_is_ever_put(value: Any, cap: int):
    put = bytearray()
    try:
        size = capped_json.write(value, put.extend, max_bytes=cap)
    except Invalid:
        assert len(put) <= cap
    else:
        assert size == len(put) <= cap


def test_depth_has_an_end():
    capped_json.check_shape(nested(64))
    with pytest.raises(Invalid, match="64 levels"):
        capped_json.check_shape(nested(65))
    with pytest.raises(Invalid, match="64 levels"):
        capped_json.check_shape(nested(1_000_000))


def test_so_has_the_number_of_values():
    capped_json.check_shape([0] * 65_535)
    with pytest.raises(Invalid, match="65536 values"):
        capped_json.check_shape([0] * 65_536)
    with pytest.raises(Invalid, match="65536 values"):
        capped_json.check_shape([[0] * 1_000] * 66)


@pytest.mark.parametrize(
    "value",
    [float("nan"), float("inf"), 2**64, -(2**63) - 1, b"x", {1: 2}, {"a": {None: 1}}, {1, 2}, object()],
)
def test_what_is_no_json_is_refused(value: Any):
    with pytest.raises(Invalid):
        capped_json.encode(value, max_bytes=LARGE)


def test_a_single_text_may_have_a_bound():
    capped_json.check_shape({"a": "é" * 5}, text_max_bytes=10)
    for value in ({"a": "é" * 5 + "x"}, ["x" * 11], {"é" * 6: 1}):
        with pytest.raises(Invalid, match="more than 10 bytes"):
            capped_json.check_shape(value, text_max_bytes=10)


def test_half_a_character_is_refused():
    with pytest.raises(Invalid, match="half a character"):
        capped_json.encode(["\ud83d"], max_bytes=LARGE)


@pytest.mark.parametrize(
    "value",
    [["x" * 100_000] * 200, "y" * 20_000_000, {"a": ["é" * 10_000_000]}, [[0] * 300] * 200],
    ids=["many texts", "one text", "characters of two bytes", "many numbers"],
)
@pytest.mark.parametrize("act", [capped_json.encode, capped_json.measure])
def test_the_whole_text_never_exists_where_it_is_too_long(value: Any, act: Any):
    """Its shape is looked at first, level by level: at most as many references as there may be values."""
    cap = 100_000
    tracemalloc.start()
    with pytest.raises(TooLong):
        act(value, max_bytes=cap)
    held = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    references = 8 * limits.DURABLE_JSON_NODES_MAX * 2
    assert held < 3 * cap + references < 1_500_000


def test_a_long_text_comes_in_pieces():
    pieces = list(capped_json.pieces("é" * 100_000))

    assert max(map(len, pieces)) < 20_000
    assert json.loads("".join(pieces)) == "é" * 100_000
