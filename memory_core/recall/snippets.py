"""What a hit shows of its text: the words around what was found, with marks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet

from memory_core import limits
from memory_core.domain.stemming import beginning, stem, words_with_places

MARK, UNMARK = "<mark>", "</mark>"
_ELLIPSIS = "…"


def snippet(text: str, stems: AbstractSet[str], runs: Collection[str] = ()) -> str:
    """The `SNIPPET_TOKENS` words of `text` that hold most of what is looked for, marked, and in at most `HIT_SNIPPET_MAX_CHARS`.

    `stems` are words as `stemming.stem` gives them; `runs` are texts in scripts that are written without spaces.
    """
    places = words_with_places(text)
    if not places:
        return text[: limits.SNIPPET_MAX_CHARS]
    words = [text[start:end] for start, end in places]
    marked = _marked(words, stems, [run for run in runs if len(run) > 1])
    first = _best(marked, len(places), limits.SNIPPET_TOKENS)
    last = min(first + limits.SNIPPET_TOKENS, len(places)) - 1
    if places[last][1] - places[first][0] > limits.HIT_SNIPPET_MAX_CHARS // 2:
        # Long words: rather what was found than what stands before it.
        first = next((place for place in marked if first <= place <= last), first)
    return _shown(text, places, marked, first, last)


def _marked(words: Sequence[str], stems: AbstractSet[str], runs: Sequence[str]) -> dict[int, str]:
    """By place, the stem of each word that is looked for. Most are none, and to tell so costs less than to take their stems."""
    likely = tuple(map(beginning, stems))
    marked: dict[int, str] = {}
    for place, word in enumerate(words):
        if word.isascii():
            if word.lower().startswith(likely) and (own := stem(word)) in stems:
                marked[place] = own
        elif (own := stem(word)) in stems or any(run in word or word in run for run in runs):
            marked[place] = own
    return marked


def _best(marked: Mapping[int, str], count: int, width: int) -> int:
    """Where a window of words begins that holds most different ones of those that are marked, with some room before the first.

    `marked`: by place, in order; `count`: of all words.
    """
    ends = list(marked)
    held: Counter[str] = Counter()
    best, best_first, best_last = (0, 0), 0, 0
    first = 0
    for at, place in enumerate(ends):
        held[marked[place]] += 1
        while ends[first] <= place - width:
            word = marked[ends[first]]
            held[word] -= 1
            if not held[word]:
                del held[word]
            first += 1
        if (score := (len(held), at - first + 1)) > best:
            best, best_first, best_last = score, ends[first], place
    # The window ends with what it was chosen for: the words found stand in its middle.
    spare = (width - (best_last - best_first + 1)) // 2
    return max(min(best_first - spare, count - width), 0)


def _shown(text: str, places: list[tuple[int, int]], marked: Collection[int], first: int, last: int) -> str:
    """The words from `first` to `last`; of a word that is longer than a snippet, its beginning."""
    parts: list[str] = [_ELLIPSIS] if first else []
    room = limits.HIT_SNIPPET_MAX_CHARS - 2 * len(_ELLIPSIS)
    behind = places[first][0] if first else 0
    for place in range(first, last + 1):
        start, end = places[place]
        frame = len(MARK) + len(UNMARK) if place in marked else 0
        between = text[behind:start][-room:] if room > 0 else ""
        word = text[start:end][: max(room - len(between) - frame, 0)]
        if not word:
            return "".join([*parts, _ELLIPSIS])
        parts.append(f"{between}{MARK}{word}{UNMARK}" if place in marked else f"{between}{word}")
        room -= len(between) + len(word) + frame
        behind = end
    if last + 1 < len(places):
        return "".join([*parts, _ELLIPSIS])
    return "".join([*parts, text[behind:][: max(room, 0)]])
