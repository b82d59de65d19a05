"""A client outlives the server it spoke to: whoever answers next, what it remembers of a session does no harm."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.queue.broker import Broker, until
from tests.web.house import House
from tests.web.served import Served
from tests.web.test_mcp import LEGACY, call, post, rpc

pytestmark = pytest.mark.stack

#: As a client still has it that spoke to another server, or to this one before it was started again.
STALE = {"Mcp_Session_Id": "5f0c2a7e-0000-4000-8000-000000000000", "MCP_Protocol_Version": LEGACY}
CLIENT = {"capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}


@pytest.fixture(scope="module")
def pair(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Two web processes behind one port."""
    house = House(tmp_path_factory.mktemp("pair"), broker)
    house.start_writer()
    served = Served(house, "web.app:create_app()", "--workers", "2")
    until(lambda: len(served.worker_pids()) == 2)
    yield served
    served.close()
    house.close()


def everything_answers(served: Served) -> None:
    """The whole conversation of a client that does not know that anything happened."""
    for offered in ("2025-03-26", "2025-06-18", "1999-01-01"):
        status, answer, headers = post(served, rpc("initialize", protocolVersion=offered, **CLIENT), **STALE)
        assert (status, "mcp-session-id" in headers) == (200, False), answer
        assert answer["result"]["capabilities"]["tools"] is not None
    for headers in (STALE, {}):
        listed = post(served, rpc("tools/list"), **headers)[1]["result"]["tools"]
        assert len(listed) >= 12
        found = call(served, "memory_query", {"query": "quokka", "project": "p"}, **headers)
        assert [hit["path"] for hit in found["structuredContent"]["hits"]] == ["a.md"]
        unknown = call(served, "memory_query", {"query": "quokka"}, **headers)
        assert unknown["isError"] is True
        assert "scope unknown" in unknown["content"][0]["text"]
        assert "default/p" in unknown["content"][0]["text"]
        assert "query is missing" in call(served, "memory_query", {}, **headers)["content"][0]["text"]
        nobody = post(served, rpc("tools/call", name="memory_find", arguments={}), **headers)[1]
        assert nobody["error"]["code"] == -32602
        assert "memory_query" in nobody["error"]["message"]
        assert post(served, rpc("tools/frob"), **headers)[1]["error"]["code"] == -32601


def test_after_a_restart_every_call_is_answered_as_before(pair: Served) -> None:
    call(pair, "memory_write_page", {"path": "a", "body": "# Quokka", "project": "p"})
    everything_answers(pair)
    before = set(pair.worker_pids())
    for pid in before:
        os.kill(pid, signal.SIGKILL)
    until(lambda: len(pair.worker_pids()) == 2 and not before & set(pair.worker_pids()))
    until(lambda: _is_answered(pair))
    everything_answers(pair)


def test_five_clients_with_ten_calls_each_are_all_answered_by_either_process(pair: Served) -> None:
    def one(number: int) -> dict[str, Any]:
        headers = STALE | {"Mcp_Session_Id": f"client-{number % 5}"}
        page = {"path": f"many/{number}", "body": f"# {number}", "project": "many"}
        name, arguments = [("memory_write_page", page), ("memory_status", {"project": "p"})][number % 2]
        return call(pair, name, arguments, **headers)

    call(pair, "memory_write_page", {"path": "first", "body": "x", "project": "many"})
    call(pair, "memory_write_page", {"path": "a", "body": "# Quokka", "project": "p"})
    with ThreadPoolExecutor(5) as clients:
        answers = list(clients.map(one, range(50)))
    assert [answer for answer in answers if answer.get("isError")] == []


def _is_answered(served: Served) -> bool:
    try:
        return post(served, rpc("ping"))[0] == 200
    except OSError:
        return False
