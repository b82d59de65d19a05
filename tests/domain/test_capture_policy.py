"""What a directory keeps of tool events, decided by the client and looked at again by the gate."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core import limits
from memory_core.domain import capture_policy as policies
from memory_core.domain.capture_policy import PROTOCOL_FIELD, Inspected, applied, decide, policy_of, rechecked

ROOT, HOME = "/srv/app", "/home/ada"
SECRET = "the text of the file"


def policy(*patterns: str):
    return policy_of({"ignore_paths": list(patterns)}, root=ROOT, home=HOME)


BROKEN = policy_of({"ignore_paths": ["["]}, root=ROOT, home=HOME)


def use(tool: str = "Read", **arguments: Any) -> dict[str, Any]:
    return {
        "session_id": "s",
        "hook_event_name": "PostToolUse",
        "agent_id": "a",
        "tool_name": tool,
        "tool_input": arguments,
        "tool_response": {"content": SECRET},
        "tool_use_id": "toolu_1",
    }


def left(payload: dict[str, Any], *patterns: str) -> dict[str, Any] | None:
    return applied(policy(*patterns), payload, cwd=ROOT, home=HOME)


def disposition(payload: dict[str, Any], with_policy: policies.Policy) -> str:
    tool = policies.inspected(payload)
    assert tool is not None
    return decide(with_policy, tool, cwd=ROOT, home=HOME).disposition


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        (use(file_path="secrets/key.pem"), "drop"),
        (use(file_path="/srv/app/src/../secrets"), "drop"),
        (use(file_path="src/app.py"), "keep"),
        (use(paths=["src/app.py", "secrets/x"]), "drop"),
        (use("MultiEdit", edits=[{"file_path": "secrets/x"}]), "drop"),
        (use("apply_patch", input="*** Begin Patch\n*** Update File: secrets/x\n"), "drop"),
        (use("Grep", pattern="x"), "drop"),
        (use("Bash", command="cat secrets/key.pem"), "keep"),
        (use("mcp__other__thing"), "keep"),
        (use(), "metadata-only"),
        (use(file_path="C:x"), "metadata-only"),
        (use(paths=[f"f{n}" for n in range(limits.CAPTURE_PATHS_MAX + 1)]), "metadata-only"),
        (use(file_path="x" * (limits.CAPTURE_PATH_MAX_CHARS + 1)), "metadata-only"),
        ({"tool_name": "Read", "tool_input": "not JSON"}, "metadata-only"),
        ({"tool_name": "Read", "tool_input": '{"path": "secrets/x"}'}, "drop"),
        ({"file_path": "secrets/x", "content": SECRET}, "drop"),
        ({"tool": {"name": "Read", "paths": ["secrets/x"]}}, "drop"),
    ],
)
def test_an_active_policy_decides(payload: dict[str, Any], expected: str):
    assert disposition(payload, policy("secrets/**")) == expected


@pytest.mark.parametrize(
    ("payload", "expected"),
    [(use(file_path="a"), "metadata-only"), (use("Grep"), "keep"), (use("Bash"), "keep")],
)
def test_an_invalid_policy_keeps_no_file(payload: dict[str, Any], expected: str):
    assert BROKEN.state == "invalid"
    assert disposition(payload, BROKEN) == expected


@pytest.mark.parametrize(
    "capture",
    [
        "x",
        {"ignore_paths": "x"},
        {"ignore_paths": [1]},
        {"ignore_path": ["x"]},
        {"ignore_paths": ["x"], "more": 1},
        {"ignore_paths": ["x"] * (limits.CAPTURE_PATTERNS_MAX + 1)},
        {"ignore_paths": ["good", "../bad"]},
    ],
)
def test_one_mistake_makes_the_whole_policy_invalid(capture: Any):
    found = policy_of(capture, root=ROOT, home=HOME)
    assert (found.state, found.globs) == ("invalid", ())
    assert found.reason


@pytest.mark.parametrize("capture", [None, {}, {"ignore_paths": []}])
def test_without_patterns_nothing_changes(capture: Any):
    payload = use(file_path="secrets/x")
    assert applied(policy_of(capture, root=ROOT, home=HOME), payload, cwd=ROOT, home=HOME) == payload


def test_too_much_to_compare_is_not_kept():
    many = policy(*(f"{n}{'x' * 900}" for n in range(100)))
    assert disposition(use(file_path="y" * 1000), many) == "metadata-only"


def test_metadata_is_who_and_when_and_never_what():
    kept = left(use("Write", content=SECRET), "secrets/**")

    assert kept is not None
    assert SECRET not in json.dumps(kept)
    assert {name: kept[name] for name in ("session_id", "agent_id", "tool_name", "tool_use_id")} == {
        "session_id": "s",
        "agent_id": "a",
        "tool_name": "Write",
        "tool_use_id": "toolu_1",
    }
    assert kept[PROTOCOL_FIELD]["disposition"] == "metadata-only"


def test_the_gate_takes_the_clients_word_where_it_agrees():
    kept = left(use(file_path="src/a.py"), "secrets/**")

    assert kept is not None
    assert rechecked(kept) == use(file_path="src/a.py")
    assert rechecked(use(file_path="src/a.py")) == use(file_path="src/a.py")


@pytest.mark.parametrize(
    "change",
    [
        {"path_count": 2},
        {"tool_family": "non-file"},
        {"extraction_state": "none"},
        {"policy_state": "invalid"},
        {"disposition": "metadata-only"},
        {"version": 2},
        {"disposition": "all of it"},
        {"extra": 1},
    ],
)
def test_where_they_disagree_the_gate_takes_the_texts_away(change: dict[str, Any]):
    kept = left(use(file_path="src/a.py"), "secrets/**")
    assert kept is not None
    kept[PROTOCOL_FIELD] = {**kept[PROTOCOL_FIELD], **change}
    found = rechecked(kept)

    assert found is not None
    assert "tool_response" not in found
    assert found["tool_name"] == "Read"


def test_a_listing_under_an_active_policy_goes_at_the_gate_too():
    word = {**policies.Decision("keep", "active", "search-list", 0, "not-needed").protocol()}
    assert rechecked({**use("Grep"), PROTOCOL_FIELD: word}) is None
    assert rechecked({**use("Grep"), PROTOCOL_FIELD: "nonsense"}) is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
NAMES = st.sampled_from(["tool_name", "tool_input", "file_path", "tool", "session_id", "x", PROTOCOL_FIELD])
TOOLS = st.sampled_from(["Read", "Write", "Grep", "Bash", "apply_patch", "other"])


@given(st.dictionaries(NAMES, JSON, max_size=5), JSON, st.text(max_size=5))
def test_no_payload_policy_or_word_breaks_it(payload: dict[str, Any], capture: Any, cwd: str):
    found = policy_of(capture, root=ROOT, home=HOME)
    made = applied(found, payload, cwd=cwd, home=HOME)
    if made is not None:
        rechecked(made)
    rechecked(payload)


@given(
    TOOLS, st.lists(st.sampled_from(["secrets/a", "src/a", "../secrets", "/srv/app/secrets/x"]), max_size=4)
)
def test_what_a_policy_ignores_never_reaches_the_gate_and_the_gate_agrees_with_the_rest(
    tool: str, paths: list[str]
):
    payload = use(tool, paths=paths)
    made = left(payload, "secrets/**")
    ignored = any(path.startswith(("secrets", "/srv/app/secrets")) for path in paths)
    if policies.family_of(tool) == "file" and ignored:
        assert made is None
    if made is not None:
        again = rechecked(made)
        assert again == {key: value for key, value in made.items() if key != PROTOCOL_FIELD}


def test_a_policy_never_sees_more_than_an_inspection():
    assert policies.inspected({"prompt": "read secrets/x"}) is None
    assert policies.inspected(use(file_path="a")) == Inspected("file", ("a",))
