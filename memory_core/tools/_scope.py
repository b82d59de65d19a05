"""Who asks, for the tools."""

from __future__ import annotations

from memory_core.ids import id_text
from memory_core.recall.scope import Asker
from memory_core.tools import ToolContext


def asker(context: ToolContext) -> Asker:
    return Asker(principal=context.principal, session_id=context.session_id, directory=context.directory)


def session_text(context: ToolContext) -> str | None:
    return None if context.session_id is None else id_text(context.session_id)
