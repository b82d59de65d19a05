"""The gate keeps no more of an event than its client's policy allowed."""

from __future__ import annotations

import json
from typing import Any

from memory_core.domain.capture_policy import PROTOCOL_FIELD, applied, policy_of
from tests.web.house import House

URL = "/hook?event=PostToolUse&agent="
POLICY = policy_of({"ignore_paths": ["secrets/**"]}, root="/srv/repo", home="")


def used(tool: str = "Read", **arguments: Any) -> dict[str, Any]:
    payload = {
        "session_id": "s1",
        "hook_event_name": "PostToolUse",
        "cwd": "/srv/repo",
        "tool_name": tool,
        "tool_input": arguments,
        "tool_response": "zanzibar",
    }
    return applied(POLICY, payload, cwd="/srv/repo", home="") or {}


def test_what_was_kept_whole_is_stored_whole_and_without_the_clients_word(house: House) -> None:
    house.post(URL + "claude-code", used(file_path="src/a.py"))
    kept = house.stream_bytes()

    assert b"zanzibar" in kept
    assert PROTOCOL_FIELD.encode() not in kept


def test_a_client_that_says_less_than_it_sends_is_taken_at_its_word(house: House) -> None:
    body = used(file_path="src/a.py")
    body["tool_input"] = {"paths": ["src/a.py", "secrets/key"]}
    assert house.post(URL + "claude-code", body).json["status"] == "queued"
    house.drain_all()

    (row,) = house.rows("SELECT tool, command, paths, result FROM observations")
    assert tuple(row.values()) == ("Read", None, None, None)


def test_a_listing_is_dropped_alone_and_in_a_batch(house: House) -> None:
    body = used(file_path="src/a.py") | {"tool_name": "Grep"}
    assert house.post(URL + "codex", body).json["status"] == "dropped"
    answer = house.post("/hook/batch", [{"url": URL + "codex", "body": body}])

    assert [result["status"] for result in answer.json["results"]] == ["dropped"]
    assert house.waiting() == 0


def test_metadata_alone_is_read_by_every_client_that_speaks_of_tools(house: House) -> None:
    for client in ("claude-code", "codex", "gemini-cli", "cursor"):
        event = "AfterTool" if client == "gemini-cli" else "PostToolUse"
        body = used() | {"session_id": client, "hook_event_name": event}
        assert "tool_response" not in json.dumps(body)
        assert house.post(URL + client, body).json["status"] == "queued"
    house.drain_all()

    assert {row["tool"] for row in house.rows("SELECT tool FROM observations")} == {"Read"}
