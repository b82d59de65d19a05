"""From a question as people and agents type it to full-text expressions. No text is an error.

Everything in a question is literal: quotes, operators and column names of the search engine have no
meaning here. Only words (letters and digits of any script) reach the engine, each quoted.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from memory_core import limits
from memory_core.domain.page import name_key
from memory_core.domain.search_words import camel_parts, pairs, signed, unspaced_runs, words
from memory_core.domain.stemming import stem

_TERMS_MAX = 24
_WORDS_MAX = 200
#: Suffixes of English that a word is also looked for without.
_SUFFIXES = ("ing", "ies", "ed", "es", "s")
_STEM_MIN_CHARS = 4
#: Words that say nothing of what is looked for, in the languages that people ask in most.
_STOP_WORDS = frozenset(
    [
        "a",
        "about",
        "above",
        "after",
        "again",
        "all",
        "also",
        "am",
        "an",
        "and",
        "any",
        "are",
        "as",
        "at",
        "be",
        "because",
        "been",
        "before",
        "being",
        "below",
        "between",
        "both",
        "but",
        "by",
        "can",
        "could",
        "did",
        "do",
        "does",
        "doing",
        "down",
        "during",
        "each",
        "ever",
        "few",
        "for",
        "from",
        "further",
        "had",
        "has",
        "have",
        "having",
        "he",
        "her",
        "here",
        "hers",
        "him",
        "his",
        "how",
        "i",
        "if",
        "in",
        "into",
        "is",
        "it",
        "its",
        "itself",
        "just",
        "let",
        "me",
        "more",
        "most",
        "my",
        "myself",
        "no",
        "nor",
        "not",
        "now",
        "of",
        "off",
        "on",
        "once",
        "only",
        "or",
        "other",
        "our",
        "out",
        "over",
        "own",
        "please",
        "same",
        "she",
        "should",
        "so",
        "some",
        "such",
        "than",
        "that",
        "the",
        "their",
        "them",
        "then",
        "there",
        "these",
        "they",
        "this",
        "those",
        "through",
        "to",
        "too",
        "under",
        "until",
        "up",
        "us",
        "very",
        "was",
        "we",
        "were",
        "what",
        "when",
        "where",
        "which",
        "while",
        "who",
        "whom",
        "why",
        "will",
        "with",
        "would",
        "you",
        "your",
        "der",
        "die",
        "das",
        "und",
        "ist",
        "im",
        "den",
        "dem",
        "ein",
        "eine",
        "zu",
        "mit",
        "von",
        "für",
        "auf",
        "wie",
        "was",
        "wir",
        "nicht",
        "de",
        "la",
        "le",
        "les",
        "des",
        "du",
        "et",
        "un",
        "une",
        "que",
        "est",
        "pour",
        "dans",
        "el",
        "los",
        "las",
        "del",
        "en",
        "y",
        "por",
        "con",
        "para",
        "como",
        "o",
        "os",
        "as",
        "da",
        "do",
        "em",
        "uma",
        "um",
        "na",
        "no",
        "se",
        "e",
    ]
)


@dataclass(frozen=True, kw_only=True)
class Query:
    """A question as terms, stop words left out (unless there is nothing else); none when it holds no word."""

    terms: tuple[Term, ...] = ()
    #: The words of the terms as the index knows them.
    stems: frozenset[str] = frozenset()
    #: Of texts in scripts that are written without spaces, what is looked for as it stands.
    runs: tuple[str, ...] = ()
    #: Its words in their order, as stems; empty where a word says nothing of what is looked for.
    sequence: tuple[str, ...] = ()

    @property
    def strict(self) -> str:
        """The expression that asks for all terms."""
        return " AND ".join(either(term.exact) for term in self.terms)


@dataclass(frozen=True, kw_only=True)
class Term:
    """One thing that is looked for."""

    #: As typed.
    text: str
    #: Expressions, one of which must match.
    exact: tuple[str, ...]
    #: Further ones that also count when not all terms need to match.
    loose: tuple[str, ...] = ()
    is_stop_word: bool = False


def parse(text: str) -> Query:
    """The question in `text`; looks at its first `QUERY_MAX_CHARS` characters."""
    terms: dict[tuple[str, ...], Term] = {}
    text = unicodedata.normalize("NFC", text[: limits.QUERY_MAX_CHARS])
    for chunk in text.split():
        for term in _terms_of(chunk):
            terms.setdefault(term.exact, term)
    telling = [term for term in terms.values() if not term.is_stop_word] or list(terms.values())
    asked = " ".join(term.text for term in telling[:_TERMS_MAX])
    spelt = [asked, *(" ".join(camel_parts(word)) for word in words(asked)), *signed(asked)]
    return Query(
        terms=tuple(telling[:_TERMS_MAX]),
        stems=frozenset(stem(word) for text in spelt for word in words(text)),
        runs=tuple(unspaced_runs(asked)),
        sequence=tuple("" if _is_stop_word(word) else stem(word) for word in words(text)[:_WORDS_MAX]),
    )


def _terms_of(chunk: str) -> list[Term]:
    names = signed(chunk)
    if names:
        return [Term(text=chunk, exact=tuple(_quoted(name) for name in names))]
    runs = unspaced_runs(chunk)
    found = [Term(text=run, exact=(_unspaced(run),)) for run in runs]
    for run in runs:
        chunk = chunk.replace(run, " ", 1)
    rest = words(chunk)
    if len(rest) == 1:
        found.append(_word(rest[0]))
    elif rest:
        parts = [word for word in rest if len(word) > 1 and not _is_stop_word(word)]
        found.append(
            Term(
                text=chunk,
                exact=(_quoted(" ".join(rest)),),
                loose=tuple(alternative for part in parts for alternative in _word(part).exact),
            )
        )
    return found


def _word(word: str) -> Term:
    exact = [_quoted(word)]
    parts = camel_parts(word)
    if len(parts) > 1:
        exact.append(_quoted(" ".join(parts)))
    folded = name_key(word)
    if "ss" in folded:
        # The tokenizer keeps ß; whoever types STRASSE means it, too.
        exact += [_quoted(folded), _quoted(folded.replace("ss", "ß"))]
    stem = _stem(folded)
    loose = (f"{_quoted(stem)} *",) if stem else ()
    return Term(text=word, exact=tuple(dict.fromkeys(exact)), loose=loose, is_stop_word=_is_stop_word(word))


def _unspaced(run: str) -> str:
    return _quoted(" ".join(pairs(run))) if len(run) > 1 else f"{_quoted(run)} *"


def _stem(word: str) -> str:
    if not re.fullmatch("[a-z]+", word):
        return ""
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= _STEM_MIN_CHARS:
            return word.removesuffix(suffix)
    return word if len(word) > _STEM_MIN_CHARS else ""


def _is_stop_word(word: str) -> bool:
    return word.casefold() in _STOP_WORDS


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def either(alternatives: tuple[str, ...]) -> str:
    return alternatives[0] if len(alternatives) == 1 else f"({' OR '.join(alternatives)})"
