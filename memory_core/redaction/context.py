"""Rules for places that take more reading than a name and a value: prose, password files, manifests, encoded pairs."""

from __future__ import annotations

import binascii
import re
from collections.abc import Iterable

from memory_core.redaction import strength, values
from memory_core.redaction.lazy import lazy_pattern
from memory_core.redaction.rules import Rule, Span, group, strong_group

#: A manifest's `kind: Secret` stands this near to its data, bytes.
_MANIFEST_BYTES = 8 * 1024
#: Numbers, dates, versions and measures: `12345`, `2026-11-04T10:15:01Z`, `90%`, `600_000`, `12px`.
_MEASURE = lazy_pattern(r"[0-9][0-9_.,:/T+-]*[a-zA-Z%]{0,5}", re.ASCII)


def _spoken(data: bytes, _found: Span, inner: Span) -> Iterable[Span]:
    """A password in a sentence: the word behind it, without the sentence's own punctuation."""
    value_start, value_end, quoted = values.value_at(data, inner[0])
    value = data[value_start:value_end].rstrip(b".,;:!?") if not quoted else data[value_start:value_end]
    if _is_spoken_password(value):
        yield value_start, value_start + len(value)


def _is_spoken_password(value: bytes) -> bool:
    text = value.decode("utf-8", "replace")
    if len(text) < 6 or _MEASURE.fullmatch(text) or not any(char.isdigit() for char in text):
        return False
    return not (strength.is_placeholder(value) or strength.is_wordish(text) or strength.is_reference(text))


def _named_value(data: bytes, found: Span, inner: Span) -> Iterable[Span]:
    """`name: DB_PASSWORD` with its value in the next line or argument."""
    name = data[inner[0] : inner[1]].decode("ascii", "replace")
    if not strength.is_secret_name(name):
        return
    value_start, value_end, quoted = values.value_at(data, found[1])
    if strength.is_assigned_secret(name, data[value_start:value_end], quoted=quoted):
        yield value_start, value_end


def _manifest_value(data: bytes, found: Span, inner: Span) -> Iterable[Span]:
    """A base64 value under `data:` of a Kubernetes Secret."""
    near = data[max(0, found[0] - _MANIFEST_BYTES) : found[1] + _MANIFEST_BYTES].lower()
    if b"kind: secret" in near and not strength.is_wordish(data[inner[0] : inner[1]].decode()):
        yield inner[0], inner[1]


def _encoded_pair(data: bytes, _found: Span, inner: Span) -> Iterable[Span]:
    """Base64 of `user:password`."""
    body = data[inner[0] : inner[1]].rstrip(b"=")
    try:
        decoded = binascii.a2b_base64(body + b"=" * (-len(body) % 4))
    except binascii.Error:
        return
    if b":" in decoded[1:-1] and decoded.isascii():
        yield inner[0], inner[1]


_NAME = r"([a-z0-9_.-]{0,48}(?:password|passwd|pwd|passphrase|secret|token|key|_pat|_auth)[a-z0-9_]{0,8})"

RULES: tuple[Rule, ...] = (
    Rule(
        "password",
        "password passphrase passcode passwort passe contrase pwd",
        r"(?:password|passphrase|passcode|passwort|mot de passe|contraseña|pwd)(?:[ \t]{1,4}(?:for|of|on|to)(?:[ \t]{1,4}[a-z0-9_.'-]{1,24}){1,4})?"
        r"[ \t]{0,4}(?:is|was|=|:|->|ist|lautet|est|es)?(?:[ \t]{1,4}(?:now|still|set to|changed to|reset to|currently))?[ \t]{1,24}([^\s])",
        _spoken,
        fold=True,
    ),
    Rule("password", "machine login", r"login[ \t\r\n]{1,8}[^\s]{1,64}[ \t\r\n]{1,8}password[ \t]{1,8}([^\s]{4,256})", group, fold=True),
    Rule("password", ":*: pgpass :5432: :5433: :6432:", r"(?:^|\n)[ \t]{0,8}[A-Za-z0-9_.*-]{1,100}:(?:[0-9]{2,5}|\*):[A-Za-z0-9_.*-]{1,64}:[A-Za-z0-9_.*-]{1,64}:([^\s]{4,256})", strong_group),
    Rule("secret", "secret set", r"secrets?[ \t]{1,4}(?:set|put|create)[ \t]{1,4}" + _NAME + r"[ \t]{1,4}(?:--body|-b|--value|-v)?[= \t]{1,4}", _named_value, fold=True),
    Rule("secret", "value", r"name[\"']?:[ \t]{0,4}[\"']?" + _NAME + r"[\"']?,?[ \t\r\n]{1,40}[\"']?value[\"']?:[ \t]{0,4}", _named_value, fold=True),
    Rule("secret", "<password <secret <token <apikey <key", r"<" + _NAME + r">", _named_value, fold=True),
    Rule("password", "password passphrase", r"([^\s\"'`]{6,200})[\"'`]?[ \t]{1,4}(?:as|is)[ \t]{1,4}(?:the|my|your|our)[ \t]{1,4}(?:password|passphrase)", _spoken, fold=True),
    Rule("password", "auth", r"auth[ \t]{0,2}[=:][ \t]{0,2}[(\[][ \t]{0,2}[\"'][^\"'\n]{1,64}[\"'],[ \t]{0,4}[\"']([^\"'\n]{4,256})[\"']", strong_group, fold=True),
    Rule("password", "requirepass masterauth", r"(?:requirepass|masterauth)[ \t]{1,8}[\"']?([^\s\"']{6,})", strong_group, fold=True),
    Rule("password", "identified", r"identified[ \t]{1,4}by[ \t]{1,4}[\"']([^\"'\n]{4,256})[\"']", strong_group, fold=True),
    Rule("cookie", "value", r"name[\"']?:[ \t]{0,4}[\"']?(?:[a-z0-9_.-]{0,24}(?:sess|sid|jwt|auth)[a-z0-9_.-]{0,24})[\"']?,?[ \t\r\n]{1,40}[\"']?value[\"']?:[ \t]{0,4}[\"']?([a-z0-9_.%+/=~-]{20,})", strong_group, fold=True),
    Rule("secret", "kind: secret", r"\n[ \t]{1,8}[a-z0-9_.-]{1,64}:[ \t]{1,4}[\"']?([a-z0-9+/]{8,}={0,2})", _manifest_value, fold=True),
    Rule("authorization", "auth", r"_?auth[\"']?[ \t]{0,4}[:=][ \t]{0,4}[\"']?([a-z0-9+/]{12,}={0,2})", _encoded_pair, fold=True),
    Rule("authorization", "basic", r"basic[ \t]{1,4}([a-z0-9+/]{8,}={0,2})", _encoded_pair, fold=True),
)  # fmt: skip
