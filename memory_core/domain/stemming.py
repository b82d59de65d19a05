"""The words of a text as the full-text index knows them: folded, without accents, as stems.

The stems are those of SQLite's `porter` tokenizer over `unicode61 remove_diacritics 2` (M. F. Porter, "An algorithm for
suffix stripping", Program 14(3), 1980): what is marked and weighed here must be what the index found. A test compares the two.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from itertools import pairwise

#: Accents that stand alone belong to the letter before them.
_WORD = re.compile(r"[^\W_]+(?:[\u0300-\u036f]+[^\W_]*)*")
_MARKS = re.compile(r"[\u0300-\u036f]")
_ACCENTED = re.compile(r"[\u00aa-\u024f\u1e00-\u1eff]")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
_STEM_MIN, _STEM_MAX_BYTES = 3, 64
_VOWELS = frozenset("aeiou")
#: Suffix → what takes its place where something is left before it; the first that fits decides.
_STEP_2 = (
    ("ational", "ate"),
    ("tional", "tion"),
    ("enci", "ence"),
    ("anci", "ance"),
    ("izer", "ize"),
    ("logi", "log"),
    ("bli", "ble"),
    ("alli", "al"),
    ("entli", "ent"),
    ("eli", "e"),
    ("ousli", "ous"),
    ("ization", "ize"),
    ("ation", "ate"),
    ("ator", "ate"),
    ("alism", "al"),
    ("iveness", "ive"),
    ("fulness", "ful"),
    ("ousness", "ous"),
    ("aliti", "al"),
    ("iviti", "ive"),
    ("biliti", "ble"),
)
_STEP_3 = (
    ("ical", "ic"),
    ("ness", ""),
    ("icate", "ic"),
    ("iciti", "ic"),
    ("ful", ""),
    ("ative", ""),
    ("alize", "al"),
)
_STEP_4 = (
    *("al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent"),
    *("ion", "ou", "ism", "ate", "iti", "ous", "ive", "ize"),
)


def words_with_places(text: str) -> list[tuple[int, int]]:
    """Where the words of a text begin and end, characters."""
    return [found.span() for found in _WORD.finditer(text)]


@lru_cache(maxsize=1 << 16)
def stem(word: str) -> str:
    """What a word is indexed as."""
    folded = word.lower()
    if not folded.isascii():
        folded = _NOT_ASCII.sub(_plain, _MARKS.sub("", folded))
    size = len(folded.encode("utf-8", "replace"))
    if not _STEM_MIN <= size <= _STEM_MAX_BYTES:
        return folded
    # The tokenizer works on bytes: a letter that takes two of them counts as two.
    return (
        _porter(folded.encode("utf-8", "replace").decode("latin-1"))
        .encode("latin-1")
        .decode("utf-8", "replace")
    )


def beginning(stem: str) -> str:
    """What each word in ASCII begins with, in lower case, that has this stem: taking stems changes at most the last letter of what is left."""
    return stem[:-1] if len(stem) > 2 else stem[:1]


class _Plain(dict[int, int]):
    """By code point, the letter without its accents; filled as letters come."""

    def __missing__(self, point: int) -> int:
        base = unicodedata.normalize("NFD", chr(point))[0]
        self[point] = ord(base) if base.isascii() else point
        return self[point]


_PLAIN = _Plain()


def without_accents(text: str) -> str:
    """The text with each Latin letter without its accents, the same number of characters."""
    # Dashes and curly quotes alone are no reason to go through it letter by letter.
    return text.translate(_PLAIN) if not text.isascii() and _ACCENTED.search(text) else text


def _plain(found: re.Match[str]) -> str:
    """A Latin letter without its accents; any other as it is."""
    letter = found.group()
    folded = letter.casefold()
    base = unicodedata.normalize("NFD", letter)[0]
    if base.isascii():
        return base
    return folded if len(folded) == 1 else letter


def _porter(word: str) -> str:
    word = _step_1(word)
    if word[-1] == "y" and _has_vowel(word[:-1]):
        word = word[:-1] + "i"
    word = _replaced(word, _STEP_2)
    word = _replaced(word, _STEP_3)
    word = _step_4(word)
    if word[-1] == "e":
        shorter = word[:-1]
        measure = _measure(shorter)
        if measure > 1 or (measure == 1 and not _ends_short(shorter)):
            word = shorter
    if word.endswith("ll") and len(word) > 1 and _measure(word[:-1]) > 1:
        word = word[:-1]
    return word


def _step_1(word: str) -> str:
    if word[-1] == "s":
        if word[-2] == "e":
            is_long = (len(word) > 4 and word[-4:-2] == "ss") or (len(word) > 3 and word[-3] == "i")
            word = word[:-2] if is_long else word[:-1]
        elif word[-2] != "s":
            word = word[:-1]
    if len(word) > 3 and word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    for suffix in ("ed", "ing"):
        if word.endswith(suffix) and len(word) > len(suffix) and _has_vowel(word[: -len(suffix)]):
            return _repaired(word[: -len(suffix)])
    return word


def _repaired(word: str) -> str:
    """What is left of a word without `-ed` or `-ing`, with the letter that the suffix took or doubled put right."""
    if len(word) > 2 and word.endswith(("at", "bl", "iz")):
        return word + "e"
    last = word[-1]
    if len(word) > 1 and last == word[-2] and last not in _VOWELS and last not in "lsz":
        return word[:-1]
    return word + "e" if _measure(word) == 1 and _ends_short(word) else word


def _replaced(word: str, suffixes: tuple[tuple[str, str], ...]) -> str:
    for suffix, other in suffixes:
        if len(word) > len(suffix) and word.endswith(suffix):
            before = word[: -len(suffix)]
            return before + other if _measure(before) > 0 else word
    return word


def _step_4(word: str) -> str:
    for suffix in _STEP_4:
        if len(word) > len(suffix) and word.endswith(suffix):
            before = word[: -len(suffix)]
            is_gone = _measure(before) > 1 and (suffix != "ion" or before[-1] in "st")
            return before if is_gone else word
    return word


def _shape(word: str) -> list[bool]:
    """For each letter whether it is a consonant; `y` is a vowel behind one."""
    shape: list[bool] = []
    is_consonant = False
    for letter in word:
        is_consonant = not (letter in _VOWELS or (is_consonant and letter == "y"))
        shape.append(is_consonant)
    return shape


def _measure(word: str) -> int:
    """How often a consonant follows a vowel."""
    shape = _shape(word)
    return sum(not one and other for one, other in pairwise(shape))


def _has_vowel(word: str) -> bool:
    return any(letter in _VOWELS or (place > 0 and letter == "y") for place, letter in enumerate(word))


def _ends_short(word: str) -> bool:
    return word[-1:] not in ("w", "x", "y", "") and _shape(word)[-3:] == [True, False, True]
