"""Words by which a text is found beside those that the full-text tokenizer cuts itself.

The tokenizer keeps letters and digits: it knows no `C++` or `C#`, takes `parseJson` for one word, and
a whole run of Chinese, Japanese or Thai for one, too. The same functions are used on what is stored and on
what is asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_WORDS_MAX_CHARS = 64 * 1024

#: `C++`, `F#`, `.NET`: a short name and the sign that makes it another thing.
_SIGNED = re.compile(r"(?<![^\W_])([A-Za-z]{1,3})(\+\+|#)(?![^\W_])")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_CAMEL_WORD = re.compile(r"\b[A-Za-z]*[a-z0-9][A-Z][A-Za-z0-9]*\b|\b[A-Z]{2,}[a-z][A-Za-z0-9]*\b")
#: What says that there may be such words; it begins with a letter that is rare, so that looking costs little.
_CAMEL_HINT = re.compile(r"[A-Z](?:(?<=[a-z0-9].)|[A-Z][a-z])")
_SIGN_HINT = re.compile(r"#(?<=[A-Za-z]#)|\+\+")
_WORD = re.compile(r"[^\W_]+")
#: Scripts written without spaces between words.
_UNSPACED = re.compile(
    "["
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
    "\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # Japanese, Chinese
    "\uac00-\ud7af\uff66-\uff9f"  # Korean takes particles without a space
    "\U00020000-\U0003ffff"
    "]+"
)


def words(text: str) -> list[str]:
    """The runs of letters and digits of a text."""
    return _WORD.findall(text)


def signed(text: str) -> list[str]:
    """Names with their sign as one word: `C++` gives `cplusplus`, `F#` gives `fsharp`."""
    return [name.lower() + ("plusplus" if sign == "++" else "sharp") for name, sign in _SIGNED.findall(text)]


def camel_parts(word: str) -> list[str]:
    """The parts of `parseHTTPBody` (`parse`, `HTTP`, `Body`); the word itself if it has none."""
    return _CAMEL.split(word)


def unspaced_runs(text: str) -> list[str]:
    return _UNSPACED.findall(text)


def pairs(run: str) -> list[str]:
    """Overlapping pairs of characters; a single one stays alone."""
    return [run[i : i + 2] for i in range(len(run) - 1)] or [run]


def path_words(path: str) -> str:
    """A path as text to search: its parts, and once more with `-` and `_` as spaces."""
    parts = re.sub(r"[/.]", " ", path)
    return f"{parts} {re.sub('[-_]', ' ', parts)}"


def further_words(path: str, title: str, body: str) -> str:
    """What is indexed of a page beside its title and body."""
    text = f"{title}\n{body}"
    found = dict.fromkeys(_signed_in(text)) | dict.fromkeys(_humps_in(f"{path} {text}"))
    runs = () if text.isascii() and path.isascii() else unspaced_runs(f"{path} {text}")
    return "\n".join([path_words(path), " ".join(found), *(" ".join(pairs(run)) for run in runs)])[
        :_WORDS_MAX_CHARS
    ]


def words_said(text: str) -> str | None:
    """What is indexed of a turn beside its text; None for most, which need nothing."""
    found = dict.fromkeys(_signed_in(text)) | dict.fromkeys(_humps_in(text))
    runs = () if text.isascii() else unspaced_runs(text)
    if not found and not runs:
        return None
    return "\n".join([" ".join(found), *(" ".join(pairs(run)) for run in runs)]).strip()[:_WORDS_MAX_CHARS]


def _signed_in(text: str) -> list[str]:
    return signed(text) if _SIGN_HINT.search(text) else []


def _humps_in(text: str) -> Iterator[str]:
    """The parts of words in camel case, in lower case."""
    if not _CAMEL_HINT.search(text):
        return
    # All others cannot be any, and telling so costs less than to match them.
    likely = [word for word in text.split() if not (word.islower() or word[1:].islower())]
    for word in _CAMEL_WORD.findall(" ".join(likely)):
        yield from (part.lower() for part in camel_parts(word))


def words_of_unspaced(*texts: str | None) -> str | None:
    """Of texts in scripts that are written without spaces, what is indexed beside them; None for all others."""
    runs = [run for text in texts if text and not text.isascii() for run in unspaced_runs(text)]
    return "\n".join(" ".join(pairs(run)) for run in runs)[:_WORDS_MAX_CHARS] or None
