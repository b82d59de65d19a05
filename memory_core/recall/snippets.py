"""What a hit shows of its text: the words around what was found, with marks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from memory_core import limits
from memory_core.domain.stemming import stem, words_with_places

MARK, UNMARK = "<mark>", "</mark>"
_ELLIPSIS = "…"


def snippet(text: str, stems: Collection[str], runs: Collection[str] = ()) -> str:
    """The `SNIPPET_TOKENS` words of `text` that hold most of what is looked for, marked, and in at most `HIT_SNIPPET_MAX_CHARS`.

    `stems` are words as `stemming.stem` gives them; `runs` are texts in scripts that are written without spaces.
    """
    places = words_with_places(text)
    if not places:
        return text[: limits.SNIPPET_MAX_CHARS]
    wanted = set(stems)
    found = [stem(text[start:end]) for start, end in places]
    marked = [
        word in wanted
        or any(run in text[start:end] or text[start:end] in run for run in runs if len(run) > 1)
        for word, (start, end) in zip(found, places, strict=True)
    ]
    first = _best(found, marked, limits.SNIPPET_TOKENS)
    last = min(first + limits.SNIPPET_TOKENS, len(places)) - 1
    if places[last][1] - places[first][0] > limits.HIT_SNIPPET_MAX_CHARS // 2:
        # Long words: rather what was found than what stands before it.
        first = next((place for place in range(first, last + 1) if marked[place]), first)
    return _shown(text, places, marked, first, last)


def _best(found: list[str], marked: list[bool], width: int) -> int:
    """Where a window of words begins that holds most different ones of those that are marked, with some room before the first."""
    held: Counter[str] = Counter()
    best, best_at = (0, 0), 0
    for place, word in enumerate(found):
        if marked[place]:
            held[word] += 1
        out = place - width
        if out >= 0 and marked[out]:
            held[found[out]] -= 1
            if not held[found[out]]:
                del held[found[out]]
        if (score := (len(held), held.total())) > best:
            best, best_at = score, place
    begin = max(best_at - width + 1, 0)
    first = next((place for place in range(begin, best_at + 1) if marked[place]), begin)
    # The window ends with what it was chosen for: the words found stand in its middle.
    spare = (width - (best_at - first + 1)) // 2
    return max(min(first - spare, len(found) - width), 0)


def _shown(text: str, places: list[tuple[int, int]], marked: list[bool], first: int, last: int) -> str:
    """The words from `first` to `last`; of a word that is longer than a snippet, its beginning."""
    parts: list[str] = [_ELLIPSIS] if first else []
    room = limits.HIT_SNIPPET_MAX_CHARS - 2 * len(_ELLIPSIS)
    behind = places[first][0] if first else 0
    for place in range(first, last + 1):
        start, end = places[place]
        frame = len(MARK) + len(UNMARK) if marked[place] else 0
        between = text[behind:start][-room:] if room > 0 else ""
        word = text[start:end][: max(room - len(between) - frame, 0)]
        if not word:
            return "".join([*parts, _ELLIPSIS])
        parts.append(f"{between}{MARK}{word}{UNMARK}" if marked[place] else f"{between}{word}")
        room -= len(between) + len(word) + frame
        behind = end
    if last + 1 < len(places):
        return "".join([*parts, _ELLIPSIS])
    return "".join([*parts, text[behind:][: max(room, 0)]])
