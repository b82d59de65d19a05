"""A durable session leaves what every session leaves: a line in the lists, a page, a handoff."""

from __future__ import annotations

import json
from typing import Any

from memory_core import limits
from tests.durable.working import HERE, Client, message, said
from tests.web.house import House

CALL = "0199aaaa-bbbb-7ccc-8ddd-eeeeffff0001"
OTHER = "0199aaaa-bbbb-7ccc-8ddd-eeeeffff0002"


def call(call_id: str, name: str, **arguments: Any) -> dict[str, Any]:
    return {"id": call_id, "name": name, "arguments": arguments}


def worked(client: Client) -> None:
    asked = message("", "assistant") | {
        "tool_calls": [
            call(CALL, "write_file", path="/srv/repo/up.py"),
            call(OTHER, "shell", command="pytest"),
        ]
    }
    failed = {"type": "tool_completed", "call_id": OTHER, "output": {"content": "1 failed", "is_error": True}}
    client.claim()
    client.append(
        said("Please mend the uploader"),
        {"kind": "tool_call", "payload": asked},
        {"kind": "audit", "payload": {"record": "agent_event", "version": 1, "ordinal": 1, "event": failed}},
        {"kind": "tool_result", "payload": message("ok", "tool") | {"tool_call_id": CALL}},
        {"kind": "tool_result", "payload": message("1 failed", "tool") | {"tool_call_id": OTHER}},
        {"kind": "assistant_message", "payload": message("One test still fails.", "assistant")},
    )


def test_a_closed_session_has_a_page_and_leaves_a_handoff(house: House):
    client = Client(house, project="repo")
    worked(client)

    client.post("close", {"directory": HERE})

    [listed] = house.get("/api/v1/sessions").get_json()
    assert (listed["id"], listed["end_reason"]) == (client.id, "closed")
    [version] = house.rows("SELECT content FROM page_versions")
    for told in ("Please mend the uploader", "One test still fails.", "write\\_file: 1", "/srv/repo/up.py"):
        assert told.replace("\\", "") in version["content"].replace("\\", "")
    assert "shell: 1 (1 failed)" in version["content"]
    assert "- events: 6" in version["content"]
    [handoff] = house.get("/api/v1/handoffs").get_json()
    assert "Please mend the uploader" in handoff["summary"]
    assert handoff["files_touched"] == ["/srv/repo/up.py"]
    assert handoff["next_steps"] == ["Failed at last: pytest"]


def test_a_session_that_went_on_has_its_page_made_anew(house: House):
    client = Client(house, project="repo")
    worked(client)
    client.post("close", {"directory": HERE})
    client.claim()
    client.resume()
    assert house.get("/api/v1/sessions?state=open").get_json() == []
    client.append(said("And the downloader"))
    assert house.get("/api/v1/sessions?state=open").get_json()[0]["id"] == client.id

    client.post("close", {"directory": HERE})

    versions = house.rows("SELECT page_id, content FROM page_versions ORDER BY seq")
    assert len(versions) == 2
    assert len({version["page_id"] for version in versions}) == 1
    assert "And the downloader" in versions[1]["content"]


def test_a_session_without_events_leaves_nothing(house: House):
    client = Client(house)
    client.claim()

    assert client.post("close", {"directory": HERE}).get_json() == {"closed": True, "job": None}
    assert house.rows("SELECT * FROM pages") == []
    assert json.loads(house.get("/api/v1/handoffs").get_data()) == []


def test_long_messages_on_one_line_leave_a_page_that_can_be_read(house: House):
    client = Client(house, project="repo")
    client.claim()
    client.append(*(said(f"{number} " + "x" * 30_000) for number in range(60)))

    client.post("close", {"directory": HERE})

    [version] = house.rows("SELECT title, content FROM page_versions")
    assert len(version["content"].encode()) <= limits.PAGE_BODY_MAX_BYTES
    assert len(version["title"]) <= limits.TITLE_MAX_CHARS
    assert "59 xxx" in version["content"]
