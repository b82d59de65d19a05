"""Reads of a session are bounded in rows, bytes and assets, whatever it holds; nothing is left out for it."""

from __future__ import annotations

from typing import Any

import pytest

from memory_core import limits
from memory_core.store import session_events
from tests.durable.working import Client, lines_of, said
from tests.web.house import House

ASSETS = 3


def session_of(house: House, count: int, text: str = "look") -> Client:
    """One whose events refer to `ASSETS` assets each."""
    client = Client(house)
    client.claim()
    assets = []
    for number in range(ASSETS):
        digest = f"{number:02x}" * 32
        house.connection.raw.execute("INSERT INTO assets VALUES (?, 5, 1, 1, NULL)", (bytes.fromhex(digest),))
        assets.append({"sha256": digest, "bytes": 5, "kind": "image"})
    events = [said(f"{text} {number}") | {"assets": assets} for number in range(count)]
    assert client.append(*events).status_code == 200
    return client


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int, int]]:
    """Of each read of events: how many it gave, bytes of their payloads, and their assets."""
    found: list[tuple[int, int, int]] = []
    real = session_events.with_links

    def counted(*given: Any, **more: Any) -> Any:
        answer = real(*given, **more)
        found.append(
            (
                len(answer),
                sum(len(event.payload_json.encode()) for event, _ in answer),
                sum(len(links) for _, links in answer),
            )
        )
        return answer

    monkeypatch.setattr(session_events, "with_links", counted)
    return found


@pytest.mark.parametrize(
    ("name", "bound", "at"),
    [
        ("REPLAY_BATCH_EVENTS", 4, 0),
        ("REPLAY_BATCH_BYTES", 400, 1),
        ("EVENT_PAGE_ASSETS_MAX", 2 * ASSETS + 1, 2),
    ],
)
def test_a_replay_reads_no_more_at_a_time_than_each_bound(
    house: House,
    monkeypatch: pytest.MonkeyPatch,
    reads: list[tuple[int, int, int]],
    name: str,
    bound: int,
    at: int,
):
    client = session_of(house, 21)
    monkeypatch.setattr(limits, name, bound)

    lines = lines_of(client.replay())

    assert [line["event"]["sequence"] for line in lines[1:-1]] == list(range(1, 22))
    assert {len(line["event"]["assets"]) for line in lines[1:-1]} == {ASSETS}
    assert len(reads) > 5
    assert max(read[at] for read in reads) <= bound


@pytest.mark.parametrize(
    ("name", "bound"),
    [("DURABLE_PAGE_MAX_BYTES", 400), ("EVENT_PAGE_ASSETS_MAX", 2 * ASSETS + 1)],
)
def test_pages_of_events_go_on_where_a_bound_ended_one(
    house: House, monkeypatch: pytest.MonkeyPatch, reads: list[tuple[int, int, int]], name: str, bound: int
):
    client = session_of(house, 11)
    monkeypatch.setattr(limits, name, bound)
    seen: list[int] = []
    address: str | None = f"{client.root}/events?limit=100"
    while address is not None:
        answer = house.get(address)
        seen += [event["sequence"] for event in answer.get_json()]
        assert all(len(event["assets"]) == ASSETS for event in answer.get_json())
        address = answer.headers["Link"].split(">")[0].removeprefix("<") if "Link" in answer.headers else None

    assert seen == list(range(1, 12))
    assert len(reads) > 3


def test_an_event_that_is_more_than_a_bound_alone_is_read_alone(
    house: House, monkeypatch: pytest.MonkeyPatch, reads: list[tuple[int, int, int]]
):
    client = session_of(house, 3, "x" * 500)
    monkeypatch.setattr(limits, "REPLAY_BATCH_BYTES", 100)
    monkeypatch.setattr(limits, "EVENT_PAGE_ASSETS_MAX", ASSETS)

    assert len(lines_of(client.replay())) == 5
    assert [read[0] for read in reads] == [1, 1, 1]
