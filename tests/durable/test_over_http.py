"""Durable sessions over HTTP, through the real gate and the real engine."""

from __future__ import annotations

import base64
import json
import logging
import uuid
from typing import Any

import pytest

from memory_core import limits
from tests.durable.working import ELSEWHERE, HERE, Client, lines_of, message, nested, said, texts_of
from tests.web.house import House


def test_a_session_is_started_claimed_written_closed_and_resumed(house: House):
    client = Client(house, title="Mend the uploader", agent="emelex", project="repo")

    claimed = client.claim().get_json()
    assert claimed["must_replay"] is False
    assert claimed["lease_seconds"] == limits.SESSION_LEASE_SECONDS
    written = client.append(said("one"), said("two")).get_json()
    assert (written["first_sequence"], written["last_sequence"], written["redacted"]) == (1, 2, [])
    assert client.append(said("three")).get_json()["first_sequence"] == 3
    closed = client.post("close", {"directory": HERE}).get_json()
    assert closed["closed"] is True

    other = Client(house, client.id)
    assert other.claim().get_json()["must_replay"] is True
    lines = other.resume()
    assert lines[0]["head"]["last_sequence"] == 3
    assert lines[0]["head"]["snapshot"] is None
    assert texts_of(lines) == ["one", "two", "three"]
    assert [line["event"]["turn_index"] for line in lines[1:-1]] == [0, 1, 0]
    assert other.append(said("four")).get_json()["last_sequence"] == 4


def test_a_claim_that_is_sent_again_is_answered_with_the_same_token(house: House):
    client, key = Client(house), str(uuid.uuid4())

    first = client.claim(key=key).get_json()
    second = client.claim(key=key).get_json()

    assert first == second
    assert client.append(said("one")).status_code == 200


def test_a_turn_that_is_sent_again_is_written_once(house: House):
    client, key = Client(house), str(uuid.uuid4())
    client.claim()
    first = client.append(said("one"), **{"Idempotency-Key": key}).get_json()
    client.last_sequence = 0

    second = client.append(said("one"), **{"Idempotency-Key": key}).get_json()

    assert first == second
    assert house.rows("SELECT count(*) AS n FROM session_events") == [{"n": 1}]


def test_live_session_claim_excludes_another_resumer(house: House):
    client = Client(house)
    client.claim()

    answer = Client(house, client.id).claim()

    assert (answer.status_code, answer.get_json()["code"]) == (409, "session_busy")
    assert answer.get_json()["lease_until"].endswith("Z")


def test_the_token_is_told_once_and_kept_nowhere(house: House, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.DEBUG)
    client = Client(house)
    client.claim()
    client.append(said("one"))
    shown = [
        client.house.get(client.root).get_data(),
        client.house.get("/api/v1/durable-sessions").get_data(),
        client.house.get(f"{client.root}/events").get_data(),
        client.replay().get_data(),
    ]

    assert client.lease.encode() not in b"".join(shown)
    assert client.lease not in caplog.text
    token = base64.urlsafe_b64decode(client.lease + "=")
    kept = [path.read_bytes() for path in house.settings.data_dir.rglob("*") if path.is_file()]
    assert any(b"durable_sessions" in data for data in kept)
    assert not any(client.lease.encode() in data or token in data for data in kept)


def test_workspace_identity_rejects_directory_replaced_at_same_path(house: House):
    client = Client(house)
    client.claim()
    client.append(said("one"))

    for answer in (
        client.replay(ELSEWHERE),
        client.post("renew", {"directory": ELSEWHERE}),
        client.post("replayed", {"directory": ELSEWHERE, "last_sequence": 1, "digest": "00" * 32}),
        client.post("turns", {"directory": ELSEWHERE, "expected_last_sequence": 1, "events": [said("x")]}),
        client.post("title", {"directory": ELSEWHERE, "title": "x"}),
        client.post("close", {"directory": ELSEWHERE}),
    ):
        assert (answer.status_code, answer.get_json()["code"]) == (409, "workspace_mismatch")
    client.post("release")
    assert client.claim(ELSEWHERE).get_json()["code"] == "workspace_mismatch"


def test_workspace_identity_survives_directory_rename(house: House):
    client = Client(house)
    client.claim(HERE | {"path": "/srv/renamed"})

    assert client.append(said("one")).status_code == 200
    assert house.get(client.root).get_json()["directory"]["path"] == "/srv/renamed"


def test_resumed_session_must_replay_before_appending(house: House):
    client = Client(house)
    client.claim()
    client.append(said("one"))
    client.post("release")
    client.claim()

    assert client.append(said("two")).get_json()["code"] == "replay_required"
    client.resume()
    assert client.append(said("two")).status_code == 200


def test_a_writer_who_expects_another_end_is_told_both(house: House):
    client = Client(house)
    client.claim()
    client.append(said("one"))
    client.last_sequence = 0

    answer = client.append(said("two")).get_json()

    assert (answer["code"], answer["expected"], answer["actual"]) == ("stale_replay", 0, 1)


def test_a_replay_that_found_another_digest_does_not_count(house: House):
    client = Client(house)
    client.claim()
    client.append(said("one"))
    client.post("release")
    client.claim()

    answer = client.post("replayed", {"directory": HERE, "last_sequence": 1, "digest": "00" * 32})

    assert answer.get_json()["code"] == "stale_replay"
    assert client.append(said("two")).get_json()["code"] == "replay_required"


def test_secrets_are_gone_before_the_digest_and_the_writer_is_told_where(house: House):
    client = Client(house)
    client.claim()
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"

    answer = client.append(said("fine"), said(f"the token is {secret}")).get_json()

    assert answer["redacted"] == [1]
    lines = lines_of(client.replay())
    assert secret not in json.dumps(lines)
    assert "[REDACTED:" in texts_of(lines)[1]
    assert lines[-1]["end"]["digest"] == answer["digest"]


def test_atomic_turn_can_reference_content_addressed_asset(house: House):
    client = Client(house)
    client.claim()
    digest = "ab" * 32
    asset = {"sha256": digest, "bytes": 5, "kind": "image"}
    event = said("look") | {"assets": [asset, asset | {"kind": "other"}]}
    assert client.append(said("first"), event).status_code == 400  # not uploaded
    house.connection.raw.execute("INSERT INTO assets VALUES (?, 5, 1, 1, NULL)", (bytes.fromhex(digest),))

    assert client.append(said("first"), event).status_code == 200

    lines = lines_of(client.replay())
    assert "assets" not in lines[1]["event"]
    assert lines[2]["event"]["assets"] == event["assets"]
    assert house.get(f"{client.root}/events").get_json()[1]["assets"] == event["assets"]


def test_digests_in_messages_are_no_secrets(house: House):
    client = Client(house)
    client.claim()
    asset = {"sha256": "3f" * 16 + "a07c" * 8, "bytes": 5, "kind": "image"}
    payload = message("look") | {"content": [{"type": "asset", "data": asset}]}

    assert client.append({"kind": "audit", "payload": payload}).get_json()["redacted"] == []


def test_a_host_that_looks_random_is_kept_as_it_is(house: House):
    place = HERE | {"host": "9f86d081884c4d65" + "9a2feaa0c55ad015", "inode": "18446744073709551615"}
    client = Client(house, directory=place)

    assert client.claim().status_code == 200
    assert house.get(client.root).get_json()["directory"] == place
    query = f"host={place['host']}&device={place['device']}&inode={place['inode']}"
    assert [s["id"] for s in house.get(f"/api/v1/durable-sessions?{query}").get_json()] == [client.id]


def test_reserved_summary_is_rejected(house: House):
    client = Client(house)
    client.claim()

    answer = client.append({"kind": "summary", "payload": {}})

    assert (answer.status_code, answer.get_json()["code"]) == (400, "invalid")


@pytest.mark.parametrize(
    ("payload", "status"),
    [
        (nested(64), 200),
        (nested(65), 400),
        ([0] * 65_535, 200),
        ([0] * 65_536, 400),
        ({"text": "x" * limits.FIELD_REDACTED_MAX_BYTES}, 200),
        ({"text": "x" * (limits.FIELD_REDACTED_MAX_BYTES + 1)}, 400),
    ],
)
def test_json_has_bounds(house: House, payload: Any, status: int):
    client = Client(house)
    client.claim()

    answer = client.append({"kind": "audit", "payload": payload})

    assert answer.status_code == status, answer.get_json()
    if status == 200:
        assert answer.get_json()["redacted"] == []
        assert lines_of(client.replay())[1]["event"]["payload"] == payload


def test_an_event_has_four_mib_and_not_more(house: House):
    client = Client(house)
    client.claim()
    texts = ["y" * 200_000] * 20
    left = limits.EVENT_PAYLOAD_MAX_BYTES - len(json.dumps(texts, separators=(",", ":"))) - 3

    assert client.append({"kind": "audit", "payload": [*texts, "z" * left]}).status_code == 200
    assert client.append({"kind": "audit", "payload": [*texts, "z" * (left + 1)]}).status_code == 400


def test_session_cursors_reach_older_rows(house: House):
    made = [Client(house, title=f"t{number}").id for number in range(5)]
    seen: list[str] = []
    address: str | None = "/api/v1/durable-sessions?limit=2&host=laptop&device=66306&inode=1234567890123"

    while address is not None:
        answer = house.get(address)
        seen += [item["id"] for item in answer.get_json()]
        link = answer.headers.get("Link")
        address = link.split(">")[0][1:] if link else None

    assert seen == made[::-1]
    assert house.get("/api/v1/durable-sessions?host=laptop&device=1&inode=1").get_json() == []


def test_event_page_enforces_aggregate_payload_budget(house: House, monkeypatch: pytest.MonkeyPatch):
    client = Client(house)
    client.claim()
    client.append(*[said("x" * 1000) for _ in range(5)])
    monkeypatch.setattr(limits, "DURABLE_PAGE_MAX_BYTES", 2_500)

    first = house.get(f"{client.root}/events")
    assert [event["sequence"] for event in first.get_json()] == [1, 2]
    assert "after=2" in first.headers["Link"]
    monkeypatch.setattr(limits, "DURABLE_PAGE_MAX_BYTES", 10)
    assert [e["sequence"] for e in house.get(f"{client.root}/events?after=4").get_json()] == [5]


def test_a_session_is_its_owners_alone(house: House):
    client = Client(house)
    token = {"Authorization": f"Bearer {house.add_token('write', 'eve')}"}

    assert house.get(client.root, **token).status_code == 404
    assert house.get("/api/v1/durable-sessions", **token).get_json() == []
    assert client.post("claim", {"directory": HERE}, **token).status_code == 404


def test_a_token_that_reads_writes_nothing(house: House):
    client = Client(house)
    token = {"Authorization": f"Bearer {house.add_token('read')}"}

    assert house.get(client.root, **token).status_code == 200
    assert client.post("claim", {"directory": HERE}, **token).status_code == 403


def test_title_update_uses_live_durable_claim(house: House):
    client = Client(house)
    assert client.title("  First  ").get_json() == {"title": "First"}
    client.claim()
    assert client.title("Second").get_json() == {"title": "Second"}

    stranger = Client(house, client.id)
    assert stranger.title("Third").get_json()["code"] == "session_busy"
    assert client.title("x" * 513).status_code == 400
    assert client.title("   ").status_code == 400
    assert house.get("/api/v1/sessions").get_json()[0]["title"] == "Second"


@pytest.mark.parametrize(
    "directory",
    [
        {"host": "", "device": "1", "inode": "1", "path": "/x"},
        {"host": "h", "device": "01", "inode": "1", "path": "/x"},
        {"host": "h", "device": "1", "inode": "-1", "path": "/x"},
        {"host": "h", "device": "1", "inode": "1" * 21, "path": "/x"},
        {"host": "h", "device": "1", "inode": "1", "path": ""},
        {"host": "h", "device": "1", "inode": "1", "path": "/x\u0000"},
        {"host": "h", "device": "1", "inode": "1"},
    ],
)
def test_what_is_no_directory_begins_no_session(house: House, directory: dict[str, str]):
    answer = house.post("/api/v1/durable-sessions", {"directory": directory})

    assert (answer.status_code, answer.get_json()["code"]) == (400, "invalid")


def test_a_lease_that_is_none_is_refused_without_being_quoted(house: House):
    client = Client(house)
    client.claim()
    client.lease = "not-a-lease"

    answer = client.renew()

    assert answer.status_code == 400
    assert "not-a-lease" not in answer.get_data(as_text=True)
