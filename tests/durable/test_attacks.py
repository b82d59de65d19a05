"""Whatever is sent to the routes of durable sessions: it is refused by name, nothing breaks, and the session is as it was."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from memory_core import limits
from memory_core.domain.agent_message import call_payload, payload
from tests.durable.agent import Agent, ok
from tests.durable.attacking import NO_IDS, WRONG, changed, is_sound, places
from tests.durable.journals import asks, call, new_id, prompt
from tests.durable.working import HERE, Client, at_once, lines_of, said, texts_of
from tests.web.house import House

ROUTE = "/api/v1/durable-sessions"
BODIES: dict[str, Callable[[Agent, Any], tuple[str, str, dict[str, Any]]]] = {
    "start": lambda a, c: ("POST", "", {"title": "t", "agent": "a", "model_reference": "m", "project": "p"}),
    "renew": lambda a, c: ("POST", "renew", {}),
    "claim": lambda a, c: ("POST", "claim", {}),
    "title": lambda a, c: ("POST", "title", {"title": "x"}),
    "replayed": lambda a, c: ("POST", "replayed", {"last_sequence": 0, "digest": "00" * 32}),
    "turns": lambda a, c: ("POST", "turns", {"expected_last_sequence": 0, "events": [with_asset()]}),
    "staged": lambda a, c: (
        "POST",
        "turns/staged",
        {"expected_last_sequence": 0, "turn_size": 2, "first_index": 0, "events": [said("x")]},
    ),
    "publish": lambda a, c: (
        "POST",
        "turns/staged/publish",
        {"expected_last_sequence": 0, "turn_size": 2, "turn_id": new_id()},
    ),
    "snapshot": lambda a, c: ("PUT", "snapshot", {"schema_version": 1, "config": {"a": 1}, "authority": {}}),
    "plan a compaction": lambda a, c: (
        "POST",
        "compactions",
        {"context_window": 1_000, "current_tokens": 900, "preserve_recent_turns": 4},
    ),
    "compact": lambda a, c: ("POST", "compactions", {"through_sequence": 3}),
    "begin": lambda a, c: ("POST", "active-turn", {"turn_id": a.turn, "input": payload(prompt())}),
    "plan": lambda a, c: (
        "POST",
        "tool-batch",
        {"turn_id": a.turn, "message": payload(asks(c)), "audit": a.opening(c)},
    ),
    "discard": lambda a, c: ("DELETE", "tool-batch", {"turn_id": a.turn}),
    "start a call": lambda a, c: ("POST", f"tool-batch/calls/{c.id}/start", {"call": call_payload(c)}),
    "complete": lambda a, c: (
        "POST",
        f"tool-batch/calls/{c.id}/complete",
        {"output": {"content": "x", "is_error": True}, "origin": "tool"},
    ),
    "checkpoint": lambda a, c: (
        "POST",
        "checkpoint",
        {"turn_id": a.turn, "terminal": True, "failed": "x", "audit": [], "expected_last_sequence": 0},
    ),
    "recover": lambda a, c: (
        "POST",
        "recover",
        {"accept_unknown_effects": False, "expected_last_sequence": 0},
    ),
}


def with_asset() -> dict[str, Any]:
    return said("x") | {"assets": [{"sha256": "ab" * 32, "bytes": 5, "kind": "image"}]}


def sent(client: Client, method: str, route: str, body: Any, **headers: str) -> Any:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    told = {"Content-Type": "application/json", "Memoryd-Lease": client.lease} | headers
    path = f"{client.root}/{route}" if route else ROUTE
    return client.house.client().open(path, method=method, data=data, headers=client.house.bearer | told)


@pytest.mark.parametrize("name", BODIES)
def test_a_value_of_another_kind_in_any_place_breaks_nothing(house: House, agent: Agent, name: str):
    agent.turn, one = new_id(), call()
    method, route, rest = BODIES[name](agent, one)
    body = rest if route == "compactions" else {"directory": HERE} | rest

    answers = [sent(agent, method, route, changed(body, at, wrong)) for at in places(body) for wrong in WRONG]
    unknown = sent(agent, method, route, body | {"colour": "red"})

    assert [a.get_data()[:200] for a in answers if not is_sound(a)] == []
    assert (unknown.status_code, "colour" in unknown.get_json()["error"]) == (400, True)
    assert house.rows("SELECT * FROM dead_letters") == house.rows("SELECT * FROM parked_letters") == []
    assert "end" in lines_of(agent.replay())[-1]


WIDE = b'{"directory":null,"events":[' + b"{}," * 600_000 + b"{}]}"


@pytest.mark.parametrize(
    "body",
    [b"", b"null", b"[]", b"{", b"[" * 200_000, b'{"a":' * 200_000, b'{"a":[' * 9_000 + b"]}" * 9_000, WIDE],
    ids=lambda body: repr(body[:8]),
)
def test_huge_and_deep_bodies_are_refused(agent: Agent, body: bytes):
    for method, route in (
        ("POST", ""),
        ("POST", "turns"),
        ("POST", "active-turn"),
        ("POST", "renew"),
        ("PUT", "snapshot"),
        ("POST", "checkpoint"),
    ):
        answer = sent(agent, method, route, body)
        assert answer.status_code in (400, 413), route
        assert answer.get_json()["error"]


HERE_ASKED = f"host={HERE['host']}&device={HERE['device']}&inode={HERE['inode']}"


def addresses(known: str, text: str) -> tuple[tuple[str, str], ...]:
    """Where an id stands in an address."""
    return (
        ("GET", text),
        ("GET", f"{text}/events"),
        ("GET", f"{text}/journal"),
        ("GET", f"{text}/replay?{HERE_ASKED}"),
        ("GET", f"{known}/events/{text}/assets/0"),
        ("GET", f"{known}/events/{known}/assets/{text}"),
        ("POST", f"{text}/claim"),
        ("POST", f"{known}/tool-batch/calls/{text}/start"),
        ("DELETE", f"{text}?preview=1"),
    )


def test_an_id_that_is_none_leads_nowhere(agent: Agent):
    for method, rest in (each for text in NO_IDS for each in addresses(agent.id, text)):
        answer = agent.house.client().open(
            f"{ROUTE}/{rest}",
            method=method,
            json={"directory": HERE, "call": call_payload(call())} if method == "POST" else None,
            headers=agent.house.bearer | {"Memoryd-Lease": agent.lease},
        )
        assert answer.status_code in (308, 400, 404, 405), (rest, answer.get_data())


QUERIES = (
    *("limit=0", "limit=1e3", "limit=9999999999999999999999", "limit=%D9%A1", "unknown=1"),
    *("cursor=x", "cursor=1.zz", "cursor=99999999999999999999999.00", "cursor=" + "9" * 5_000 + ".00"),
    *("cursor=1_0." + "0" * 32, "host=x", "host=x&device=1&inode=%00", "project=../.."),
)


def test_a_query_that_cannot_be_is_refused(agent: Agent):
    for query in QUERIES:
        assert agent.house.get(f"{ROUTE}?{query}").status_code in (400, 404), query


# --- old tokens ------------------------------------------------------------------------------------------


def test_the_token_of_an_earlier_lease_opens_nothing_however_it_is_sent(agent: Agent):
    house, key = agent.house, str(uuid.uuid4())
    agent.append(said("mine"))
    ok(agent.post("release"))
    old = Client(house, agent.id)
    ok(old.claim(key=key))
    ok(old.post("release"))
    new = Client(house, agent.id)
    ok(new.claim())
    new.resume()

    # The old claim sent again is answered as it was, and its token is as old as before.
    again = Client(house, agent.id)
    assert ok(again.claim(key=key))["lease"] == old.lease
    before = house.rows("SELECT * FROM durable_sessions")
    for route, body in (
        ("renew", {}),
        ("release", None),
        ("replayed", {"last_sequence": 1, "digest": "00" * 32}),
        ("turns", {"expected_last_sequence": 1, "events": [said("theirs")]}),
        (
            "turns/staged",
            {"expected_last_sequence": 1, "turn_size": 1, "first_index": 0, "events": [said("x")]},
        ),
        ("title", {"title": "theirs"}),
        ("active-turn", {"turn_id": new_id(), "input": payload(prompt())}),
        ("recover", {"accept_unknown_effects": True}),
        ("close", {}),
    ):
        answer = again.post(route, body if body is None else {"directory": HERE, **body})
        assert (answer.status_code, answer.get_json()["code"]) == (409, "stale_lease"), route
    assert again.replay().get_json()["code"] == "stale_lease"
    assert house.rows("SELECT * FROM durable_sessions") == before
    assert ok(new.append(said("still mine")))["last_sequence"] == 2


def test_a_token_has_one_spelling(agent: Agent):
    # The last character of 43 carries two bits that no byte holds.
    other = agent.lease[:-1] + chr(ord(agent.lease[-1]) + 1)
    for spelt in (agent.lease[:-1], agent.lease + "=", agent.lease * 2, other, ""):
        answer = sent(agent, "POST", "renew", {"directory": HERE}, **{"Memoryd-Lease": spelt})
        assert answer.status_code == 400
        assert agent.lease[:-1] not in answer.get_data(as_text=True)


def test_a_key_that_was_used_for_something_else_is_refused(agent: Agent):
    key = {"Idempotency-Key": str(uuid.uuid4())}
    ok(agent.append(said("one"), **key))

    for route, body in (
        ("turns", {"expected_last_sequence": 1, "events": [said("two")]}),
        ("renew", {}),
        ("close", {}),
    ):
        answer = agent.post(route, {"directory": HERE, **body}, **key)
        assert (answer.status_code, answer.get_json()["code"]) == (409, "conflict"), route
    other = Client(agent.house)
    assert other.claim(key=key["Idempotency-Key"]).status_code == 409
    assert texts_of(lines_of(agent.replay())) == ["one"]


# --- races of two clients, with real threads ---------------------------------------------------------------


def twin(agent: Agent) -> Client:
    """Somebody with the same token, as a program has that began a second thread."""
    made = Client(agent.house, agent.id)
    made.lease, made.last_sequence = agent.lease, agent.last_sequence
    return made


def test_of_two_long_turns_at_once_one_is_written_whole(agent: Agent):
    for _ in range(3):
        one, other = twin(agent), twin(agent)
        texts = [[f"{name} {number}" for number in range(600)] for name in "ab"]

        answers = at_once(
            *(partial(who.append, *map(said, mine)) for who, mine in zip((one, other), texts, strict=True))
        )

        written = texts_of(lines_of(agent.replay()))[agent.last_sequence :]
        assert sorted(a.status_code for a in answers) == [200, 409]
        assert written == texts[[a.status_code for a in answers].index(200)]
        agent.last_sequence += 600


def test_whoever_comes_first_of_a_writer_and_a_deleter_the_other_is_refused(house: House):
    for _ in range(8):
        client = Client(house)
        ok(client.claim())
        ok(client.append(said("one")))
        ok(client.post("release"))
        other = Client(house, client.id)

        claimed, deleted = at_once(
            other.claim, lambda c=client: house.client().delete(c.root, headers=house.bearer)
        )

        assert sorted((claimed.status_code, deleted.status_code)) in ([200, 404], [200, 409])
        if claimed.status_code == 200:
            other.resume()
            assert ok(other.append(said("two")))["last_sequence"] == 2
        else:
            assert house.rows("SELECT * FROM session_events") == house.rows(
                "SELECT e.* FROM session_events AS e JOIN durable_sessions AS d ON d.session_id = e.session_id"
            )


def test_of_two_starts_of_one_call_one_may_run_it(agent: Agent):
    one = call()
    agent.begin()
    ok(agent.plan(one))
    body = {"directory": HERE, "call": call_payload(one)}

    answers = at_once(
        *(lambda: sent(agent, "POST", f"tool-batch/calls/{one.id}/start", body) for _ in range(4))
    )

    assert sorted(a.status_code for a in answers) == [200, 409, 409, 409]


def test_of_many_who_recover_at_once_one_writes_the_end(agent: Agent):
    done, begun = call(), call()
    agent.begin()
    agent.plan(done, begun)
    agent.start(done)
    agent.complete(done)
    agent.start(begun)
    other = agent.come_back()

    answers = at_once(
        *(lambda: sent(other, "POST", "recover", {"directory": HERE, "accept_unknown_effects": True}),) * 4
    )

    assert sorted(a.status_code for a in answers)[0] == 200
    assert {a.status_code for a in answers} <= {200, 400, 409}
    assert sum(a.status_code == 200 for a in answers) == 1
    assert [e["kind"] for e in other.events()].count("tool_result") == 2


def test_more_than_one_turn_holds_is_refused_before_anything_is_kept(agent: Agent):
    answer = agent.append(*[said("x")] * (limits.TURN_EVENTS_MAX + 1))

    assert answer.status_code == 400
    assert agent.house.rows("SELECT * FROM session_events") == []
