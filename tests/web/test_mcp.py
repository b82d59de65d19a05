"""MCP with the official client, and by hand where the client would not do it."""

from __future__ import annotations

import asyncio
import http.client
import json
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import jsonschema
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.web.served import Served

pytestmark = pytest.mark.stack

TOOLS = {
    "memory_briefing", "memory_delete_page", "memory_explore", "memory_feedback", "memory_handoff_accept",
    "memory_handoff_begin", "memory_handoff_cancel", "memory_query", "memory_read_page", "memory_read_session_observations", "memory_recent",
    "memory_status", "memory_write_page",
}  # fmt: skip
LEGACY = "2025-11-25"
MODERN = "2026-07-28"


@pytest.fixture(scope="module", autouse=True)
def writer(served: Served) -> None:
    served.house.start_writer()


def with_client(served: Served, work: Callable[[Client], Awaitable[Any]], **options: Any) -> Any:
    async def run() -> Any:
        async with httpx2.AsyncClient(headers=served.house.bearer, timeout=60) as http_client:
            transport = streamable_http_client(f"{served.url}/mcp", http_client=http_client)
            async with Client(transport, **options) as client:
                return await work(client)

    return asyncio.run(run())


def rpc(method: str, version: str = LEGACY, **params: Any) -> dict[str, Any]:
    if version == MODERN:
        params["_meta"] = {
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": {},
        }
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def post(served: Served, body: Any, path: str = "/mcp", **headers: str) -> tuple[int, Any, dict[str, str]]:
    given = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    given |= served.house.bearer | {name.replace("_", "-"): value for name, value in headers.items()}
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=60)
    try:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        connection.request("POST", path, body=data, headers=given)
        answer = connection.getresponse()
        text = answer.read()
        is_json = "json" in (answer.getheader("Content-Type") or "")
        return (
            answer.status,
            json.loads(text) if is_json and text else text,
            {name.lower(): value for name, value in answer.getheaders()},
        )
    finally:
        connection.close()


def call(served: Served, name: str, arguments: dict[str, Any], **headers: str) -> dict[str, Any]:
    status, answer, _ = post(served, rpc("tools/call", name=name, arguments=arguments), **headers)
    assert status == 200, answer
    return answer["result"]


@pytest.mark.parametrize("options", [{}, {"mode": "legacy"}], ids=["auto", "legacy"])
def test_the_official_client_lists_and_calls_the_tools(served: Served, options: dict[str, Any]) -> None:
    async def work(client: Client) -> None:
        listed = (await client.list_tools()).tools
        assert {tool.name for tool in listed} == TOOLS
        for tool in listed:
            assert tool.description
            assert tool.annotations is not None
            assert tool.output_schema is not None
            jsonschema.Draft202012Validator.check_schema(tool.input_schema)
            jsonschema.Draft202012Validator.check_schema(tool.output_schema)
        page = {"path": "notes/mcp.md", "body": "# Quokka\n\nQuokkas smile.", "project": "mcp"}
        written = await client.call_tool("memory_write_page", page)
        assert not written.is_error, written
        found = await client.call_tool("memory_query", {"q": "quokka", "project": "mcp"})
        assert found.structured_content["hits"][0]["path"] == "notes/mcp.md"
        assert json.loads(found.content[0].text) == found.structured_content

    with_client(served, work, **options)


def test_auto_speaks_the_newest_revision_and_legacy_the_newest_of_its_era(served: Served) -> None:
    async def version(client: Client) -> str:
        return client.protocol_version

    assert with_client(served, version) == MODERN
    assert with_client(served, version, mode="legacy") == LEGACY


def test_answers_fit_their_output_schema(served: Served) -> None:
    tools = {tool["name"]: tool for tool in post(served, rpc("tools/list"))[1]["result"]["tools"]}
    calls: dict[str, dict[str, Any]] = {
        "memory_write_page": {"path": "a.md", "body": "# A\n\nalpha", "project": "schema"},
        "memory_query": {"query": "alpha", "project": "schema"},
        "memory_recent": {"project": "schema"},
        "memory_status": {},
        "memory_briefing": {"project": "schema"},
        "memory_explore": {"project": "schema", "focus": "alpha"},
        "memory_feedback": {"path": "a.md", "signal": "stale", "project": "schema"},
        "memory_read_page": {"path": "a.md", "project": "schema"},
        "memory_handoff_begin": {"summary": "go on", "project": "schema"},
        "memory_handoff_accept": {"project": "schema"},
        "memory_delete_page": {"path": "a.md", "project": "schema"},
    }
    for name, arguments in calls.items():
        result = call(served, name, arguments)
        assert not result.get("isError"), result
        jsonschema.validate(result["structuredContent"], tools[name]["outputSchema"])
    reads = {name for name, tool in tools.items() if tool["annotations"]["readOnlyHint"]}
    assert reads == {
        "memory_briefing", "memory_explore", "memory_query", "memory_read_page", "memory_read_session_observations",
        "memory_recent", "memory_status",
    }  # fmt: skip


@pytest.mark.parametrize("offered", ["2025-03-26", "2025-06-18", "2025-11-25", "1999-01-01"])
def test_a_version_is_negotiated(served: Served, offered: str) -> None:
    body = rpc(
        "initialize", protocolVersion=offered, capabilities={}, clientInfo={"name": "t", "version": "1"}
    )
    status, answer, headers = post(served, body)
    assert status == 200
    assert answer["result"]["protocolVersion"] == (offered if offered != "1999-01-01" else LEGACY)
    assert "recorded data" in answer["result"]["instructions"]
    assert "mcp-session-id" not in headers


@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25"])
def test_requests_stand_alone_whatever_session_id_they_carry(served: Served, version: str) -> None:
    headers = {"MCP_Protocol_Version": version, "Mcp_Session_Id": "of-another-process"}
    status, answer, _ = post(served, rpc("tools/list"), **headers)
    assert status == 200
    assert {tool["name"] for tool in answer["result"]["tools"]} == TOOLS


def test_an_unknown_session_is_no_project_and_says_so(served: Served) -> None:
    result = call(served, "memory_query", {"query": "anything"}, Mcp_Session_Id="never-seen")
    assert result["isError"]
    assert "scope unknown" in result["content"][0]["text"]


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"query": 5, "limit": "many"},
        {"query": "x", "wrong": 1},
        {"query": ["x"], "q": "y"},
        {"query": {}},
    ],
    ids=str,
)
def test_wrong_arguments_are_explained_in_the_result(served: Served, arguments: dict[str, Any]) -> None:
    result = call(served, "memory_query", arguments)
    assert result["isError"]
    told = json.loads(result["content"][0]["text"])
    assert told["code"] in ("invalid", "not_found")
    assert "memory_query" in told["error"] or "scope" in told["error"]


@pytest.mark.parametrize(
    "query",
    ['"', "'", "(", ")", "a AND", "NOT", "NEAR(", "col:x", "*", "^", "-", "a\x00b", "%" * 900, "(a+)+$", "😀", "half \ud83d", "", " ", "x" * 999],
    ids=lambda text: repr(text[:10]),
)  # fmt: skip
def test_no_query_text_raises(served: Served, query: str) -> None:
    call(served, "memory_write_page", {"path": "q.md", "body": "# Q\n\nquery", "project": "odd"})
    result = call(served, "memory_query", {"query": query, "project": "odd"})
    assert "expected" not in json.dumps(result) or result.get("isError")
    assert "internal" not in result["content"][0]["text"]


def test_a_tool_that_is_not_there_is_named_among_those_that_are(served: Served) -> None:
    _, answer, _ = post(served, rpc("tools/call", name="memory_forget", arguments={}))
    assert answer["error"]["code"] == -32602
    assert "memory_query" in answer["error"]["message"]


@pytest.mark.parametrize(
    "body", [[rpc("tools/list")], b"{", b"", b'"x"', b"[" * 100_000], ids=lambda b: repr(b)[:12]
)
def test_a_batch_and_what_is_no_request_are_refused(served: Served, body: Any) -> None:
    for headers in ({}, {"MCP_Protocol_Version": MODERN}):
        status, answer, _ = post(served, body, **headers)
        assert status == 400
        assert "error" in answer


def test_a_notification_is_taken_without_an_answer(served: Served) -> None:
    body = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert post(served, body)[:2] == (202, b"")


def test_headers_and_body_must_agree_in_the_newest_revision(served: Served) -> None:
    headers = {"MCP_Protocol_Version": MODERN, "Mcp_Method": "tools/list"}
    status, answer, _ = post(served, rpc("tools/call", MODERN, name="memory_status", arguments={}), **headers)
    assert (status, answer["error"]["code"]) == (400, -32020)
    newer = rpc("tools/list", MODERN)
    newer["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = "2031-01-01"
    status, answer, _ = post(served, newer, MCP_Protocol_Version="2031-01-01", Mcp_Method="tools/list")
    assert (status, answer["error"]["code"]) == (400, -32022)
    status, answer, _ = post(
        served, rpc("no/such", MODERN), MCP_Protocol_Version=MODERN, Mcp_Method="no/such"
    )
    assert (status, answer["error"]["code"]) == (404, -32601)


def test_lists_of_the_newest_revision_say_how_long_they_hold(served: Served) -> None:
    headers = {"MCP_Protocol_Version": MODERN, "Mcp_Method": "tools/list"}
    result = post(served, rpc("tools/list", MODERN), **headers)[1]["result"]
    assert result["ttlMs"] > 0
    assert result["cacheScope"] == "private"


def test_a_client_that_takes_streams_only_gets_the_answer_as_one_event(served: Served) -> None:
    status, text, headers = post(served, rpc("tools/list"), Accept="text/event-stream")
    assert status == 200
    assert headers["content-type"].startswith("text/event-stream")
    event, _, data = text.decode().strip().partition("\n")
    assert event == "event: message"
    assert json.loads(data.removeprefix("data: "))["result"]["tools"]


def test_a_notification_is_answered_with_nothing_also_to_such_a_client(served: Served) -> None:
    note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    status, text, _ = post(served, note, Accept="text/event-stream")
    assert (status, text) == (202, b"")


@pytest.mark.parametrize("accept", ["", "*/*", "application/json"])
def test_other_clients_get_json(served: Served, accept: str) -> None:
    assert post(served, rpc("tools/list"), Accept=accept)[2]["content-type"].startswith("application/json")


def test_fifty_calls_at_once_are_all_answered(served: Served) -> None:
    with ThreadPoolExecutor(50) as pool:
        results = list(pool.map(lambda _: call(served, "memory_status", {}), range(50)))
    assert all(not result.get("isError") for result in results)


def test_foreign_pages_and_strangers_learn_nothing(served: Served) -> None:
    assert post(served, rpc("tools/list"), Origin="https://evil.test")[0] == 403
    assert post(served, rpc("tools/list"), Origin="null")[0] == 403
    status, answer, _ = post(served, rpc("tools/list"), Authorization="Bearer nobody")
    assert status == 401
    assert "tools" not in json.dumps(answer)
