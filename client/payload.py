"""What the shim makes of a hook's standard input: a JSON object that is safe to keep, and the hook URL's query.

Light: standard library only, no I/O.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from memory_core import limits

_BOM = b"\xef\xbb\xbf"
_UNSTORABLE = re.compile("[\ud800-\udfff\x00]")
_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
#: The body of an entry lies two levels deep in the batch that carries it.
_DEPTH_MAX = limits.JSON_DEPTH_MAX - 8
_SESSION_FIELDS = (
    "session_id",
    "sessionId",
    "sessionID",
    "conversationId",
    "conversation_id",
    "taskId",
    "session",
)
_SESSION_VARIABLES = ("CLAUDE_CODE_SESSION_ID", "GEMINI_SESSION_ID", "GROK_SESSION_ID", "CRUSH_SESSION_ID")
_DIRECTORY_FIELDS = ("cwd", "working_dir", "workspaceRoot")
#: Lists of the folders that are open, the first being the one that counts.
_DIRECTORY_LISTS = ("workspace_roots", "workspaceRoots", "workspacePaths")
_DIRECTORY_VARIABLES = ("CURSOR_PROJECT_DIR", "GEMINI_CWD", "GEMINI_PROJECT_DIR")


class Unreadable(Exception):
    """The standard input is no JSON object."""


def parse(data: bytes) -> dict[str, object]:
    """The object on standard input; one byte order mark is tolerated. Raises `Unreadable` with the reason."""
    if len(data) > limits.HOOK_STDIN_MAX_BYTES:
        raise Unreadable(f"longer than {limits.HOOK_STDIN_MAX_BYTES} bytes")
    text = data.removeprefix(_BOM).decode("utf-8", "replace")
    try:
        value = json.loads(text, parse_constant=lambda _: None)
    except RecursionError:
        raise Unreadable("nested too deeply") from None
    except ValueError:
        raise Unreadable("not JSON") from None
    if not isinstance(value, dict):
        raise Unreadable("not a JSON object")
    return value


def pruned(value: object, depth: int = 0) -> object:
    """`value` without what cannot be stored: lone surrogates, NUL, nesting beyond what the server takes."""
    if isinstance(value, str):
        return _UNSTORABLE.sub("�", value)
    if isinstance(value, dict | list) and depth >= _DEPTH_MAX:
        return "…"
    if isinstance(value, dict):
        return {_UNSTORABLE.sub("�", str(k)): pruned(v, depth + 1) for k, v in value.items()}
    if isinstance(value, list):
        return [pruned(item, depth + 1) for item in value]
    if isinstance(value, float) and not -1.8e308 < value < 1.8e308:  # 1e999 is read as infinity
        return None
    return value


def fitted(value: object) -> object:
    """A redacted `value` in at most the size of one entry: long texts are cut, only then more."""
    for field_max in (limits.SHIM_FIELD_MAX_BYTES, 16 * limits.KIB, 2 * limits.KIB, 256):
        value = _mapped(value, lambda text, most=field_max: cut(text, most))
        if len(json.dumps(value)) <= limits.SPOOL_ENTRY_MAX_BYTES:
            return value
    if isinstance(value, dict):  # thousands of small fields: keep the plain ones, which hold who and what
        plain = {k: v for k, v in value.items() if not isinstance(v, dict | list)}
        if len(json.dumps(plain)) <= limits.SPOOL_ENTRY_MAX_BYTES:
            return plain
    raise Unreadable("too large to keep")


def cut(text: str, max_bytes: int) -> str:
    """`text` in at most `max_bytes` of UTF-8, with an ellipsis where it was cut."""
    if len(text) * 4 <= max_bytes:
        return text
    data = text.encode("utf-8", "replace")
    return text if len(data) <= max_bytes else data[: max_bytes - 3].decode("utf-8", "ignore") + "…"


def _mapped(value: object, change: Callable[[str], str]) -> object:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {key: _mapped(item, change) for key, item in value.items()}
    if isinstance(value, list):
        return [_mapped(item, change) for item in value]
    return value


def session_of(payload: dict[str, object], environ: dict[str, str]) -> str:
    """The vendor's session id, or empty text."""
    for name in _SESSION_FIELDS:
        value = payload.get(name)
        if isinstance(value, str) and value.strip():
            return value.strip()
    return next((environ[name] for name in _SESSION_VARIABLES if environ.get(name)), "")


def directory_of(payload: dict[str, object], environ: dict[str, str]) -> str:
    """Where the session works, by payload or environment, or empty text.

    Not every client runs its hooks there: a hook of Cursor's user file runs in `~/.cursor`.
    """
    for name in _DIRECTORY_FIELDS:
        value = payload.get(name)
        if isinstance(value, str) and value:
            return value.rstrip("/") or "/"
    for name in _DIRECTORY_LISTS:
        listed = payload.get(name)
        if isinstance(listed, list) and listed and isinstance(listed[0], str) and listed[0]:
            return listed[0]
    return next((environ[name] for name in _DIRECTORY_VARIABLES if environ.get(name)), "")


def query(fields: dict[str, str]) -> str:
    """The URL query of those fields that are not empty."""
    return "&".join(f"{name}={_quoted(value)}" for name, value in fields.items() if value)


def _quoted(text: str) -> str:
    return "".join(
        chr(byte) if byte in _UNRESERVED else f"%{byte:02X}" for byte in text.encode("utf-8", "replace")
    )
