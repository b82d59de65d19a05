"""Compactions over HTTP: planned from what the client reports or from what is stored, queued once, listed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.jobs.over_http import HttpAgent
from tests.web.house import House


@pytest.fixture
def house(house: House) -> Iterator[House]:
    house.start_writer()
    yield house
    house.stop_writer()


def agent(house: House, turns: int) -> HttpAgent:
    """With a session that has so many turns."""

    def ask(method: str, path: str, body: object, headers: dict[str, str]) -> tuple[int, str]:
        response = house.client().open(path, method=method, json=body, headers=house.bearer | headers)
        return response.status_code, response.get_data(as_text=True)

    made = HttpAgent(ask).start()
    made.claim()
    for number in range(turns):
        made.say(f"Prompt {number}", f"Answer {number}")
    return made


def test_a_window_that_is_not_full_gives_no_plan(house: House):
    client = agent(house, 6)

    assert client.compact(context_window=1_000_000) == (200, {"plan": None, "job": None, "is_new": False})
    assert client.compact(context_window=200, current_tokens=159)[1]["plan"] is None


def test_a_plan_is_made_and_queued(house: House):
    client = agent(house, 8)

    status, answer = client.compact(context_window=1_000, current_tokens=900)

    assert status == 200
    assert answer["plan"] == {
        "through_sequence": 4,
        "current_tokens": 900,
        "trigger_tokens": 800,
        "target_tokens": 500,
        "estimated_removed_tokens": answer["plan"]["estimated_removed_tokens"],
        "preserved_turns": 4,
    }
    assert answer["plan"]["estimated_removed_tokens"] >= 400
    assert (answer["job"]["state"], answer["job"]["through_sequence"], answer["is_new"]) == (
        "pending",
        4,
        True,
    )
    (listed,) = client.compactions()
    assert (listed["job"]["id"], listed["made_by"], listed["summary_sequence"]) == (
        answer["job"]["id"],
        None,
        None,
    )


def test_the_same_request_sent_again_has_the_same_answer_and_one_under_way_is_told(house: House):
    client = agent(house, 8)
    first = client.compact("k1", context_window=1_000, current_tokens=900)

    assert client.compact("k1", context_window=1_000, current_tokens=900) == first
    assert client.compact("k1", context_window=1_000, current_tokens=901)[0] == 409
    again = client.compact("k2", context_window=1_000, current_tokens=999)[1]
    assert again == {"plan": None, "job": first[1]["job"], "is_new": False}
    assert len(house.rows("SELECT id FROM jobs WHERE kind = 'compaction'")) == 1


def test_a_boundary_can_be_named(house: House):
    client = agent(house, 3)

    assert client.compact(through_sequence=2)[1]["job"]["through_sequence"] == 2
    assert client.compact(through_sequence=4)[0] == 409
    assert client.compact(through_sequence=3)[0] == 400
    assert client.compact(through_sequence=99)[0] == 400


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"context_window": 0},
        {"context_window": 10, "preserve_recent_turns": 0},
        {"context_window": 10, "preserve_recent_turns": 65},
        {"context_window": 10, "current_tokens": -1},
        {"context_window": "10"},
        {"context_window": 10, "what": 1},
    ],
)
def test_bad_requests_are_refused(house: House, body: dict[str, Any]):
    assert agent(house, 1).compact(**body)[0] == 400


def test_who_may_not_see_the_session_sees_no_compaction_of_it(house: House):
    client = agent(house, 2)
    token = house.add_token("write", "eve")

    for response in (
        house.post(f"{client.path}/compactions", {"through_sequence": 2}, Authorization=f"Bearer {token}"),
        house.get(f"{client.path}/compactions", Authorization=f"Bearer {token}"),
    ):
        assert response.status_code == 404
    reader = house.add_token("read")
    response = house.post(
        f"{client.path}/compactions", {"through_sequence": 2}, Authorization=f"Bearer {reader}"
    )
    assert response.status_code == 403
