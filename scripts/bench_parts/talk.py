"""One client that keeps its connection, as agents' clients do: hooks, tools over HTTP, tools over MCP."""

from __future__ import annotations

import http.client
import json
from typing import Any

from tests.e2e.running import Running

_REVISION = "2025-11-25"


class Talk:
    """Raises `ValueError` with the answer for any status but those that are asked for."""

    def __init__(self, memoryd: Running) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", memoryd.port, timeout=30)
        self._headers = {
            "Authorization": f"Bearer {memoryd.token}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }

    def __enter__(self) -> Talk:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def hook(self, path: str, payload: dict[str, Any]) -> None:
        self._post(path, payload, 202)

    def tool(self, name: str, **arguments: Any) -> dict[str, Any]:
        """A tool over plain HTTP; its answer."""
        return self._post(f"/api/v1/tools/{name}", arguments, 200)

    def mcp_tool(self, name: str, **arguments: Any) -> dict[str, Any]:
        """A tool over MCP; its structured answer."""
        call = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": name, "arguments": arguments},
        }
        answer = self._post("/mcp", call, 200, {"MCP-Protocol-Version": _REVISION})
        result = answer.get("result")
        if result is None or result.get("isError"):
            raise ValueError(f"{name} over MCP: {answer}")
        return result["structuredContent"]

    def post(self, path: str) -> Any:
        """A request that says everything in its path."""
        return self._post(path, {}, 200)

    def _post(self, path: str, body: Any, status: int, more: dict[str, str] | None = None) -> Any:
        self._connection.request("POST", path, json.dumps(body).encode(), {**self._headers, **(more or {})})
        response = self._connection.getresponse()
        raw = response.read()
        if response.status != status:
            raise ValueError(f"{path}: {response.status} {raw[:500]!r}")
        return json.loads(raw)
