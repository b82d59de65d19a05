"""What tools say, in the form and the size in which it is kept."""

from __future__ import annotations

from typing import Any

from client.durable.tools import ToolError, ToolOutput
from memory_core import limits
from memory_core.domain import audit_event
from memory_core.errors import CoreError

_EMPTY = "(no output)"
_CUT = "\n[cut: the output was {size} bytes]"
_LEFT_OUT = "[left out: the tools of this turn have said all that a turn keeps; this was {size} bytes]"
#: So much of a turn's total is kept for the sentences that stand for results.
_RESERVE_BYTES = 96 * limits.KIB


def said_by(result: Any) -> audit_event.ToolOutput:
    """The output that a tool's result or exception stands for."""
    if isinstance(result, ToolOutput):
        return audit_event.ToolOutput(_storable(result.content), is_error=result.is_error)
    if isinstance(result, str):
        return audit_event.ToolOutput(_storable(result), is_error=False)
    if isinstance(result, ToolError | CoreError):
        return audit_event.ToolOutput(_storable(str(result)), is_error=True)
    if isinstance(result, BaseException):
        text = f"The tool failed: {type(result).__name__}: {result}"
        return audit_event.ToolOutput(_storable(text), is_error=True)
    text = f"The tool returned {type(result).__name__}; tools return text or a ToolOutput."
    return audit_event.ToolOutput(text, is_error=True)


class OutputBudget:
    """What the tools of one turn may still say; longer outputs are cut, and the cut says so."""

    def __init__(self) -> None:
        self._left = limits.TURN_TOOL_OUTPUT_MAX_BYTES - _RESERVE_BYTES

    def fitted(self, output: audit_event.ToolOutput, was_bytes: int) -> audit_event.ToolOutput:
        """A redacted output as it is kept; `was_bytes`: its size before redaction, which looks at so much only."""
        data = output.content.encode()
        most = min(limits.TOOL_OUTPUT_MAX_BYTES, self._left)
        if len(data) > most or was_bytes > limits.FIELD_REDACTED_MAX_BYTES:
            is_whole_left_out = most <= limits.KIB
            mark = (_LEFT_OUT if is_whole_left_out else _CUT).format(size=was_bytes).encode()
            room = 0 if is_whole_left_out else most - len(mark)
            data = data[:room].decode("utf-8", "ignore").encode() + mark
        self._left = max(0, self._left - len(data))
        return audit_event.ToolOutput(data.decode(), is_error=output.is_error)


def _storable(text: str) -> str:
    """Never empty, and without what no database keeps: half characters and NUL."""
    return text.encode("utf-8", "replace").decode().replace("\0", "�") or _EMPTY
