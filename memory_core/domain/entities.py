"""What a text names: identifiers, paths, errors, codes, people, and what its page declares. Pure, without a model.

The rules look at how a name is written, never at what it means, so some of what they find is no name; such a
name stands on many pages and weighs little (a match counts 1/df). The same folding is used on what is stored and
on what is asked.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from memory_core import limits
from memory_core.domain.page import SESSIONS_FOLDER, SUFFIX, name_key
from memory_core.domain.search_words import camel_parts

#: Marks on letters of Latin, Greek and Cyrillic; those of other scripts make another letter and stay.
_MARKS = re.compile("[\u0300-\u036f]")
_SEPARATORS = " -_/.:\\"
_SEPARATOR = re.compile(rf"[{re.escape(_SEPARATORS)}]+")
#: What a name may be written with, in scripts that know capitals.
_RUN = re.compile(r"[0-9A-Za-z_\u00aa-\u058f\u1e00-\u1fff./:@#$~\\+-]+")
_EDGES = "./:@#$~\\+-"
_PUNCTUATION = "\"'`()[]{}<>,;!?*|=…“”‘’" + _EDGES.replace("@", "")
_REDACTED = re.compile(r"\[REDACTED:[a-z0-9_]{1,40}:[0-9a-f]{4}\]")
_CODE_SPAN = re.compile(r"`(?<!``)([^`\s]{3,64})`(?!`)")
_NUMBER = re.compile(r" \d{1,5}\b")
#: What makes a code of the number behind it; of two that end alike the longer one first.
_CODED = (
    *(f"{first}{rest}" for first in "Ee" for rest in ("xit status", "xit code", "rror", "rrno")),
    *("Status", "status", "HTTP"),
)
_LINE_NUMBER = re.compile(r":\d+(?::\d+)?\Z")
_FILE = re.compile(r"[\w-][\w.-]*\.[A-Za-z][A-Za-z0-9]{0,5}")
_IDENTIFIER = re.compile(
    r"""
      \w*[^\W_]_+[^\W_]\w*                               # snake_case
    | (?P<camel> \w*(?:[a-z0-9][A-Z]|[A-Z]{2}[a-z]{2})\w* )
    | [A-Za-z_]\w+(?:(?:\.|::)[A-Za-z_]\w+)+              # module.name, Class::name
    | [A-Za-z]+-?\d[A-Za-z0-9]*                           # PROJ-42, E0382, sha256
    | E[A-Z]{3,}[0-9]? | SIG[A-Z]{3,}                      # ECONNREFUSED
    | (?=[0-9]*[a-f])(?=[a-f]*[0-9])[0-9a-f]{7,40}         # a commit
    | [\w-][\w.-]*[\w-]\.[A-Za-z][A-Za-z0-9]{0,5}         # a file
    """,
    re.VERBOSE,
)
_HANDLE = re.compile(r"@[A-Za-z][\w-]{1,38}")
#: Behind these a sentence begins.
_ENDS = (".", "!", "?", ":", ";", "|", "*")
_NAMES_OF_A_PERSON = 3
#: Of a longer run of characters, which is data and no name.
_RUN_MAX_CHARS = 512
#: Where more of the words begin with a capital in mid-sentence, capitals mean something else than names (German).
_CAPITALS_SHARE = 0.12
#: Capitalised words that name no person and no thing of the project.
_NO_NAMES = frozenset(
    [
        "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday", "january", "february",
        "march", "april", "may", "june", "july", "august", "september", "october", "november", "december",
        "jan", "feb", "mar", "apr", "jun", "jul", "aug", "sep", "oct", "nov", "dec", "true", "false",
        "none", "null", "the", "this", "that", "these", "those", "there", "then", "when", "what", "which",
        "who", "how", "why", "where", "and", "but", "for", "not", "yes", "you", "your", "our", "his", "her",
        "its", "they", "she", "was", "were", "are", "has", "had", "have", "will", "would", "can", "could",
        "should", "also", "with", "without", "after", "before", "since", "from", "into", "only", "here",
        "now", "all", "any", "each", "some", "one", "two",
    ]
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Entity:
    """Something that a page names."""

    #: Folded; at most `ENTITY_MAX_CHARS`.
    name: str
    #: As it is written.
    spelling: str
    #: Where the text names it first, characters; None: the page declares it, or is called so.
    at: int | None = None

    @property
    def starts(self) -> tuple[str, ...]:
        """The ends of the name that begin where one of its words begins, itself first: what the beginning of a word asks for."""
        starts = {self.name: None}
        rest = self.name
        for part in map(fold, _parts(self.spelling)):
            before, _, rest = rest.partition(part)
            if before.strip(_SEPARATORS):
                break
            rest = rest.lstrip(_SEPARATORS)
            if len(rest) >= limits.ASKED_NAME_MIN_CHARS:
                starts[rest] = None
        return tuple(starts)[: limits.ENTITY_STARTS_MAX]


def fold(text: str) -> str:
    """The form in which names are compared: caseless, without marks on letters, spaces joined."""
    if text.isascii():
        return " ".join(text.lower().split())
    bare = _MARKS.sub("", unicodedata.normalize("NFD", name_key(text)))
    return " ".join(unicodedata.normalize("NFC", bare).split())


def entities_of(path: str, body: str, declared: Iterable[str] = ()) -> tuple[Entity, ...]:
    """What the page at a path names: what it declares, what it is called (sessions have no telling names), then what
    its text names most often; at most `PAGE_ENTITIES_MAX`, each once. Any text can be read, no further than
    `ENTITIES_READ_MAX_CHARS`."""
    found: dict[str, Entity] = {}
    is_session = path.lower().startswith(f"{SESSIONS_FOLDER}/")
    own = [] if is_session else [path.rsplit("/", 1)[-1].removesuffix(SUFFIX)]
    for name in (*declared, *own):
        entity = _entity(name, None)
        if entity is not None:
            found.setdefault(entity.name, entity)
    text = body[: limits.ENTITIES_READ_MAX_CHARS]
    for name, _ in Counter(names_in(text)).most_common():
        if len(found) == limits.PAGE_ENTITIES_MAX:
            break
        entity = _entity(name, max(text.find(name), 0))
        if entity is not None:
            found.setdefault(entity.name, entity)
    return tuple(found.values())


def asked_names(texts: Sequence[str]) -> tuple[str, ...]:
    """Beginnings of names that a question asks for, folded: its words, and the parts of those that are put together;
    names that are written like names first, at most `ASKED_NAMES_MAX` of `ASKED_NAME_MIN_CHARS` and more."""
    telling: dict[str, None] = {}
    plain: dict[str, None] = {}
    for text in texts:
        for word in (word.strip(_PUNCTUATION) for word in text.split()):
            parts = _parts(word)
            whole = telling if len(parts) > 1 or not word.islower() else plain
            whole[fold(word)] = None
            if len(parts) > 1:
                plain.update(dict.fromkeys(map(fold, parts)))
    names = [name for name in {**telling, **plain} if _is_askable(name)]
    return tuple(names[: limits.ASKED_NAMES_MAX])


def _is_askable(name: str) -> bool:
    return limits.ASKED_NAME_MIN_CHARS <= len(name) <= limits.ENTITY_MAX_CHARS


def _entity(name: str, at: int | None) -> Entity | None:
    if len(name) > limits.ENTITY_MAX_CHARS:
        # Of a long path its end tells more.
        name = name[-limits.ENTITY_MAX_CHARS :].partition("/")[2] if "/" in name else ""
    folded = fold(name)
    if not limits.ASKED_NAME_MIN_CHARS <= len(folded) <= limits.ENTITY_MAX_CHARS:
        return None
    return Entity(name=folded, spelling=name, at=at)


def _parts(name: str) -> list[str]:
    """The words of a name: between separators, and the humps of camel case."""
    return [part for piece in _SEPARATOR.split(name) if piece for part in camel_parts(piece)]


# --- what is written like a name -----------------------------------------------------------------


def names_in(text: str) -> Iterator[str]:
    """Names by how they are written, one for each time that the text names something."""
    text = _REDACTED.sub(" ", unicodedata.normalize("NFC", text))
    for span in _CODE_SPAN.findall(text) if "`" in text else ():
        name = span.removesuffix("()").strip(_EDGES)
        if name.isascii() and any(map(str.isalpha, name)) and "://" not in name:
            yield name
    yield from _codes(text)
    people: list[str] = []
    for line in text.splitlines():
        words = line.split()
        # Most words are plain ones, which name nothing.
        telling = [at for at, word in enumerate(words) if not (word.islower() and word.isalpha())]
        for word in map(words.__getitem__, telling):
            core = word.strip(_PUNCTUATION)
            if not (core.isalpha() and core[1:].islower()):
                yield from filter(None, map(_written, _RUN.findall(word)))
        if telling and not line.startswith("#"):
            people += _people(words, telling)
    # Where so many words begin with a capital in mid-sentence, capitals mean something else than names.
    is_language_of_capitals = len(people) > max(3, text.count(" ") * _CAPITALS_SHARE)
    yield from (name for name in people if " " in name or not is_language_of_capitals)


def _codes(text: str) -> Iterator[str]:
    """Numbers that a word says to be a code: `HTTP 503`, `exit code 2`."""
    for number in _NUMBER.finditer(text):
        end = number.start()
        if not text.endswith(_CODED, 0, end):
            continue
        for word in _CODED:
            start = end - len(word)
            if text.endswith(word, 0, end) and not (start and _is_of_a_word(text[start - 1])):
                yield text[start : number.end()]
                break


def _is_of_a_word(char: str) -> bool:
    return char.isalnum() or char == "_"


def _written(word: str) -> str | None:
    """The identifier, path, error or code that a run of characters is; None: it is none of these."""
    name = word.rstrip(_EDGES)[:_RUN_MAX_CHARS]
    if "@" in name or "://" in name:
        return name[1:] if _HANDLE.fullmatch(name) else None
    if ":" in name:
        name = _LINE_NUMBER.sub("", name)
    bare = name.strip(_EDGES)
    if len(bare) < limits.ASKED_NAME_MIN_CHARS or not any(map(str.isalpha, bare)):
        return None
    if "/" in bare or "\\" in bare:
        return bare if _is_path(name) else None
    found = _IDENTIFIER.fullmatch(bare)
    if found is None or (found.lastgroup == "camel" and bare.rstrip("s").isupper()):
        return None
    return bare


def _is_path(name: str) -> bool:
    parts = [part for part in re.split(r"[/\\]", name) if part]
    if not any(len(part) > 1 and any(map(str.isalpha, part)) for part in parts):
        return False
    # `and/or` and `read/write` are words, and so is a date.
    return (
        name.startswith(("/", "./", "../", "~/"))
        or len(parts) > 2
        or bool(_FILE.fullmatch(parts[-1]))
        or "_" in name
    )


def _people(words: Sequence[str], telling: Sequence[int]) -> Iterator[str]:
    """Of the words of a line, those with a capital that no sentence begins with, joined where they follow one another, and
    who speaks (`Ada:`). Words that are not `telling` are letters in lower case."""
    group: list[str] = []
    begins = True
    is_told = False
    behind = 0
    for at in telling:
        word = words[at]
        if at > behind or word.islower():
            if group:
                yield from _joined(group, is_told)
                group = []
            begins = begins and at == behind
        behind = at + 1
        if word.islower():
            begins = word.endswith(_ENDS) or (begins and not any(map(str.isalpha, word)))
            continue
        core = word.strip(_PUNCTUATION)
        is_name = core[:1].isupper() and _is_capitalised(core)
        if group and not (is_name and word[0] == core[0] and len(group) < _NAMES_OF_A_PERSON):
            yield from _joined(group, is_told)
            group = []
        if is_name:
            is_told = bool(group and is_told) or (not group and not begins) or word.rstrip("*_").endswith(":")
            group.append(core)
            if not word.endswith(core):
                yield from _joined(group, is_told)
                group = []
        begins = word.endswith(_ENDS) or (begins and not any(map(str.isalpha, word)))
    yield from _joined(group, is_told)


def _joined(group: list[str], is_told: bool) -> list[str]:
    return [" ".join(group)] if is_told or len(group) > 1 else []


def _is_capitalised(word: str) -> bool:
    return (
        word[:1].isupper()
        and word[1:].islower()
        and word.isalpha()
        and len(word) >= limits.ASKED_NAME_MIN_CHARS
        and word.lower() not in _NO_NAMES
    )
