"""A memory server of another kind: its MCP tools, over standard input, searching by whole words alone."""

from __future__ import annotations

import hashlib
from typing import Any

from mcp.server import MCPServer

server = MCPServer("other")
kept: dict[str, tuple[str, list[str]]] = {}


@server.tool()
def memory_store(content: str, conversation_id: str, metadata: dict[str, Any]) -> str:
    del conversation_id
    digest = hashlib.sha256(content.encode()).hexdigest()
    if digest in kept:
        return "Duplicate content detected (exact match)"
    if "refuse this" in content:
        return "Out of room"
    kept[digest] = (content, metadata["tags"])
    return f"Memory stored successfully (hash: {digest})"


@server.tool()
def memory_search(query: str, mode: str, tags: list[str], limit: int) -> str:
    words = set(query.lower().split())
    found = [
        digest
        for digest, (content, own) in kept.items()
        if set(own) & set(tags)
        and (query in content if mode == "exact" else words & set(content.lower().split()))
    ]
    return "\n".join(f"Hash: {digest}" for digest in found[:limit])


if __name__ == "__main__":
    server.run("stdio")
