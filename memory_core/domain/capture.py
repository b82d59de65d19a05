"""What is kept of a hook event: sizes, the line it is listed under, and what makes two deliveries one event.

`capped` runs after redaction: a secret that was cut at a limit first would not be recognised.
"""

from __future__ import annotations

import hashlib

from memory_core import limits
from memory_core.clock import MICROSECONDS
from memory_core.domain.event import IMPORTANCE, EventKind, HookEvent, Outcome, Speaker, ToolCall, changed
from memory_core.domain.search_words import words_of_unspaced, words_said

_ELLIPSIS = "…"
_DAY_US = 24 * 60 * 60 * MICROSECONDS
_BODY_MAX_BYTES: dict[EventKind, int] = {
    EventKind.USER_PROMPT: limits.PROMPT_MAX_BYTES,
    EventKind.POST_COMPACTION: limits.SUMMARY_MAX_BYTES,
    EventKind.STOP: limits.ASSISTANT_MAX_BYTES,
    EventKind.NOTIFICATION: limits.NOTIFICATION_MAX_BYTES,
    EventKind.OTHER: limits.EXTENSION_BODY_MAX_BYTES,
    EventKind.PRE_TOOL_USE: limits.TOOL_OUTCOME_MAX_BYTES,
    EventKind.POST_TOOL_USE: limits.TOOL_OUTCOME_MAX_BYTES,
}


def capped(event: HookEvent) -> HookEvent:
    """The event with every text storable and within its limit, and with a title. Idempotent.

    Cuts are at characters, leave room for the ellipsis, and are measured in bytes of UTF-8 where the
    limit is. Kinds that carry no text of their own keep no body.
    """
    body = cut_bytes(event.body, _BODY_MAX_BYTES.get(event.kind, 0))
    event = changed(
        event,
        source_event=_word(event.source_event, limits.SOURCE_EVENT_MAX_CHARS) or event.kind.value,
        session_key=session_key(event.session_key),
        cwd=_path(event.cwd),
        body=body,
        tool=_capped_tool(event.tool) if event.tool else None,
        speaker_name=_optional(event.speaker_name, limits.SPEAKER_NAME_MAX_CHARS),
        model=_optional(event.model),
        unique_id=_optional(event.unique_id),
        agent_id=_optional(event.agent_id),
        agent_type=_optional(event.agent_type),
        reason=_optional(event.reason),
        transcript_path=_path(event.transcript_path),
        extension=_optional(event.extension, limits.EXTENSION_MAX_CHARS),
    )
    return changed(event, title=title_of(event))


def title_of(event: HookEvent) -> str:
    """The line that the event is listed under, at most 80 characters.

    What its adapter chose, else the first line of what was said, else tool and argument, else the
    model at a start, else the kind's name.
    """
    for candidate in (event.title, _tool_line(event.tool), _text_line(event), event.kind.value):
        if line := first_line(candidate):
            return cut_chars(line, limits.TITLE_MAX_CHARS)
    return event.kind.value


def importance(event: HookEvent) -> int:
    """1 to 10."""
    return IMPORTANCE[event.kind]


def search_words(event: HookEvent) -> str | None:
    """What the event is indexed by beside its texts; None for most."""
    if event.body and event.speaker in (Speaker.USER, Speaker.AGENT):
        return words_said(event.body)
    tool = event.tool
    return words_of_unspaced(event.title, event.body, *((tool.command, tool.result) if tool else ()))


def twin_hash(event: HookEvent) -> bytes:
    """16 bytes that two deliveries of one event share: everything the vendor said, without times.

    Two hook configurations of one client read the same payload, yet not at the same moment.
    """
    tool = event.tool
    parts = [
        event.kind.value,
        event.source_event,
        event.session_key,
        event.unique_id,
        event.agent_id,
        event.title,
        event.body,
        event.reason,
        event.extension,
    ]
    if tool is not None:
        parts += [tool.name, tool.call_id, tool.command, *tool.paths, tool.outcome.value, tool.result]
    if event.speaker_name is not None:
        parts.append(event.speaker_name)
    pieces: list[bytes] = []
    for part in parts:
        data = b"" if part is None else part.encode("utf-8", "replace")
        pieces += (b"%d:" % (-1 if part is None else len(data)), data)
    # In one go: a call per part took twice as long, for each event that the writer applies.
    return hashlib.blake2b(b"".join(pieces), digest_size=16).digest()


def moment_of(occurred_at: int | None, recorded_at: int) -> int:
    """When it happened, UTC microseconds: the client's word if it can be true, else when we heard of it."""
    earliest = recorded_at - limits.OCCURRED_EARLIER_MAX_DAYS * _DAY_US
    latest = recorded_at + limits.OCCURRED_LATER_MAX_SECONDS * MICROSECONDS
    return occurred_at if occurred_at is not None and earliest <= occurred_at <= latest else recorded_at


def is_twin(
    *,
    source: str,
    occurred_at: int | None,
    recorded_at: int,
    earlier_source: str,
    earlier_occurred_at: int | None,
    earlier_recorded_at: int,
) -> bool:
    """Whether two events of equal `twin_hash` are one event that two sources sent (times in UTC microseconds).

    The client's times decide where both have one, because spools are emptied late. One source that
    says the same thing twice said it twice.
    """
    if source == earlier_source:
        return False
    if occurred_at is not None and earlier_occurred_at is not None:
        apart = abs(occurred_at - earlier_occurred_at)
    else:
        apart = abs(recorded_at - earlier_recorded_at)
    return apart <= limits.TWIN_EVENT_SECONDS * MICROSECONDS


def cut_bytes(text: str, max_bytes: int) -> str:
    """`text` in at most `max_bytes` bytes of UTF-8, never inside a character, `…` where something is gone."""
    if len(text) <= max_bytes and _is_plain(text):
        return text
    data = text.replace("\x00", "�").encode("utf-8", "replace")
    if len(data) <= max_bytes:
        return data.decode()
    room = max_bytes - len(_ELLIPSIS.encode())
    return data[:room].decode(errors="ignore") + _ELLIPSIS if room >= 0 else ""


def cut_chars(text: str, max_chars: int) -> str:
    return text if len(text) <= max_chars else text[: max_chars - 1].rstrip() + _ELLIPSIS


def first_line(text: str) -> str:
    """The first line that holds something, white space folded to single spaces."""
    line = next((line for line in text.splitlines() if line.strip()), "")
    return " ".join(_storable(line).split())


def _capped_tool(tool: ToolCall) -> ToolCall:
    return changed(
        tool,
        name=_word(tool.name, limits.TOOL_NAME_MAX_CHARS) or "unknown",
        family=_word(tool.family, limits.TOOL_NAME_MAX_CHARS) or "unknown",
        call_id=_optional(tool.call_id),
        command=None if tool.command is None else cut_bytes(tool.command, limits.TOOL_COMMAND_MAX_BYTES),
        paths=_capped_paths(tool.paths),
        result=None if tool.result is None else cut_bytes(tool.result, limits.TOOL_OUTCOME_MAX_BYTES),
    )


def _capped_paths(paths: tuple[str, ...]) -> tuple[str, ...]:
    """The first paths that fit: a path that was cut would name another file."""
    kept: list[str] = []
    room = limits.TOOL_PATHS_MAX_BYTES
    for path in (_storable(path) for path in paths[: limits.TOOL_PATHS_MAX]):
        size = len(path.encode())
        if size > min(room, limits.PATH_MAX_BYTES):
            break
        kept.append(path)
        room -= size
    return tuple(kept)


def _tool_line(tool: ToolCall | None) -> str:
    if tool is None:
        return ""
    what = first_line(tool.command or "") or ", ".join(tool.paths[:3])
    failed = " (error)" if tool.outcome is Outcome.ERROR else ""
    return f"{tool.name}: {what}{failed}" if what else f"{tool.name}{failed}"


def _text_line(event: HookEvent) -> str:
    if event.kind is EventKind.SESSION_START:
        return event.model or ""
    return event.body


def _is_plain(text: str) -> bool:
    """Storable as it is, a byte a character: most texts are, and the gate asks it of a dozen per event."""
    return text.isascii() and "\x00" not in text


def _storable(text: str) -> str:
    if _is_plain(text):
        return text
    return text.replace("\x00", "�").encode("utf-8", "replace").decode()


def _word(text: str, max_chars: int) -> str:
    return _storable(text).strip()[:max_chars]


def _optional(text: str | None, max_chars: int = limits.VENDOR_WORD_MAX_CHARS) -> str | None:
    return (_word(text, max_chars) or None) if text is not None else None


def _path(text: str | None) -> str | None:
    """The path, or None for one that is too long: a cut path would be another directory."""
    if text is None or len(text.encode("utf-8", "replace")) > limits.PATH_MAX_BYTES:
        return None
    return _storable(text) or None


def session_key(text: str) -> str:
    """The session's key; of one that is too long, a shorter one that is as distinct."""
    key = _storable(text)
    if len(key) <= limits.SESSION_KEY_MAX_CHARS:
        return key
    digest = hashlib.sha256(key.encode()).hexdigest()
    return f"{key[: limits.SESSION_KEY_MAX_CHARS - len(digest) - 1]}:{digest}"
