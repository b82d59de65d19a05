"""What a hook sends becomes a JSON object that can be kept, whatever it was."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from client.payload import Unreadable, cut, fitted, parse, pruned, query, session_of
from memory_core import limits
from tests.client.gate_server import query_of
from tests.payloads import malformed


@pytest.mark.parametrize("name", ["array", "truncated"])
def test_what_is_no_object_is_unreadable(name: str):
    with pytest.raises(Unreadable):
        parse(malformed(name))


@pytest.mark.parametrize("data", [b"", b"null", b"\xef\xbb\xbf\xef\xbb\xbf{}", b"[" * 200_000])
def test_so_is_nothing_and_endless_nesting(data: bytes):
    with pytest.raises(Unreadable):
        parse(data)


def test_too_much_is_unreadable(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(limits, "HOOK_STDIN_MAX_BYTES", 10)
    with pytest.raises(Unreadable, match="longer"):
        parse(b'{"a": "0123456789"}')


def test_a_byte_order_mark_and_wrong_bytes_are_tolerated():
    assert parse(malformed("bom"))["cwd"] == "C:\\src\\app"
    assert parse(malformed("latin1"))["prompt"] == "caf�"
    assert parse(malformed("nan"))["duration_ms"] is None


def test_what_cannot_be_stored_is_replaced():
    kept = pruned(parse(malformed("lone_surrogate")))

    assert kept["prompt"] == "bad � end � nul"
    json.dumps(kept, ensure_ascii=False).encode()
    assert pruned({"a": 1e999}) == {"a": None}


def test_deep_nesting_ends_before_the_server_would_refuse_it():
    deep: object = "x"
    for _ in range(300):
        deep = {"a": deep}
    text = json.dumps([{"url": "", "body": pruned(deep)}])

    assert text.count("{") < limits.JSON_DEPTH_MAX


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_a_pruned_value_is_always_strict_json(value: object):
    json.dumps(pruned(value), allow_nan=False, ensure_ascii=False).encode()


def test_long_texts_are_cut_and_the_rest_stays():
    kept = fitted({"session_id": "s", "tool_response": "é" * 3_000_000})

    assert kept["session_id"] == "s"
    assert len(kept["tool_response"].encode()) <= limits.SHIM_FIELD_MAX_BYTES
    assert kept["tool_response"].endswith("…")


@pytest.mark.parametrize(
    "value", [{"s": "x", "many": ["text " * 60] * 50_000}, {"s": "x", "many": [1] * 900_000}]
)
def test_a_huge_payload_keeps_what_says_who_and_what(value: object):
    kept = fitted(value)

    assert kept["s"] == "x"
    assert len(json.dumps(kept)) <= limits.SPOOL_ENTRY_MAX_BYTES


@given(st.text(), st.integers(min_value=3, max_value=50))
def test_a_cut_text_fits_and_is_valid(text: str, most: int):
    assert len(cut(text, most).encode("utf-8", "replace")) <= most


@given(
    st.dictionaries(
        st.sampled_from(["cwd", "session_id", "event"]),
        st.text(alphabet=st.characters(exclude_categories=["Cs"]), min_size=1),
    )
)
def test_the_query_reads_back(fields: dict[str, str]):
    assert query_of(f"/hook?{query(fields)}") == fields


def test_a_session_is_found_by_any_spelling_and_in_the_environment():
    assert session_of({"sessionId": "a"}, {}) == "a"
    assert session_of({"session_id": ""}, {"CLAUDE_CODE_SESSION_ID": "b"}) == "b"
    assert session_of({}, {}) == ""
