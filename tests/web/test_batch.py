"""`/hook/batch`: order, one status per item, and what a client may delete."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from memory_core import limits
from memory_core.domain.command import Envelope
from tests.web.house import House

COMMIT = "/hook/batch?wait=commit"


def item(text: str, key: str | None = None, session: str = "s1", **query: str) -> dict[str, Any]:
    pairs = {
        "event": "UserPromptSubmit",
        "agent": "claude-code",
        "ingest_key": key or uuid.uuid4().hex,
    } | query
    url = "/hook?" + "&".join(f"{name}={value}" for name, value in pairs.items())
    return {"url": url, "body": {"session_id": session, "prompt": text, "cwd": "/srv/repo"}}


def statuses(answer: Any) -> list[str]:
    return [result["status"] for result in answer.json["results"]]


def test_a_batch_is_stored_in_its_order_and_told_item_by_item(house: House) -> None:
    house.start_writer()
    answer = house.post(COMMIT, [item(f"n{n}") for n in range(20)])
    assert answer.status_code == 200
    assert answer.json["accepted"] == 20
    assert "accepted_indices" not in answer.json
    assert statuses(answer) == ["committed"] * 20
    rows = house.rows("SELECT body FROM observations ORDER BY seq")
    assert [row["body"] for row in rows] == [f"n{n}" for n in range(20)]


def test_one_batch_is_one_append(house: House, monkeypatch: Any) -> None:
    sizes: list[int] = []
    append = house.parts.line.append

    def counting(envelopes: list[Envelope]) -> Any:
        sizes.append(len(envelopes))
        return append(envelopes)

    monkeypatch.setattr(house.parts.line, "append", counting)
    house.post("/hook/batch", [item(str(n)) for n in range(100)])
    assert sizes == [100]


def test_without_waiting_everything_is_pending(house: House) -> None:
    answer = house.post("/hook/batch", [item("a"), item("b")])
    assert (answer.status_code, statuses(answer)) == (202, ["pending", "pending"])
    assert house.waiting() == 2


def test_an_invalid_item_never_blocks_the_others(house: House) -> None:
    house.start_writer()
    bad: list[Any] = [
        7,
        {"url": 5},
        {"url": "/hook?agent=claude-code", "body": [1]},
        {"body": {}},
        item("x", key="a b"),
    ]
    answer = house.post(COMMIT, [item("first"), *bad, item("last")])
    assert answer.status_code == 200
    assert statuses(answer) == ["committed", *["invalid"] * 5, "committed"]
    assert (answer.json["accepted"], answer.json["accepted_indices"], answer.json["failed_index"]) == (
        1,
        [0, 6],
        1,
    )
    assert all(result["reason"] for result in answer.json["results"][1:6])
    assert [row["body"] for row in house.rows("SELECT body FROM observations ORDER BY seq")] == [
        "first",
        "last",
    ]


def test_what_was_delivered_before_is_a_duplicate_and_another_body_is_refused(house: House) -> None:
    house.start_writer()
    keys = [uuid.uuid4().hex for _ in range(2)]
    house.post(COMMIT, [item("a", keys[0]), item("b", keys[1])])
    answer = house.post(COMMIT, [item("a", keys[0]), item("other", keys[1]), item("c")])
    assert statuses(answer) == ["duplicate", "refused", "committed"]
    assert answer.json["results"][1]["code"] == "conflict"
    assert len(house.rows("SELECT 1 FROM observations")) == 3


def test_the_same_key_twice_in_one_batch_takes_effect_once(house: House) -> None:
    house.start_writer()
    key = uuid.uuid4().hex
    answer = house.post(COMMIT, [item("a", key), item("a", key), item("other", key)])
    assert statuses(answer)[0] == "committed"
    # Not yet known to be committed when it was looked at: the client sends it again and hears `duplicate`.
    assert statuses(answer)[1:] == ["pending", "refused"]
    assert len(house.rows("SELECT 1 FROM observations")) == 1


def test_the_same_event_from_two_sources_is_one(house: House) -> None:
    house.start_writer()
    answer = house.post(COMMIT, [item("twin", source="user"), item("twin", source="project")])
    assert statuses(answer) == ["committed", "duplicate"]


def test_a_mark_reached_in_the_middle_keeps_a_prefix_and_says_which(house: House, monkeypatch: Any) -> None:
    monkeypatch.setattr(limits, "BACKLOG_MAX_ENTRIES", 2)
    answer = house.post("/hook/batch", [item("a"), item("b"), item("c")])
    assert answer.status_code == 429
    assert int(answer.headers["Retry-After"]) >= 1
    assert statuses(answer) == ["pending", "pending", "not_kept"]
    assert (answer.json["accepted"], answer.json["failed_index"], house.waiting()) == (2, 2, 2)


def test_too_many_items_are_refused_whole(house: House) -> None:
    answer = house.post("/hook/batch", [item("x")] * (limits.BATCH_ITEMS_MAX + 1))
    assert (answer.status_code, house.waiting()) == (413, 0)


@pytest.mark.parametrize("body", [{}, 5, "x", None], ids=str)
def test_a_batch_is_an_array(house: House, body: Any) -> None:
    assert house.post("/hook/batch", body).status_code == 400


def test_an_empty_batch_is_accepted(house: House) -> None:
    answer = house.post(COMMIT, [])
    assert answer.status_code == 200
    assert answer.json == {"accepted": 0, "accepted_indices": [], "results": []}


def test_a_broken_item_url_is_only_that_items_trouble(house: House) -> None:
    long_query = "/hook?" + "&".join(f"k{n}=1" for n in range(200))
    answer = house.post(
        "/hook/batch", [{"url": "http://[", "body": {}}, {"url": long_query, "body": {}}, item("ok")]
    )
    assert statuses(answer) == ["invalid", "invalid", "pending"]


def test_dropped_items_count_as_accepted(house: House) -> None:
    of_subagent = item("x", drop_subagent="1")
    of_subagent["body"]["agent_id"] = "a1"
    answer = house.post("/hook/batch", [of_subagent, item("y")])
    assert statuses(answer) == ["dropped", "pending"]
    assert answer.json["accepted"] == 2
