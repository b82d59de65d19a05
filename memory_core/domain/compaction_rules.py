"""A summary of a transcript without a model: what was asked and what came of it, decisions, what is open, files, results.

Everything in it is a line that somebody or some tool said, shortened, and nothing is concluded. It says that it was made by rule.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from memory_core import limits
from memory_core.domain.capture import cut_bytes, cut_chars, first_line
from memory_core.domain.excerpt import Excerpt, Voice
from memory_core.domain.statements import (
    is_constraint,
    is_decision,
    is_open,
    is_preference,
    is_question,
    sentences,
    shortened,
)
from memory_core.domain.tool_input import changes_files, family_of

MADE_BY_RULE: Final = "Made by rule from the transcript, without a model."
_LINE_MAX_CHARS: Final = 300
_PATHS_MAX: Final = 40
_EARLIER: Final = "Earlier summary"
#: What ends a run of tests or a build, and what git says of a commit.
_TELLING = re.compile(
    r"\b\d{1,9} (?:passed|failed|failures?|errors?|tests?|warnings?)\b|\b(?:BUILD|TESTS?) (?:SUCCESSFUL|FAILED|PASSED)\b"
    r"|\A\[[\w./-]{1,100}(?: \([\w-]{1,40}\))? [0-9a-f]{7,40}\] |\A(?:FAILED|error|Error|fatal|panicked)\b[: ]"
    r"|\A\w{1,60}(?:Error|Exception): ",
)
_URL = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]{0,20}://\S*")
_APART = re.compile(r"[\s、。，；：「」『』（）【】]+")
_AROUND = "\"'`()[]{}<>,;:!?*|="
_KNOWN_END = re.compile(
    r"\.(?:py|pyi|js|jsx|ts|tsx|mjs|vue|svelte|md|rst|txt|toml|json|ya?ml|ini|cfg|conf|env|lock|go|rs|c|h|cc|cpp|hpp|cs|java|kt|"
    r"swift|rb|php|pl|lua|ex|exs|erl|hs|ml|scala|sh|bash|zsh|fish|ps1|sql|html?|css|scss|xml|svg|proto|tf|gradle|ipynb|csv)\Z"
)
_PATH_MAX_CHARS: Final = 200


@dataclass(frozen=True, kw_only=True)
class _Section:
    title: str
    #: In the order in which they are told.
    lines: Sequence[str]
    #: Of a hundred parts of the room.
    share: int
    #: The first lines say most. Otherwise the last ones stay where not all fit, and the very first.
    is_ranked: bool = False


def summarise(excerpts: Sequence[Excerpt], max_bytes: int) -> str:
    """A Markdown text of at most `max_bytes` (at least `SUMMARY_BY_RULE_MIN_BYTES`); the same input gives the same text."""
    sections = (
        _Section(title="Asked and done", lines=_asked(excerpts), share=35),
        _Section(title="Decisions and constraints", lines=_decisions(excerpts), share=25),
        _Section(title="Open", lines=_open(excerpts), share=10),
        _Section(title="Files", lines=_files(excerpts), share=10, is_ranked=True),
        _Section(title="Tool results", lines=_results(excerpts), share=20),
    )
    earlier = next((each.text for each in excerpts if each.voice is Voice.SUMMARY), "")
    room = max_bytes - len(MADE_BY_RULE.encode()) - 2
    # What an earlier summary says is told once more, and each time less of it.
    whole = room if not earlier else room * 2 // 3
    parts, carried = [MADE_BY_RULE], 0
    for section in sections:
        most = whole * section.share // 100 + carried
        text = _rendered(section, most)
        carried = most - len(text.encode()) - 2
        if text:
            parts.append(text)
    left = room - sum(len(part.encode()) + 2 for part in parts[1:])
    if earlier and (told := _earlier(earlier, left)):
        parts.append(told)
    return "\n\n".join(parts)


def room_bytes(size_bytes: int) -> int:
    """How long a summary by rule may be that stands for so many bytes."""
    return min(max(size_bytes // 4, limits.SUMMARY_BY_RULE_MIN_BYTES), limits.SUMMARY_BY_RULE_MAX_BYTES)


def paths_in(text: str) -> Iterator[str]:
    """What looks like the path of a file or directory in a text."""
    for word in _APART.split(_URL.sub(" ", text)):
        if len(word) > _PATH_MAX_CHARS:
            continue
        path = word.strip(_AROUND).rstrip(".").rstrip("/")
        if _is_path(path):
            yield path


def _is_path(path: str) -> bool:
    if "/" not in path:
        return len(path) > 3 and _KNOWN_END.search(path) is not None and path[0].isalnum()
    if any(char in path for char in '"`(){}<>$\\') or not any(char.isalpha() for char in path):
        return False
    return (
        path.startswith(("/", "./", "../", "~/"))
        or _KNOWN_END.search(path) is not None
        or path.count("/") > 1
    )


def _asked(excerpts: Sequence[Excerpt]) -> list[str]:
    """Each prompt, with the beginning of the last thing that was answered to it."""
    lines: list[str] = []
    answer = ""
    for excerpt in (*excerpts, None):
        if excerpt is None or excerpt.voice is Voice.PROMPT:
            if answer and lines:
                lines[-1] += f" → {answer}"
            answer = ""
        if excerpt is None:
            break
        if excerpt.voice is Voice.PROMPT:
            lines.append(f"- {_line(excerpt.text)}")
        elif excerpt.voice is Voice.ANSWER:
            answer = _line(excerpt.text)
        elif excerpt.voice is Voice.ERROR:
            answer = f"failed: {_line(excerpt.text)}"
    return lines


def _decisions(excerpts: Sequence[Excerpt]) -> list[str]:
    found: dict[str, None] = {}
    for excerpt in excerpts:
        if excerpt.voice not in (Voice.PROMPT, Voice.ANSWER):
            continue
        is_person = excerpt.voice is Voice.PROMPT
        for sentence in sentences(excerpt.text):
            if is_decision(sentence) or is_preference(sentence) or (is_person and is_constraint(sentence)):
                line = f"- {'asked: ' if is_person else ''}{shortened(sentence)}"
                found.pop(line, None)
                found[line] = None
    return list(found)


def _open(excerpts: Sequence[Excerpt]) -> list[str]:
    """What is marked as left to do, what was asked at the end and not answered, what failed when it ran last."""
    found: dict[str, None] = {}
    questions: list[str] = []
    for excerpt in excerpts:
        if excerpt.voice is Voice.PROMPT:
            questions = []
        if excerpt.voice not in (Voice.PROMPT, Voice.ANSWER):
            continue
        for sentence in sentences(excerpt.text):
            if is_open(sentence):
                found[f"- {shortened(sentence)}"] = None
            elif excerpt.voice is Voice.ANSWER and is_question(sentence):
                questions.append(f"- {shortened(sentence)}")
    failing = [
        f"- failed at last: {_called(excerpt)}" for excerpt in _last_runs(excerpts) if excerpt.is_error
    ]
    return [*failing, *found, *questions]


def _files(excerpts: Sequence[Excerpt]) -> list[str]:
    """Files: those that were changed, then those that were spoken of most."""
    changed: dict[str, None] = {}
    counts: Counter[str] = Counter()
    for excerpt in excerpts:
        if excerpt.voice is Voice.CALL and excerpt.paths:
            if family_of(excerpt.tool) == "file" and changes_files(excerpt.tool):
                changed.update(dict.fromkeys(excerpt.paths))
            counts.update(excerpt.paths)
        elif excerpt.voice in (Voice.PROMPT, Voice.ANSWER, Voice.CALL):
            counts.update(set(paths_in(excerpt.text)))
    others = [path for path, _ in counts.most_common() if path not in changed]
    lines = [f"- {_line(path)} (changed)" for path in changed] + [f"- {_line(path)}" for path in others]
    return lines[:_PATHS_MAX]


def _results(excerpts: Sequence[Excerpt]) -> list[str]:
    """Of each command its last run: what failed, and what ended in a count, a commit or an error."""
    lines: list[str] = []
    for excerpt in _last_runs(excerpts):
        telling = [line for line in excerpt.text.splitlines() if len(line) < 1_000 and _TELLING.search(line)]
        if excerpt.is_error:
            said = telling[-1] if telling else _last_line(excerpt.text)
            lines.append(f"- {_called(excerpt)} failed: {_line(said)}")
        elif telling:
            lines.append(f"- {_called(excerpt)}: {_line(telling[-1])}")
    return lines


def _last_runs(excerpts: Iterable[Excerpt]) -> list[Excerpt]:
    last: dict[tuple[str, str], Excerpt] = {}
    for excerpt in excerpts:
        if excerpt.voice is Voice.RESULT:
            key = (excerpt.tool, excerpt.about)
            last.pop(key, None)
            last[key] = excerpt
    return list(last.values())


def _called(excerpt: Excerpt) -> str:
    tool = excerpt.tool or "a tool"
    return f"{tool} ({cut_chars(excerpt.about, 120)})" if excerpt.about else tool


def _earlier(text: str, max_bytes: int) -> str:
    """An earlier summary below its own heading, its headings one deeper, without its word of how it was made."""
    lines = [line for line in text.splitlines() if line.strip() and line.strip() != MADE_BY_RULE]
    told = "\n".join(f"#{line}" if re.match("#{2,5} ", line) else line for line in lines)
    head = f"## {_EARLIER}\n\n"
    room = max_bytes - len(head.encode()) - 2
    return head + cut_bytes(told, room) if told and room > 16 else ""


def _rendered(section: _Section, max_bytes: int) -> str:
    """The section with the lines that fit; empty where none does."""
    head = f"## {section.title}\n\n"
    room = max_bytes - len(head.encode()) - 2
    if section.is_ranked:
        shown = _fitting(section.lines, room)
    else:
        # How it began is told also where much has come since.
        first = _fitting(section.lines[:1], room // 2)
        rest = section.lines[len(first) :]
        shown = first + _fitting(rest[::-1], room - sum(map(_size, first)))[::-1]
    return head + "\n".join(shown) if shown else ""


def _fitting(lines: Iterable[str], room: int) -> list[str]:
    """The first lines that fit together."""
    kept: list[str] = []
    for line in lines:
        room -= _size(line)
        if room < 0:
            break
        kept.append(line)
    return kept


def _size(line: str) -> int:
    return len(line.encode()) + 1


def _line(text: str) -> str:
    return cut_chars(first_line(text), _LINE_MAX_CHARS)


def _last_line(text: str) -> str:
    return next((line for line in reversed(text.splitlines()) if line.strip()), "")
