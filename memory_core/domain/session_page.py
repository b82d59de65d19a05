"""What a session leaves behind, made by rule: its page and the automatic handoff. Pure: events in, text out."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from memory_core import limits
from memory_core.clock import MICROSECONDS, rfc3339
from memory_core.domain.capture import cut_chars, first_line
from memory_core.domain.event import EventKind, Outcome
from memory_core.domain.handoff import Draft, capped
from memory_core.domain.recalled import escape
from memory_core.domain.tool_input import changes_files
from memory_core.ids import id_text

_SLUG_MAX_CHARS = 48
_ANSWERS_SHOWN = 5
_FAILURES_SHOWN = 5
_HANDOFF_PROMPT_MAX_CHARS = 900
_HANDOFF_ANSWER_MAX_CHARS = 1_000
_UNTITLED = "session"
_CUT = "\n\n*Cut here: a page has its limit.*\n"


@dataclass(frozen=True, kw_only=True)
class SessionFacts:
    """Of the session's row; times are UTC microseconds."""

    id: bytes
    agent: str
    started_at: int
    observation_count: int
    model: str | None = None
    cwd: str | None = None
    title: str | None = None
    ended_at: int | None = None
    end_reason: str | None = None


@dataclass(frozen=True, kw_only=True)
class Observed:
    """One observation as far as the page needs it; `at` is UTC microseconds."""

    kind: EventKind
    title: str
    at: int
    body: str = ""
    tool: str | None = None
    tool_family: str | None = None
    command: str | None = None
    paths: tuple[str, ...] = ()
    outcome: Outcome = Outcome.UNKNOWN
    agent_id: str | None = None


@dataclass(frozen=True, kw_only=True)
class SessionPage:
    title: str
    body: str
    front_matter: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class _Extent:
    """How much of what was said a page shows: characters of one prompt or answer, and lines of one list."""

    text_chars: int = limits.SESSION_PAGE_TEXT_MAX_CHARS
    entries: int = limits.SESSION_PAGE_OBSERVATIONS_MAX


#: From all to what always fits: first every text gets shorter, then what is oldest is left out.
_EXTENTS: Final = (
    _Extent(),
    _Extent(text_chars=600),
    _Extent(text_chars=240),
    _Extent(text_chars=120),
    _Extent(text_chars=120, entries=64),
    _Extent(text_chars=120, entries=16),
)


def build(
    facts: SessionFacts, observed: Sequence[Observed], *, max_bytes: int = limits.SESSION_PAGE_MAX_BYTES
) -> SessionPage:
    """The page of a session from (a bounded choice of) its observations, in their order. The same input gives the
    same text. What would be longer than `max_bytes` of UTF-8 is shortened, and says so."""
    title, body = title_of(facts, observed), ""
    for extent in _EXTENTS:
        body = _body(facts, title, observed, extent)
        if len(body.encode()) <= max_bytes:
            break
    return SessionPage(title=title, body=_cut_bytes(body, max_bytes), front_matter=_front_matter(facts))


def _body(facts: SessionFacts, title: str, observed: Sequence[Observed], extent: _Extent) -> str:
    chars = extent.text_chars
    sections = [
        f"# {_inline(title)}",
        _facts(facts, len(observed)),
        _shortened(extent),
        _section("Prompts", _numbered(_prompts(observed), extent)),
        _section("Answers", _quotes(_answers(observed)[-_ANSWERS_SHOWN:], chars)),
        _section(
            "Summaries of the agent", _quotes(_of_kind(observed, EventKind.POST_COMPACTION)[-2:], chars)
        ),
        _section("Tool calls", _tool_counts(observed)[: extent.entries]),
        _section(
            "Files touched", [f"- `{_code(path)}`" for path in files_touched(observed)[: extent.entries]]
        ),
        _section("Events", [_event_line(each) for each in observed[-extent.entries :]]),
        "*Made by rule from captured events, without a model.*",
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def path_of(facts: SessionFacts, title: str) -> str:
    """`sessions/<day it began>-<words of the title>-<8 hex digits>.md`.

    The digits are the last of the id: those at its front are the time in ids that are made in order, equal for all
    sessions of a minute.
    """
    day = datetime.fromtimestamp(facts.started_at / MICROSECONDS, tz=UTC).strftime("%Y-%m-%d")
    return f"sessions/{day}-{_slug(title)}-{facts.id.hex()[-8:]}.md"


def title_of(facts: SessionFacts, observed: Sequence[Observed]) -> str:
    """The first prompt's line, else the first line that says more than the name of its kind."""
    prompts = _prompts(observed)
    found = facts.title or (prompts[0].title if prompts else "")
    telling = (each.title for each in observed if each.title and each.title != each.kind.value)
    return found or next(telling, _UNTITLED)


def automatic_draft(facts: SessionFacts, observed: Sequence[Observed]) -> Draft:
    """What the next session should know of this one."""
    prompts, answers = _prompts(observed), _answers(observed)
    lines: list[str] = []
    if prompts:
        first = _text(prompts[0], _HANDOFF_PROMPT_MAX_CHARS)
        lines.append(f"Focused on: {first}" if len(prompts) == 1 else f"Began with: {first}")
    if len(prompts) > 1:
        lines.append(f"Last prompt: {_text(prompts[-1], _HANDOFF_PROMPT_MAX_CHARS)}")
    if answers:
        lines.append(f"Last answer: {_text(answers[-1], _HANDOFF_ANSWER_MAX_CHARS)}")
    if not lines:
        lines.append(f"{title_of(facts, observed)} ({facts.observation_count} events, no prompt among them)")
    return capped(
        Draft(
            summary="\n\n".join(lines),
            open_questions=(f"Continue from: {prompts[-1].title}",) if prompts else (),
            next_steps=tuple(f"Failed at last: {command}" for command in _still_failing(observed)),
            files_touched=files_touched(observed),
            from_agent=facts.agent,
            model=facts.model,
        )
    )


def files_touched(observed: Sequence[Observed]) -> tuple[str, ...]:
    """Files that a tool changed, the latest first, each once."""
    found: dict[str, None] = {}
    for each in reversed(observed):
        if (
            each.kind is EventKind.POST_TOOL_USE
            and each.tool_family == "file"
            and changes_files(each.tool or "")
        ):
            found.update(dict.fromkeys(each.paths))
    return tuple(found)[: limits.HANDOFF_ITEMS_MAX]


def _still_failing(observed: Sequence[Observed]) -> list[str]:
    """Commands whose last run failed, the latest first."""
    last: dict[str, Outcome] = {}
    for each in reversed(observed):
        if each.kind is EventKind.POST_TOOL_USE and each.command:
            last.setdefault(first_line(each.command), each.outcome)
    failing = [command for command, outcome in last.items() if outcome is Outcome.ERROR]
    return failing[:_FAILURES_SHOWN]


def _prompts(observed: Sequence[Observed]) -> list[Observed]:
    return _of_kind(observed, EventKind.USER_PROMPT)


def _answers(observed: Sequence[Observed]) -> list[Observed]:
    return [each for each in _of_kind(observed, EventKind.STOP) if each.body.strip()]


def _of_kind(observed: Sequence[Observed], kind: EventKind) -> list[Observed]:
    """What the session's own agent or person said; a subagent's words are not theirs."""
    return [each for each in observed if each.kind is kind and each.agent_id is None]


def _facts(facts: SessionFacts, shown: int) -> str:
    lines = [f"- session: {id_text(facts.id)}", f"- agent: {_inline(facts.agent)}"]
    if facts.model:
        lines.append(f"- model: {_inline(facts.model)}")
    if facts.cwd:
        lines.append(f"- directory: `{_code(facts.cwd)}`")
    lines.append(f"- started: {rfc3339(facts.started_at)}")
    if facts.ended_at is not None:
        reason = f" ({_inline(facts.end_reason)})" if facts.end_reason else ""
        lines.append(f"- ended: {rfc3339(facts.ended_at)}{reason}")
    part = f", {shown} of them below" if shown < facts.observation_count else ""
    lines.append(f"- events: {facts.observation_count}{part}")
    return "\n".join(lines)


def _front_matter(facts: SessionFacts) -> dict[str, str]:
    values = {"session": id_text(facts.id), "agent": facts.agent, "started_at": rfc3339(facts.started_at)}
    if facts.ended_at is not None:
        values["ended_at"] = rfc3339(facts.ended_at)
    return values


def _shortened(extent: _Extent) -> str:
    """What a page that would be too long says of itself."""
    if extent == _EXTENTS[0]:
        return ""
    lists = f" and its lists to {extent.entries} lines" if extent.entries < _EXTENTS[0].entries else ""
    return (
        f"*Shortened, because a page has its limit: here texts are cut to {extent.text_chars} characters{lists}."
        " The session itself keeps all of its events.*"
    )


def _cut_bytes(body: str, max_bytes: int) -> str:
    """The last resort, whatever names and paths there are: a page that is cut is better than none."""
    data = body.encode()
    if len(data) <= max_bytes:
        return body
    return data[: max_bytes - len(_CUT)].decode(errors="ignore") + _CUT


def _section(title: str, lines: Sequence[str]) -> str:
    return f"## {title}\n\n" + "\n".join(lines) if lines else ""


def _numbered(prompts: Sequence[Observed], extent: _Extent) -> list[str]:
    """Of too many prompts the first one, which says what the session was for, and the newest."""
    lines: list[str] = []
    left_out = range(2, max(2, len(prompts) - extent.entries + 2))
    for number, prompt in enumerate(prompts, start=1):
        if number in left_out:
            continue
        lines.append(f"{number}. {_inline(prompt.title)}")
        if prompt.body.strip() != prompt.title:
            lines += ["", *(f"   {line}" for line in _quoted(prompt, extent.text_chars)), ""]
    return lines


def _quotes(told: Sequence[Observed], max_chars: int) -> list[str]:
    lines: list[str] = []
    for each in told:
        lines += [*([""] if lines else []), *_quoted(each, max_chars)]
    return lines


def _quoted(each: Observed, max_chars: int) -> list[str]:
    return [f"> {_harmless(line)}".rstrip() for line in _text(each, max_chars).splitlines()]


def _text(each: Observed, max_chars: int) -> str:
    return cut_chars(each.body.strip() or each.title, max_chars)


def _tool_counts(observed: Sequence[Observed]) -> list[str]:
    calls = [each for each in observed if each.kind is EventKind.POST_TOOL_USE]
    counts = Counter(each.tool or each.title for each in calls)
    failed = Counter(each.tool or each.title for each in calls if each.outcome is Outcome.ERROR)
    return [
        f"- {_inline(name)}: {count}" + (f" ({failed[name]} failed)" if failed[name] else "")
        for name, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    ]


def _event_line(each: Observed) -> str:
    by = " (subagent)" if each.agent_id else ""
    return f"- {each.kind.value} @ {rfc3339(each.at)}{by} — {_inline(cut_chars(each.title, limits.TITLE_MAX_CHARS))}"


def _inline(text: str) -> str:
    return _harmless(" ".join(text.split()))


def _harmless(text: str) -> str:
    """Captured text makes no links between pages, no comments and no fences of recalled text."""
    return escape(text).replace("[[", "[ [").replace("<!--", "<! --")


def _code(text: str) -> str:
    return " ".join(text.replace("`", "'").split())


def _slug(title: str) -> str:
    """Letters and digits of any script joined by `-`; what two sessions share is told apart by the id behind it."""
    folded = unicodedata.normalize("NFC", title).casefold()
    kept = "".join(char if unicodedata.category(char)[0] in "LNM" else "-" for char in folded)
    short = re.sub("-+", "-", kept).strip("-").encode()[: 2 * _SLUG_MAX_CHARS].decode(errors="ignore")
    return short[:_SLUG_MAX_CHARS].strip("-") or _UNTITLED
