"""What a search shows counts as read: thrifty, together, behind the answer."""

from __future__ import annotations

from typing import Any

from memory_core import limits
from memory_core.clock import FakeClock
from memory_core.commands import kind_of
from memory_core.commands.accesses import CountAccesses
from tests.web.house import House, until
from web.accesses import Accesses
from web.auth import Caller

ADA = Caller(principal="ada", scope="read")


def ids(*numbers: int) -> list[bytes]:
    return [number.to_bytes(16, "big") for number in numbers]


def tool(house: House, name: str, **arguments: Any) -> dict[str, Any]:
    answer = house.post(f"/api/v1/tools/{name}", arguments)
    assert answer.status_code == 200, answer.text
    return answer.get_json()


def test_found_and_listed_pages_count_read_ones_do_not(house: House) -> None:
    house.start_writer()
    for path in ("apple", "berry"):
        tool(house, "memory_write_page", path=path, body=f"# Zebra {path}", project="p")
    tool(house, "memory_read_page", path="berry", project="p")
    tool(house, "memory_query", query="zebra apple", project="p", limit=1)
    until(
        lambda: (
            [row["access_count"] for row in house.rows("SELECT access_count FROM pages ORDER BY path")]
            == [1, 0]
        )
    )
    tool(house, "memory_recent", project="p")
    until(
        lambda: (
            [row["access_count"] for row in house.rows("SELECT access_count FROM pages ORDER BY path")]
            == [1, 1]
        )
    )


def test_a_search_is_answered_while_nothing_can_be_counted(house: House) -> None:
    house.start_writer()
    tool(house, "memory_write_page", path="a", body="# Zebra", project="p")
    house.stop_writer()
    assert tool(house, "memory_query", query="zebra", project="p")["hits"]


def test_many_notes_become_few_commands_and_the_same_page_waits_a_minute(house: House) -> None:
    clock = FakeClock()
    accesses = Accesses(house.parts.gate, clock)
    for _ in range(3):
        accesses.note(ADA, ids(1, 2))
    clock.advance(limits.ACCESS_THROTTLE_SECONDS - 1)
    accesses.note(ADA, ids(2, 3))
    accesses.stop()
    entries = house.reader.read(100, 10)
    commands: list[CountAccesses] = [
        kind_of(CountAccesses(page_ids=())).decode(entry.envelope.body, entry.envelope.version)
        for entry in entries
    ]
    assert len(commands) == 1
    assert len(commands[0].page_ids) == 3
    assert {entry.envelope.principal for entry in entries} == {"ada"}


def test_what_is_remembered_of_readers_is_bounded(house: House) -> None:
    accesses = Accesses(house.parts.gate, FakeClock())
    for start in range(0, limits.ACCESS_KNOWN_MAX + 100, 100):
        accesses.note(ADA, ids(*range(start, start + 100)))
    assert len(accesses._known) <= limits.ACCESS_KNOWN_MAX  # pyright: ignore[reportPrivateUsage]
    accesses.stop()
