"""Turns that are more than one command carries: written past the session's end, and published at once."""

from __future__ import annotations

import uuid
from typing import Any

from tests.durable.working import HERE, Client, lines_of, said, texts_of
from tests.web.house import House


def test_a_long_turn_is_written_in_slices_and_seen_at_once(house: House):
    client, key = Client(house), str(uuid.uuid4())
    client.claim()
    events = [said(f"{number} {'x' * 5_000}") for number in range(600)]

    first = client.append(*events, **{"Idempotency-Key": key}).get_json()
    client.last_sequence = 0
    again = client.append(*events, **{"Idempotency-Key": key}).get_json()

    assert first == again
    assert (first["first_sequence"], first["last_sequence"]) == (1, 600)
    lines = lines_of(client.replay())
    assert [line["event"]["sequence"] for line in lines[1:-1]] == list(range(1, 601))
    assert {line["event"]["turn_size"] for line in lines[1:-1]} == {600}
    assert {line["event"]["turn_id"] for line in lines[1:-1]} == {first["turn_id"]}


def test_a_turn_that_was_never_finished_is_seen_by_nobody_and_goes_at_the_next_write(house: House):
    client = Client(house)
    client.claim()
    body = {"directory": HERE, "expected_last_sequence": 0, "turn_size": 2, "first_index": 0}
    assert client.post("turns/staged", body | {"events": [said("lost")]}).get_json()["staged"] == 1

    assert house.get(f"{client.root}/events").get_json() == []
    assert texts_of(lines_of(client.replay())) == []
    assert client.append(said("kept")).get_json()["last_sequence"] == 1
    assert texts_of(lines_of(client.replay())) == ["kept"]


def test_a_turn_that_is_too_long_for_one_request_is_staged_by_its_writer(house: House):
    client = Client(house)
    client.claim()
    body: dict[str, Any] = {"directory": HERE, "expected_last_sequence": 0, "turn_size": 3}
    stage = lambda index, *events: client.post(  # noqa: E731
        "turns/staged", body | {"first_index": index, "events": list(events)}
    )

    first = stage(0, said("a"), said("b")).get_json()
    assert first["staged"] == 2
    body["turn_id"] = first["turn_id"]
    early = client.post("turns/staged/publish", body)
    assert (early.status_code, early.get_json()["staged"]) == (409, 2)
    gap = stage(1, said("x"))
    assert (gap.status_code, gap.get_json()["staged"]) == (409, 2)
    assert stage(2, said("c"), said("d")).status_code == 400
    assert stage(2, said("c")).get_json()["staged"] == 3
    published = client.post("turns/staged/publish", body).get_json()
    assert (published["last_sequence"], published["turn_id"]) == (3, first["turn_id"])
    assert texts_of(lines_of(client.replay())) == ["a", "b", "c"]


def test_two_turns_that_are_staged_at_once_never_become_one(house: House):
    client = Client(house)
    client.claim()
    body = {"directory": HERE, "expected_last_sequence": 0, "turn_size": 2}
    stage = lambda index, text, **more: client.post(  # noqa: E731
        "turns/staged", body | {"first_index": index, "events": [said(text)], **more}
    )
    mine = stage(0, "mine 1").get_json()["turn_id"]
    yours = stage(0, "yours 1").get_json()["turn_id"]

    late = stage(1, "mine 2", turn_id=mine)

    assert (late.status_code, late.get_json()["staged"]) == (409, 0)
    assert stage(1, "yours 2", turn_id=yours).get_json()["staged"] == 2
    assert client.post("turns/staged/publish", body | {"turn_id": mine}).status_code == 409
    assert client.post("turns/staged/publish", body | {"turn_id": yours}).status_code == 200
    assert texts_of(lines_of(client.replay())) == ["yours 1", "yours 2"]
    # Whoever goes on says with what, and whoever begins has nothing to go on with.
    assert stage(1, "whose?").status_code == stage(0, "new", turn_id=yours).status_code == 400
