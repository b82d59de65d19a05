"""Patterns over whole paths: `*` and `?` stay within a directory, `**` crosses. Matched in bounded steps, without backtracking.

Paths are POSIX, or Windows ones with a drive or a share, which compare without regard to ASCII case.
"""

from __future__ import annotations

import re
import unicodedata

from memory_core.errors import Invalid
from memory_core.limits import CAPTURE_PATTERN_MAX_CHARS

_FORBIDDEN = frozenset("!{}[]()|^$%\x00")
_WINDOWS = re.compile(r"[A-Za-z]:[\\/]|\\\\[^\\/]")
_DRIVE_RELATIVE = re.compile(r"[A-Za-z]:(?![\\/])")
_ANY, _WITHIN, _ONE = "**", "*", "?"


class PathGlob:
    """One pattern, rooted: relative ones at `root`, `~/` at `home`. `Invalid` says what is wrong with it."""

    __slots__ = ("_ends", "_skips", "_skips_behind", "tokens")

    def __init__(self, pattern: str, *, root: str, home: str) -> None:
        rest, base = _split(pattern, root=root, home=home)
        #: Characters, each with whether it is a wildcard: `?`, `*` or `**`.
        self.tokens: list[tuple[str, bool]] = [(char, False) for char in base]
        #: Where a part of the pattern may stand for nothing at all: its first state, and the one behind it.
        self._skips: dict[int, int] = {}
        #: The same behind a `/`: only there, and not after `**` took some characters, may it stand for nothing.
        self._skips_behind: dict[int, int] = {}
        self._add(rest)
        self._ends = len(self.tokens)

    def _add(self, rest: str) -> None:
        at = 0
        while at < len(rest):
            if rest.startswith("/**/", at):  # no directory at all is fine too
                self._skips_behind[len(self.tokens)] = len(self.tokens) + 3
                self.tokens += [("/", False), (_ANY, True), ("/", False)]
                at += 4
            elif rest.startswith("/**", at) and at + 3 == len(rest):  # and so is the directory itself
                self._skips[len(self.tokens)] = len(self.tokens) + 2
                self.tokens += [("/", False), (_ANY, True)]
                at += 3
            elif rest.startswith(_ANY, at):
                self.tokens.append((_ANY, True))
                at += 2
            else:
                self.tokens.append((rest[at], rest[at] in (_WITHIN, _ONE)))
                at += 1

    def matches(self, path: str) -> bool:
        """Whether the whole of a `plain` path matches; at most len(tokens) · len(path) steps."""
        states = self._closed({0})
        for char in path:
            reached: set[int] = set()
            for state in states:
                if state < self._ends:
                    reached.update(self._step(state, char))
            if not reached:
                return False
            states = self._closed(reached)
        return self._ends in states

    def _step(self, state: int, char: str) -> tuple[int, ...]:
        token, is_wild = self.tokens[state]
        if not is_wild:
            if token != char:
                return ()
            return (state + 1, self._skips_behind[state]) if state in self._skips_behind else (state + 1,)
        if token == _ANY:
            return (state,)
        if char == "/":
            return ()
        return (state,) if token == _WITHIN else (state + 1,)

    def _closed(self, states: set[int]) -> set[int]:
        """With all that is reached without a character: stars may stand for nothing."""
        waiting = list(states)
        while waiting:
            state = waiting.pop()
            after = [self._skips[state]] if state in self._skips else []
            if state < self._ends and self.tokens[state][1] and self.tokens[state][0] != _ONE:
                after.append(state + 1)
            for each in after:
                if each not in states:
                    states.add(each)
                    waiting.append(each)
        return states


def plain(path: str, *, cwd: str, home: str = "") -> str:
    """`path` made absolute and lexically normal, for comparing; `Invalid` when it cannot be.

    No link is followed and nothing is looked up: this is about names.
    """
    if not path or "\x00" in path:
        raise Invalid("a path is empty or holds NUL")
    if path == "~" or path.startswith("~/"):
        if not home:
            raise Invalid("a path starts at a home that is not known")
        path = home.rstrip("/") + path[1:]
    if _DRIVE_RELATIVE.match(path):
        raise Invalid("a path is relative to a drive")
    is_windows = _WINDOWS.match(path) is not None
    if not is_windows and not path.startswith("/"):
        if not (cwd.startswith("/") or _WINDOWS.match(cwd)):
            raise Invalid("a relative path needs a directory")
        is_windows = _WINDOWS.match(cwd) is not None
        path = f"{cwd}/{path}"
    return _joined(path, is_windows=is_windows)


def _joined(path: str, *, is_windows: bool) -> str:
    if is_windows:
        path = path.replace("\\", "/").translate(_LOWER)
    kept: list[str] = []
    for part in path.split("/"):
        if part == "..":
            if kept and not (is_windows and len(kept) == 1):
                kept.pop()
        elif part not in ("", "."):
            kept.append(part)
    return unicodedata.normalize("NFC", ("" if is_windows else "/") + "/".join(kept))


def _split(pattern: str, *, root: str, home: str) -> tuple[str, str]:
    """What follows the base, wildcards and all, and the base, which is taken literally."""
    if not pattern.strip() or len(pattern) > CAPTURE_PATTERN_MAX_CHARS:
        raise Invalid(f"a pattern has 1 to {CAPTURE_PATTERN_MAX_CHARS} characters")
    if found := sorted(_FORBIDDEN & set(pattern)):
        raise Invalid(f"a pattern may not hold {' '.join(repr(char) for char in found)}")
    if "***" in pattern:
        raise Invalid("a pattern may not hold '***'")
    is_windows = _WINDOWS.match(pattern) is not None
    if _DRIVE_RELATIVE.match(pattern):
        raise Invalid("a pattern may not be relative to a drive")
    parts = pattern.replace("\\", "/").split("/") if is_windows else pattern.split("/")
    if ".." in parts:
        raise Invalid("a pattern may not hold '..'")
    if parts[0].startswith("~") and parts[0] != "~":
        raise Invalid("a pattern may start at one's own home only")
    inner = [part for part in parts if part not in ("", ".")]
    inner = [part for at, part in enumerate(inner) if part != _ANY or inner[at - 1 : at] != [_ANY]]
    if pattern.endswith("/") and inner:
        inner.append(_ANY)  # a directory means what is in it
    if parts[0] == "~":
        return _rest(inner[1:]), _base(home)
    if is_windows:
        return "/".join(inner).translate(_LOWER), ""
    return _rest(inner), "" if pattern.startswith("/") else _base(root)


def _rest(parts: list[str]) -> str:
    return unicodedata.normalize("NFC", "".join(f"/{part}" for part in parts))


def _base(directory: str) -> str:
    base = plain(directory, cwd="")
    return "" if base == "/" else base


_LOWER = {ord(char): ord(char.lower()) for char in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}
