"""The routes that an import sends to: what one request takes, who may send it, and what is not in its place."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from memory_core import limits
from tests.client.durable.gate import Gate
from tests.durable.working import HERE, message

API = "/api/v1/imports/emelex"


def ask(gate: Gate, path: str, body: Any, *, token: str = "", method: str = "POST") -> tuple[int, Any]:
    headers = {"Authorization": f"Bearer {token or gate.settings.token()}"}
    answer = gate.house.client().open(API + path, method=method, json=body, headers=headers)
    return answer.status_code, answer.get_json()


def token_of(gate: Gate, scope: str, principal: str) -> str:
    made = gate.house.post(
        "/api/v1/tokens", {"scope": scope, "name": str(uuid.uuid4()), "principal": principal}
    )
    assert made.status_code == 200, made.get_json()
    return str(made.get_json()["token"])


def new_id() -> str:
    return str(uuid.uuid4())


def session(session_id: str, count: int, **more: Any) -> dict[str, Any]:
    times = {"started_at": 1_000_000, "updated_at": 2_000_000}
    return {"session_id": session_id, "directory": HERE, "last_sequence": count, **times} | more


def event(**more: Any) -> dict[str, Any]:
    place = {"id": new_id(), "turn_id": new_id(), "turn_index": 0, "turn_size": 1}
    return place | {"kind": "user_message", "payload": message("hello"), "created_at": 1_500_000} | more


def entry(entry_id: str, **more: Any) -> dict[str, Any]:
    version = {"version": 1, "content": "make", "confidence": 1.0, "created_at": 1_000_000}
    told = {"id": entry_id, "directory": HERE, "key": entry_id, "is_legacy": False, "pinned": False}
    told |= {"tombstoned_at": None, "created_at": 1_000_000, "active_version": 1, "count": 1}
    return told | {"is_whole": True, "versions": [version]} | more


def begun(gate: Gate, count: int = 2) -> str:
    session_id = new_id()
    status, told = ask(gate, "/sessions", session(session_id, count))
    assert (status, told["state"], told["staged"]) == (200, "coming", 0)
    return session_id


def test_a_request_takes_so_many_events_jobs_versions_and_questions(gate: Gate):
    session_id = begun(gate)
    many = [event() for _ in range(limits.TURN_SLICE_EVENTS_MAX + 1)]
    long = [event(payload=message("x" * 200_000)) for _ in range(6)]
    job = {"id": new_id(), "kind": "compaction", "through_sequence": 1, "state": "pending", "failures": 0}
    job |= {"last_error": None, "created_at": 1, "updated_at": 1}
    version = {"content": "x", "confidence": 1.0, "created_at": 1}
    versions = [{"version": n, **version} for n in range(1, limits.IMPORT_PARTS_PER_COMMAND + 2)]
    for path, body in (
        (f"/sessions/{session_id}/events", {"after": 0, "events": many}),
        (f"/sessions/{session_id}/events", {"after": 0, "events": long}),
        (f"/sessions/{session_id}/events", {"after": 0, "events": []}),
        (f"/sessions/{session_id}/events", {"after": 0, "events": [event(payload="x" * 300_000)]}),
        (f"/sessions/{session_id}/jobs", {"jobs": [job] * (limits.IMPORT_JOBS_PER_COMMAND + 1)}),
        ("/knowledge", entry(new_id(), versions=versions)),
        ("/knowledge", entry(new_id(), versions=[{**v, "content": "x" * 240_000} for v in versions[:5]])),
        ("/known", {"sessions": [new_id() for _ in range(limits.IMPORT_KNOWN_MAX + 1)]}),
        ("/known", {"more": 1}),
    ):
        assert ask(gate, path, body)[0] == 400, path


@pytest.mark.parametrize(
    "wrong",
    [
        {"turn_index": 1, "turn_size": 2},
        {"turn_size": 0},
        {"turn_size": 5_000},
        {"kind": "summary", "payload": {"summary": {}}},
        {"kind": "summary", "payload": {"compaction": {"job_id": "x", "through_sequence": 9}}},
        {"kind": "whisper"},
        {"created_at": -1},
        {"assets": [{"sha256": "0" * 64, "bytes": 1, "kind": "image"}]},
    ],
)
def test_an_event_that_is_not_in_its_place_is_refused_and_nothing_of_the_slice_stays(
    gate: Gate, wrong: dict[str, Any]
):
    session_id = begun(gate)
    path = f"/sessions/{session_id}/events"

    assert ask(gate, path, {"after": 0, "events": [event(), event(**wrong)]})[0] == 400

    assert ask(gate, path, {"after": 0, "events": [event()]})[0] == 200


def test_slices_follow_one_another_and_a_session_is_published_when_it_is_whole(gate: Gate):
    session_id = begun(gate)
    path = f"/sessions/{session_id}"
    assert ask(gate, f"{path}/events", {"after": 1, "events": [event()]}) == (
        409,
        {"staged": 0, **_said("of this session 0 events are here; go on there")},
    )
    end = {"last_sequence": 2, "substance": 2, "last_event_at": 3_000_000}
    assert ask(gate, f"{path}/publish", end)[0] == 409
    turn = new_id()
    halves = [event(turn_id=turn, turn_index=n, turn_size=2) for n in range(2)]
    assert ask(gate, f"{path}/events", {"after": 0, "events": halves[:1]})[0] == 200
    assert ask(gate, f"{path}/publish", {**end, "last_sequence": 1})[0] == 400
    assert ask(gate, f"{path}/events", {"after": 1, "events": halves[1:]})[1] == {"staged": 2}
    assert ask(gate, f"{path}/publish", end) == (200, {"last_sequence": 2})
    assert ask(gate, f"{path}/publish", end) == (200, {"last_sequence": 2})
    assert ask(gate, f"{path}/events", {"after": 2, "events": [event()]})[0] == 404


def _said(text: str) -> dict[str, str]:
    return {"code": "conflict", "error": text}


def test_only_who_may_write_imports_and_nobody_goes_on_with_what_is_somebody_elses(gate: Gate):
    reader, other = token_of(gate, "read", "ada"), token_of(gate, "write", "grace")
    assert ask(gate, "/sessions", session(new_id(), 1), token=reader)[0] == 403
    assert ask(gate, "/known", {}, token=reader)[0] == 403
    session_id, entry_id = begun(gate), new_id()
    assert ask(gate, "/knowledge", entry(entry_id))[1]["state"] == "taken"

    assert (
        ask(gate, f"/sessions/{session_id}/events", {"after": 0, "events": [event()]}, token=other)[0] == 404
    )
    assert ask(gate, "/sessions", session(session_id, 2), token=other)[0] == 409
    assert ask(gate, f"/sessions/{session_id}", {}, token=other, method="DELETE")[0] == 404
    assert ask(gate, "/knowledge", entry(entry_id), token=other)[0] == 409
    asked = {"sessions": [session_id], "knowledge": [{"id": entry_id, "directory": HERE, "key": "k"}]}
    told = ask(gate, "/known", asked, token=other)[1]
    assert told["sessions"][session_id] == {"state": "taken"}
    assert told["knowledge"][entry_id]["state"] == "taken"


def test_an_id_that_is_somebody_elses_session_or_entry_is_refused(gate: Gate):
    started = gate.house.post("/api/v1/durable-sessions", {"directory": HERE}).get_json()["id"]
    assert ask(gate, "/sessions", session(started, 1))[0] == 409
    known = gate.house.post(
        "/api/v1/knowledge/remember", {"directory": HERE, "key": new_id(), "content": "make"}
    ).get_json()
    assert ask(gate, "/knowledge", entry(known["id"]))[0] == 409


def test_what_was_given_up_leaves_nothing_and_can_come_again(gate: Gate):
    session_id = begun(gate)
    ask(gate, f"/sessions/{session_id}/events", {"after": 0, "events": [event()]})

    told = ask(gate, f"/sessions/{session_id}", {}, method="DELETE")

    assert told == (200, {"abandoned": True, "left": False})
    assert gate.house.get(f"/api/v1/durable-sessions/{session_id}").status_code == 404
    assert ask(gate, "/sessions", session(session_id, 1))[1]["state"] == "coming"


def test_an_import_that_begins_anew_clears_in_slices_what_was_staged(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(limits, "DELETED_ROWS_PER_SLICE", 2)
    session_id = begun(gate, 6)
    for count in range(5):
        assert ask(gate, f"/sessions/{session_id}/events", {"after": count, "events": [event()]})[0] == 200

    status, told = ask(gate, "/sessions", session(session_id, 6, restart=True))

    assert (status, told["state"], told["staged"]) == (200, "coming", 0)
    of_session = "SELECT count(*) AS n FROM session_events WHERE session_id = ?"
    assert gate.house.rows(of_session, uuid.UUID(session_id).bytes) == [{"n": 0}]
