"""`/api/v1`: tools for the command line, lists with cursors, letters."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from memory_core import limits
from memory_core.domain.command import Envelope
from memory_core.ids import id_text
from tests.web.house import House


def prompt(house: House, session: str, text: str = "hello") -> None:
    body = {"session_id": session, "prompt": text, "cwd": "/srv/repo"}
    assert house.post("/hook?agent=claude-code&event=UserPromptSubmit&wait=commit", body).status_code == 200


def tool(house: House, name: str, arguments: Any, **headers: str) -> Any:
    return house.post(f"/api/v1/tools/{name}", arguments, **headers)


def test_a_page_is_written_found_and_read(house: House) -> None:
    house.start_writer()
    written = tool(
        house, "memory_write_page", {"path": "fees.md", "body": "# Fees\n\nhalf-even", "project": "p"}
    )
    assert (written.status_code, written.json["path"]) == (200, "fees.md")
    found = tool(house, "memory_query", {"query": "half-even", "project": "p"})
    assert [hit["path"] for hit in found.json["hits"]] == ["fees.md"]
    assert "half-even" in tool(house, "memory_read_page", {"path": "fees.md", "project": "p"}).json["body"]


def test_a_page_that_is_too_long_is_refused_and_not_cut(house: House) -> None:
    house.start_writer()
    fits = "# A\n\n" + "word " * (limits.PAGE_BODY_MAX_BYTES // 5 - 100) + "last"
    assert tool(house, "memory_write_page", {"path": "a", "body": fits, "project": "p"}).status_code == 200
    part: dict[str, Any] = {"next_offset": 0}
    while "next_offset" in part:
        given = {"path": "a", "project": "p", "offset": part["next_offset"]}
        part = tool(house, "memory_read_page", given).json
    assert "word last" in part["body"]
    refused = tool(house, "memory_write_page", {"path": "b", "body": fits + " word" * 200, "project": "p"})
    assert (refused.status_code, "split it" in refused.json["error"]) == (400, True)


def test_a_command_of_a_person_means_the_project_of_its_directory(house: House) -> None:
    house.start_writer()
    for key, directory in (("s", "/srv/one"), ("t", "/srv/two words")):
        body = {"session_id": key, "prompt": "hello", "cwd": directory}
        address = "/hook?agent=claude-code&event=UserPromptSubmit&wait=commit"
        assert house.post(address, body).status_code == 200
    headers = {"X-Memoryd-Directory": "/srv/two%20words"}
    assert tool(house, "memory_status", {}, **headers).json["scope"] == "default/two-words"
    assert tool(house, "memory_status", {}).json["scope"] == "all"


def test_a_secret_in_a_page_is_redacted_and_ids_are_not(house: House) -> None:
    house.start_writer()
    secret = "ghp_" + uuid.uuid4().hex + "abcd"
    tool(house, "memory_write_page", {"path": "a.md", "body": f"# A\n\nuse {secret} now", "project": "p"})
    body = tool(house, "memory_read_page", {"path": "a.md", "project": "p"}).json["body"]
    assert secret not in body
    assert "[REDACTED:" in body


def test_a_keyed_call_sent_again_gets_the_same_answer(house: House) -> None:
    house.start_writer()
    key = {"Idempotency-Key": uuid.uuid4().hex}
    arguments = {"summary": "go on", "project": "p"}
    one, two = (tool(house, "memory_handoff_begin", arguments, **key) for _ in range(2))
    assert one.json["handoff_id"] == two.json["handoff_id"]
    assert len(house.rows("SELECT 1 FROM handoffs")) == 1
    assert tool(house, "memory_handoff_begin", arguments | {"summary": "other"}, **key).status_code == 409


def test_without_a_writer_a_write_is_pending_and_can_be_asked_for(house: House, monkeypatch: Any) -> None:
    monkeypatch.setattr(limits, "REPLY_WAIT_SECONDS", 0.05)
    answer = tool(house, "memory_write_page", {"path": "a.md", "body": "# A", "project": "p"})
    assert (answer.status_code, answer.json["status"]) == (202, "pending")
    address = f"/api/v1/commands/{answer.json['command_id']}"
    assert house.get(address).json["status"] == "pending"
    house.drain_all()
    assert house.get(address).json["status"] == "committed"


@pytest.mark.parametrize(
    ("name", "arguments", "status"),
    [
        ("memory_query", {}, 400),
        ("memory_query", [1], 400),
        ("memory_query", b"{", 400),
        ("no_such_tool", {}, 404),
        ("memory_read_page", {"path": "nothing.md", "project": "nowhere"}, 404),
        ("memory_write_page", {"path": "../x.md", "body": "x", "project": "p"}, 400),
        ("memory_write_page", {"path": "/etc/passwd", "body": "x", "project": "p"}, 400),
        ("memory_write_page", {"path": ".git/config", "body": "x", "project": "p"}, 400),
    ],
)
def test_errors_say_what_is_wrong(house: House, name: str, arguments: Any, status: int) -> None:
    house.start_writer()
    answer = tool(house, name, arguments)
    assert answer.status_code == status
    assert answer.json["error"]
    assert answer.json["code"]


def test_sessions_are_listed_with_a_cursor_for_the_rest(house: House) -> None:
    house.start_writer()
    for number in range(5):
        prompt(house, f"s{number}")
    first = house.get("/api/v1/sessions?limit=3")
    assert [session["agent"] for session in first.json] == ["claude-code"] * 3
    target = first.headers["Link"].partition(">")[0].removeprefix("<")
    rest = house.get(target)
    assert len(rest.json) == 2
    assert "Link" not in rest.headers
    assert len({session["id"] for session in first.json + rest.json}) == 5


def test_lists_are_narrowed_by_project_and_state(house: House) -> None:
    house.start_writer()
    prompt(house, "s1")
    assert len(house.get("/api/v1/sessions?project=repo&state=open").json) == 1
    assert house.get("/api/v1/sessions?state=ended").json == []
    assert house.get("/api/v1/sessions?project=nowhere").status_code == 404
    assert house.get("/api/v1/sessions?state=odd").status_code == 400
    assert house.get("/api/v1/sessions?limit=x").status_code == 400
    assert house.get("/api/v1/handoffs?state=open").json == []


def test_a_dead_letter_is_listed_retried_and_discarded(house: House) -> None:
    house.start_writer()
    envelope = Envelope(
        id=house.parts.gate.ids.new(), name="record_observation", version=1, body=b'{"event": 5}', body_hash=b"h" * 16,
        principal="owner", token_scope="admin", recorded_at=1,
    )  # fmt: skip
    house.parts.gate.append([envelope])
    house.wait_drained()
    text = id_text(envelope.id)
    (letter,) = house.get("/api/v1/dead").json
    assert (letter["id"], letter["cause"]) == (text, "exception")
    assert house.get(f"/api/v1/dead/{text}").json["body"] == {"event": 5}
    assert house.post(f"/api/v1/dead/{text}/discard", {}).json["status"] == "discarded"
    assert house.post(f"/api/v1/dead/{text}/discard", {}).status_code == 404
    assert house.get("/api/v1/dead").json == []


def test_status_names_every_part(house: House) -> None:
    answer = house.get("/api/v1/status").json
    assert {"version", "port", "data_dir", "sqlite", "broker", "backlog", "writer", "disk"} <= set(answer)
    assert answer["writer"]["status"] == "not started"


def test_what_is_not_there_is_json_too(house: House) -> None:
    answer = house.get("/api/v1/nothing")
    assert (answer.status_code, answer.json["code"]) == (404, "not_found")
    assert house.get("/hook").status_code == 405


def test_a_page_that_could_not_be_looked_through_for_secrets_is_not_kept(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "REDACTION_SECONDS_PER_MIB", 0.0)

    answer = tool(house, "memory_write_page", {"path": "a.md", "body": "# A\n\nText.\n", "project": "p"})

    assert answer.status_code == 503
    assert "in parts" in answer.get_json()["error"]
    assert house.waiting() == 0
