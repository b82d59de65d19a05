"""mcp-memory-service by its own MCP server, so that it can be asked what memoryd is asked: each document one memory."""

from __future__ import annotations

import os
import re
import shlex
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from scripts.recall_bench.sets import LabelledSet

#: Its ways of searching; the first is the one that an agent gets that names none.
MODES = ("semantic", "hybrid", "exact")
_HASH = re.compile(r"\b[0-9a-f]{64}\b")
_CALL_SECONDS = 120.0
#: Asks in a way, a scope, for so many: ids of documents, best first.
AskPeer = Callable[[str, str, str, int], list[str]]


@contextmanager
def opened(labelled: LabelledSet, command: str) -> Generator[AskPeer]:
    """`command` starts the server on standard input and output. It keeps its database in a directory that goes.

    A memory carries its speaker in the text and its scope as a tag; a conversation is named, so that near twins are kept.
    Raises `RuntimeError` with the server's words when it refuses a memory that is no twin.
    """
    program, *arguments = shlex.split(command)
    refused: RuntimeError | None = None
    with tempfile.TemporaryDirectory() as scratch, start_blocking_portal() as portal:
        server = StdioServerParameters(
            command=program,
            args=arguments,
            env=os.environ | {"MCP_MEMORY_SQLITE_PATH": f"{scratch}/memory.db"},
        )
        with (
            open(os.devnull, "w") as silent,
            portal.wrap_async_context_manager(stdio_client(server, errlog=silent)) as (reading, writing),
            portal.wrap_async_context_manager(ClientSession(reading, writing)) as session,
        ):
            portal.call(session.initialize)
            try:
                documents = _stored(portal, session, labelled)
            except RuntimeError as error:
                refused = error
            else:
                yield _asking(portal, session, documents)
    if refused is not None:
        # Raised in there it would come out as a group of what every task of the connection thinks of it.
        raise refused


def _stored(portal: BlockingPortal, session: ClientSession, labelled: LabelledSet) -> dict[str, str]:
    """The document of each memory's hash."""
    documents: dict[str, str] = {}
    for document in labelled.documents:
        told = _call(
            portal,
            session,
            "memory_store",
            content=f"{document['speaker']}: {document['text']}" if document["speaker"] else document["text"],
            conversation_id=document["session"],
            metadata={"tags": [document["scope"]]},
        )
        found = _HASH.search(told)
        if found:
            documents[found[0]] = document["id"]
        elif "uplicate" not in told:
            raise RuntimeError(f"the other server did not store {document['id']}: {told[:300]}")
    return documents


def _asking(portal: BlockingPortal, session: ClientSession, documents: dict[str, str]) -> AskPeer:
    def ask(mode: str, text: str, scope: str, limit: int) -> list[str]:
        told = _call(portal, session, "memory_search", query=text, mode=mode, tags=[scope], limit=limit)
        return [documents[one] for one in _HASH.findall(told) if one in documents]

    return ask


def _call(portal: BlockingPortal, session: ClientSession, name: str, **arguments: Any) -> str:
    async def call() -> str:
        answer = await session.call_tool(name, arguments, read_timeout_seconds=_CALL_SECONDS)
        return "\n".join(getattr(part, "text", "") for part in answer.content)

    return portal.call(call)
