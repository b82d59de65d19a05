"""Sentences of a text, and what kind of statement one is. By words of English; of any other language none is one."""

from __future__ import annotations

import re

from memory_core import limits
from memory_core.domain.capture import cut_chars
from memory_core.domain.markdown_code import without_code

_END = re.compile(r"(?<=[.!?。！？])(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\betc\.)(?<!\bvs\.)\s+")
#: What a line begins with in Markdown and says nothing: quotation, list item, heading, box to tick.
_LEAD = re.compile(r"\A(?:[>#*+\-\s]|\d{1,3}[.)]\s|\[[ xX]\]\s)+")
_EMPHASIS = re.compile(r"\*\*|__")
_REMEMBER = re.compile(
    r"\A(?:(?:please|also|and|ok(?:ay)?)[ ,]+){0,2}"
    r"(?:remember|keep in mind|take note|note for later|make a note)\b(?: (?:that|this)\b)?[ ,:–—-]*",
    re.IGNORECASE,
)
#: `remember when we …`, `remember me?`: no fact follows.
_REMINISCENCE = re.compile(
    r"(?:when|how|why|what|if|whether|where|who|the time|me|us|you|last)\b", re.IGNORECASE
)
_DECISION = re.compile(
    r"\A(?:final )?decision\s*:|\bwe(?:'ve| have| had)? (?:now )?(?:decided|agreed|settled on|chose|chosen|picked)\b"
    r"|\b(?:decided|agreed) (?:to|that|on|against|not to)\b|\bsettled on\b"
    r"|\b(?:let's|let us|we'll|we will) (?:go with|use|stick (?:with|to)|switch to|drop|stay with)\b"
    r"|\bgoing with\b|\bchose [^.]{1,80} (?:over|instead of|because)\b",
    re.IGNORECASE,
)
_PREFERENCE = re.compile(r"\b(?:instead of|rather than|in favou?r of)\b", re.IGNORECASE)
_CONVENTION = re.compile(
    r"\A(?:(?:please|and|also|but)[ ,]+){0,2}(?:always|never|from now on|do not ever|don't ever|prefer\b.{1,120}\b(?:over|to)"
    r"|in (?:this|our) (?:repo|repository|project|code ?base)|(?:as a|the|our) (?:rule|convention|policy)\b"
    r"|we (?:always|never|only)|(?:the|our) (?:convention|policy|rule) is)\b",
    re.IGNORECASE,
)
_CONSTRAINT = re.compile(
    r"\A(?:(?:please|and|also|but)[ ,]+){0,2}(?:do not|don't|must not|must|only use|avoid|make sure|ensure|keep)\b"
    r"|\bmust(?: not)?\b",
    re.IGNORECASE,
)
_OPEN = re.compile(
    r"\A(?:todo|fixme|open(?: questions?| points?)?|next steps?|next|still (?:to do|open|missing)|remaining"
    r"|follow[- ]up|unclear|blocked(?: by| on)?|not yet (?:done|fixed|decided))\s*[:–—-]",
    re.IGNORECASE,
)
#: What is true for an hour or a day.
_PASSING = re.compile(
    r"\b(?:now|currently|at the moment|for now|right now|today|tonight|tomorrow|yesterday|this (?:time|morning|afternoon"
    r"|evening|week|branch|commit|run|turn|session|pr|pull request)|temporar(?:y|ily)|for the time being|just (?:now|for)"
    r"|in progress|wip|so far|until then|next week|last week|still (?:failing|broken|running))\b",
    re.IGNORECASE,
)
#: What was redacted, a key, or the name of a secret with what may be its value behind it.
_SECRET = re.compile(
    r"\[REDACTED\b|-----BEGIN|\bssh-(?:rsa|ed25519)\b|://[^/\s:@]{1,100}:[^/\s@]{1,100}@"
    r"|\b(?:pass(?:word|phrase|wd|code)|secret|credentials?|api[ _-]?keys?|(?:access|auth|bearer|api)[ _-]?tokens?"
    r"|private[ _-]?keys?)\b[^.\n]{0,40}?(?:[=:]\s*\S{3}|\b(?:is|are)\s+(?:(?=\S{0,200}\d)\S{6}|\S{1,200}[.!]?\Z))",
    re.IGNORECASE,
)
_DENSE = re.compile(r"(?<![A-Za-z0-9])[A-Za-z0-9+=]{24,}")


def sentences(text: str) -> list[str]:
    """The sentences of a Markdown text, without blocks of code, on one line each; none of them is empty."""
    found: list[str] = []
    bare = text.replace("\0", " ")
    for line, masked in zip(bare.split("\n"), without_code(bare).split("\n"), strict=False):
        if masked.strip("\0 \t\r"):
            told = _EMPHASIS.sub("", _LEAD.sub("", line))
            found += (" ".join(piece.split()) for piece in _END.split(told))
    return [sentence for sentence in found if sentence]


def told_to_remember(sentence: str) -> str | None:
    """What somebody asks to be remembered; None where the sentence asks no such thing."""
    plain = _plain(sentence)
    begun = _REMEMBER.match(plain)
    if begun is None or plain.endswith("?"):
        return None
    # Same length: only apostrophes were made plain.
    what = sentence[begun.end() :].strip()
    if not _is_statement(what, limits.TOLD_MIN_CHARS) or _REMINISCENCE.match(what):
        return None
    return what[0].upper() + what[1:]


def is_decision(sentence: str) -> bool:
    return _is_statement(sentence) and _DECISION.search(_plain(sentence)) is not None


def is_convention(sentence: str) -> bool:
    """Whether it says how things are always done."""
    return _is_statement(sentence) and _CONVENTION.match(_plain(sentence)) is not None


def is_constraint(sentence: str) -> bool:
    """Whether it says what must or must not be, now or always."""
    plain = _plain(sentence)
    return _is_statement(sentence) and bool(_CONVENTION.match(plain) or _CONSTRAINT.search(plain))


def is_preference(sentence: str) -> bool:
    """Whether it weighs one thing against another."""
    return _is_statement(sentence) and _PREFERENCE.search(sentence) is not None


def is_open(sentence: str) -> bool:
    """Whether it says by its first words that something is left to do or to find out."""
    return _OPEN.match(sentence) is not None


def is_question(sentence: str) -> bool:
    return sentence.endswith(("?", "？")) and len(sentence) > 1


def is_passing(sentence: str) -> bool:
    """Whether it speaks of a state that will soon be another."""
    return _PASSING.search(_plain(sentence)) is not None


def may_hold_secret(text: str) -> bool:
    """Whether it holds, or held, a secret: one that was redacted, a word that names one, or a long mix of letters and
    digits. Errs on the side of a secret."""
    if _SECRET.search(text):
        return True
    return any(_is_dense(found) for found in _DENSE.findall(text))


def _is_dense(word: str) -> bool:
    return sum(char.isdigit() for char in word) >= 4 and sum(char.isalpha() for char in word) >= 4


def shortened(sentence: str) -> str:
    return cut_chars(sentence, limits.STATEMENT_MAX_CHARS)


def _is_statement(sentence: str, min_chars: int = limits.STATEMENT_MIN_CHARS) -> bool:
    return (
        min_chars <= len(sentence) <= limits.STATEMENT_MAX_CHARS
        and not is_question(sentence)
        and any(char.isalpha() for char in sentence)
    )


def _plain(sentence: str) -> str:
    return sentence.replace("’", "'")
