"""`/hook`: what each answer means, and what was kept."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from memory_core import limits
from tests.payloads import stripe_key
from tests.queue.broker import until
from tests.web.house import House

URL = "/hook?event=UserPromptSubmit&agent=claude-code"


def prompt(text: str = "add a retry", session: str = "s1", **more: Any) -> dict[str, Any]:
    return {
        "session_id": session,
        "hook_event_name": "UserPromptSubmit",
        "cwd": "/srv/repo",
        "prompt": text,
        **more,
    }


def key() -> str:
    return uuid.uuid4().hex


def test_an_accepted_event_waits_in_the_stream_and_takes_effect_once_applied(house: House) -> None:
    answer = house.post(URL, prompt())
    assert (answer.status_code, answer.json["status"]) == (202, "queued")
    assert uuid.UUID(answer.json["id"])
    assert house.waiting() == 1
    house.drain_all()
    assert [row["body"] for row in house.rows("SELECT body FROM observations")] == ["add a retry"]


def test_wait_commit_answers_when_it_is_committed(house: House) -> None:
    house.start_writer()
    answer = house.post(URL + "&wait=commit", prompt())
    assert (answer.status_code, answer.json["status"]) == (200, "committed")
    assert len(house.rows("SELECT 1 FROM observations")) == 1


def test_the_same_key_delivered_ten_times_in_parallel_is_stored_once(house: House) -> None:
    house.start_writer()
    url = f"{URL}&wait=commit&ingest_key={key()}"
    with ThreadPoolExecutor(10) as pool:
        answers = list(pool.map(lambda _: house.post(url, prompt()), range(10)))
    # Places to wait are fewer than ten: the others are told that theirs is under way.
    assert {answer.status_code for answer in answers} <= {200, 202}
    until(lambda: house.waiting() == 0)
    assert len(house.rows("SELECT 1 FROM observations")) == 1


def test_two_prompts_of_equal_text_are_two(house: House) -> None:
    for _ in range(2):
        assert house.post(URL, prompt("continue")).status_code == 202
    house.drain_all()
    assert len(house.rows("SELECT 1 FROM observations")) == 2


def test_sessions_whose_keys_are_no_uuid_stay_apart(house: House) -> None:
    keys = [f"session-1764512345678-ab{number}" for number in range(3)]
    secrets = [stripe_key(), stripe_key()]
    for session in keys + secrets:
        assert house.post(URL, prompt(session=session)).status_code == 202
    house.drain_all()

    stored = {row["vendor_key"] for row in house.rows("SELECT vendor_key FROM sessions")}

    assert len(stored) == 5
    assert stored > set(keys)
    assert not any(secret in key for secret in secrets for key in stored)
    # A redaction marker tells only 65,536 values apart.
    assert all(len(key) >= 32 for key in stored - set(keys))


def test_one_tool_use_sent_again_without_a_key_is_one(house: House) -> None:
    used = {
        "session_id": "s1", "hook_event_name": "PostToolUse", "tool_use_id": "tu_01", "tool_name": "Bash",
        "tool_input": {"command": "pytest -q"}, "tool_response": {"stdout": "3 passed"},
    }  # fmt: skip
    for body in (used, used, used | {"tool_use_id": "tu_02"}):
        assert house.post("/hook?agent=claude-code", body).status_code == 202
    house.drain_all()
    assert len(house.rows("SELECT 1 FROM observations")) == 2


def test_a_committed_key_is_answered_as_a_duplicate_and_appends_nothing(house: House) -> None:
    url = f"{URL}&ingest_key={key()}"
    house.post(url, prompt())
    house.drain_all()
    answer = house.post(url, prompt())
    assert (answer.status_code, answer.json["status"]) == (200, "duplicate")
    assert house.waiting() == 0


def test_the_same_key_with_another_body_is_a_conflict_and_keeps_nothing(house: House) -> None:
    url = f"{URL}&ingest_key={key()}"
    house.post(url, prompt("one"))
    house.drain_all()
    for more in ("", "&wait=commit"):
        answer = house.post(url + more, prompt("another"))
        assert answer.status_code == 409
        assert answer.json["code"] == "conflict"
    assert house.waiting() == 0


def test_the_spelling_of_a_body_does_not_make_it_another(house: House) -> None:
    url = f"{URL}&ingest_key={key()}"
    house.post(url, b'{"session_id":"s1","prompt":"a"}')
    house.drain_all()
    assert house.post(url, b'{ "session_id" : "s1", "prompt" : "a" }').json["status"] == "duplicate"


def test_an_event_past_its_wait_is_pending_and_its_fate_can_be_asked_for(
    house: House, monkeypatch: Any
) -> None:
    monkeypatch.setattr(limits, "REPLY_WAIT_SECONDS", 0.05)
    answer = house.post(URL + "&wait=commit", prompt())
    assert (answer.status_code, answer.json["status"]) == (202, "pending")
    assert house.waiting() == 1


def test_beyond_the_places_for_waiters_nobody_waits(house: House) -> None:
    for _ in range(limits.REPLY_WAITERS_MAX):
        assert house.parts.gate._waiters.acquire(blocking=False)
    answer = house.post(URL + "&wait=commit", prompt())
    assert (answer.status_code, answer.json["status"]) == (202, "pending")


@pytest.mark.parametrize(
    ("mark", "value"),
    [("BACKLOG_MAX_ENTRIES", 2), ("BACKLOG_MAX_BYTES", 1_500), ("BACKLOG_MAX_AGE_SECONDS", -1.0)],
)
def test_a_reached_mark_answers_429_and_keeps_nothing(
    house: House, monkeypatch: Any, mark: str, value: Any
) -> None:
    house.post(URL, prompt())
    house.post(URL, prompt())
    waiting = house.waiting()
    monkeypatch.setattr(limits, mark, value)
    answer = house.post(URL, prompt("x" * 1_000))
    assert answer.status_code == 429
    assert int(answer.headers["Retry-After"]) >= 1
    assert "same id again" in answer.json["advice"]
    assert house.waiting() == waiting


def test_a_full_disk_answers_429(house: House, monkeypatch: Any) -> None:
    monkeypatch.setattr(house.parts.disk, "backlog_room_bytes", lambda: 0)
    answer = house.post(URL, prompt())
    assert (answer.status_code, house.waiting()) == (429, 0)
    assert "disk" in answer.json["error"]


def test_no_database_delays_no_hook(house: House) -> None:
    house.settings.database.rename(house.settings.database.with_name("away"))
    answer = house.post(f"{URL}&ingest_key={key()}", prompt())
    assert answer.status_code == 202


@pytest.mark.parametrize(
    "body",
    [
        b"[1,2,3]", b"{", b"", b'"text"', b"null", b'{"session_id":"x","prompt":"caf\xe9"}',
        b'{"session_id":"x","duration_ms":NaN}', b'{"hook_event_name":"UserPromptSubmit","prompt":"no session"}',
        b'{"session_id":"x","a":' + b"[" * 100 + b"]" * 100 + b"}",
    ],
    ids=lambda body: repr(body[:24]),
)  # fmt: skip
def test_a_malformed_event_is_told_what_is_wrong_and_kept_nowhere(house: House, body: bytes) -> None:
    answer = house.post(URL, body)
    assert answer.status_code == 400
    assert answer.json["error"]
    assert house.waiting() == 0


def test_a_byte_order_mark_and_half_an_emoji_are_no_reason_to_lose_an_event(house: House) -> None:
    assert (
        house.post(URL, b'\xef\xbb\xbf{"session_id":"x","prompt":"bad \\ud83d end \\u0000"}').status_code
        == 202
    )
    house.drain_all()
    assert [row["body"] for row in house.rows("SELECT body FROM observations")] == ["bad � end �"]


def test_a_key_of_another_shape_is_refused(house: House) -> None:
    assert house.post(URL + "&ingest_key=a%20b", prompt()).status_code == 400


def test_a_secret_and_a_private_part_never_reach_the_stream(house: House) -> None:
    secret = "ghp_" + uuid.uuid4().hex + "abcd"
    text = f"use {secret} please <private>our salary list</private> and go on"
    assert house.post(URL, prompt(text)).status_code == 202
    kept = house.stream_bytes()
    assert b"go on" in kept
    assert secret.encode() not in kept
    assert b"salary" not in kept


@pytest.mark.parametrize(
    "field",
    [
        "session_id", "text", "title", "cwd", "model", "reason", "message_id", "agent_id", "agent_type", "transcript_path",
        "source_event", "tool.name", "tool.call_id", "tool.command", "tool.result", "tool.paths",
        "?source", "?project", "?workspace", "?repo_path", "?home", "?project_strategy",
    ],
)  # fmt: skip
def test_no_field_of_an_event_lets_a_secret_through(house: House, field: str) -> None:
    secret = "ghp_" + uuid.uuid4().hex + "abcd"
    body: dict[str, Any] = {"session_id": "s", "event": "post-tool-use", "tool": {"name": "Bash"}}
    url = "/hook?agent=generic"
    if field.startswith("?"):
        url += f"&{field[1:]}=/srv/{secret}"
    elif field.startswith("tool."):
        name = field.partition(".")[2]
        body["tool"][name] = [secret] if name == "paths" else secret
    else:
        body[field] = secret
    assert house.post(url, body).status_code == 202
    kept = house.stream_bytes()
    assert b"record_observation" in kept
    assert secret.encode() not in kept


def test_a_secret_is_found_although_the_title_would_cut_it(house: House) -> None:
    secret = "ghp_" + uuid.uuid4().hex + "abcd"
    house.post(URL, prompt("w " * 35 + secret))
    assert secret[:12].encode() not in house.stream_bytes()


def test_recalled_text_that_comes_back_is_not_captured(house: House) -> None:
    from memory_core.domain.recalled import fence

    house.post(URL, prompt("before " + fence("old memory", "a page") + " after"))
    kept = house.stream_bytes()
    assert b"before" in kept
    assert b"old memory" not in kept


def test_a_redactor_that_fails_lets_nothing_through(house: House, monkeypatch: Any) -> None:
    def broken(_: Any) -> Any:
        raise RuntimeError("no")

    monkeypatch.setattr(house.parts.gate, "redact", broken)
    answer = house.post(URL, prompt("raw words"))
    assert answer.status_code == 500
    assert b"raw words" not in answer.data
    assert house.waiting() == 0


def test_events_of_subagents_can_be_left_out(house: House) -> None:
    answer = house.post(URL + "&drop_subagent=1", prompt(agent_id="a1", agent_type="Explore"))
    assert (answer.status_code, answer.json["status"], house.waiting()) == (202, "dropped", 0)
    assert house.post(URL + "&drop_subagent=1", prompt()).json["status"] == "queued"


def test_a_large_body_lies_beside_the_stream(house: House) -> None:
    assert house.post(URL, prompt("long " * 200_000)).status_code == 202
    assert len(house.stream_bytes()) < limits.INLINE_COMMAND_MAX_BYTES


def test_an_extensions_namespace_is_checked_and_kept_with_the_name_of_its_event(house: House) -> None:
    url = "/hook?event=deployed&agent=claude-code&extension="
    assert house.post(url + "a%20b", prompt(hook_event_name="deployed")).status_code == 400
    body = {"session_id": "s1", "title": "v2 is out", "description": "on all hosts"}
    assert house.post(url + "ci.acme:1", body).status_code == 202
    house.drain_all()

    (row,) = house.rows("SELECT kind, extension, source_event, title, body FROM observations")
    assert tuple(row.values()) == ("other", "ci.acme:1", "deployed", "v2 is out", "on all hosts")
