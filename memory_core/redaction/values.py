"""From a place where a secret may stand to the secret: where the value begins and ends, and whether it is one.

Placeholders, references to variables, identifiers and sentences are not secrets. Standard library only.
"""

from __future__ import annotations

from collections.abc import Iterable

from memory_core.redaction import strength
from memory_core.redaction.lazy import lazy_pattern
from memory_core.redaction.strength import is_blank_token, is_strong

__all__ = ["is_blank_token", "is_strong"]  # rules.py reads them from here

#: Longest value that is looked for behind a name, bytes.
VALUE_MAX_BYTES = 4096
#: Longest private key block, bytes.
BLOCK_MAX_BYTES = 64 * 1024

_QUOTES = (b'\\\\\\"', b'\\"', b"\\'", b'"', b"'", b"`", "“".encode(), "‘".encode(), "«".encode())
_CLOSING = {"“".encode(): "”".encode(), "‘".encode(): "’".encode(), "«".encode(): "»".encode()}
_RUN = lazy_pattern(rb"[^ \t\r\n\"'`<>\x00\x1b]{0,4096}")
#: A line end or quote of an enclosing string.
_ESCAPED_END = lazy_pattern(rb"\\[nrt\"]")
_BASE64_BYTES = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="

Span = tuple[int, int]


def value_at(data: bytes, start: int) -> tuple[int, int, bool]:
    """Where the value that begins at `start` lies, and whether it is quoted.

    A quoted value ends at its quote in the same line; a bare one at white space or at a quote.
    """
    if data[start : start + 2] in (b"b'", b'b"', b"r'", b'r"', b"f'", b'f"', b"u'", b'u"', b'@"', b"$'"):
        start += 1
    for quote in _QUOTES:
        if data.startswith(quote, start):
            begin = start + len(quote)
            end = data.find(_CLOSING.get(quote, quote), begin, begin + VALUE_MAX_BYTES)
            if end < 0 or b"\n" in data[begin:end]:
                return _bare(data, begin)
            return begin, end, True
    return _bare(data, start)


def _bare(data: bytes, start: int) -> tuple[int, int, bool]:
    run = _RUN.match(data, start)
    end = run.end() if run else start
    if b"\\" in data[start:end] and (escape := _ESCAPED_END.search(data, start, end)) is not None:
        end = escape.start()
    end = start + strength.cut_at_next_pair(data[start:end])
    return start, start + len(data[start:end].rstrip(b",;)]}.")), False


def assigned(data: bytes, found: Span, _inner: Span) -> Iterable[Span]:
    """`NAME = value` for a name that ends in password, token, key, …"""
    if data[found[1] : found[1] + 1] in (b"=", b">"):
        return  # a comparison or an arrow
    name = strength.name_before(data, found[0], found[1])
    if name is None:
        return
    value_start, value_end, quoted = value_at(data, found[1])
    value = data[value_start:value_end]
    if not quoted and value.endswith(b"=") and data[value_end : value_end + 1] in (b'"', b"'"):
        return  # an attribute of markup: name="password" :rules="…"
    if strength.is_assigned_secret(name, value, quoted=quoted):
        yield value_start, value_end


def element(data: bytes, found: Span, _inner: Span) -> Iterable[Span]:
    """`<password>value</password>`."""
    end = data.find(b"<", found[1], found[1] + VALUE_MAX_BYTES)
    value = data[found[1] : max(end, found[1])]
    if b"\n" in value or data[found[1] - 2 : found[1] - 1] in (b"-", b"="):
        return
    if strength.name_before(data, found[0], found[1]) and strength.is_assigned_secret(
        "password", value, quoted=True
    ):
        yield found[1], end


def second_argument(data: bytes, found: Span, _inner: Span) -> Iterable[Span]:
    """`define("DB_PASSWORD", "value")`."""
    value_start, value_end, quoted = value_at(data, found[1] - 1)
    if quoted and is_strong(data[value_start:value_end]) and strength.name_before(data, *found):
        yield value_start, value_end


def spoken_token(data: bytes, found: Span, _inner: Span) -> Iterable[Span]:
    """`the token is value`, `set API_TOKEN value`: long generated values only."""
    words = data[found[0] : found[1]].split()
    value = words[-1].strip(b"\"'`").rstrip(b".,")
    name = found[0], found[0] + len(words[0])
    is_named = b"is" in words[:-1] or strength.name_before(data, *name)
    if len(value) >= 16 and is_strong(value) and is_named:
        start = data.find(value, found[0] + len(words[0]))
        yield start, start + len(value)


def flag_value(data: bytes, found: Span, _inner: Span) -> Iterable[Span]:
    """`--password value`."""
    value_start, value_end, quoted = value_at(data, found[1])
    name = data[found[0] : found[1]].strip(b"-= \t").decode("ascii", "replace").replace("-", "_")
    if strength.is_assigned_secret(name, data[value_start:value_end], quoted=quoted):
        yield value_start, value_end


def argument(data: bytes, found: Span, _inner: Span) -> Iterable[Span]:
    """A password as the next argument of a command."""
    value_start, value_end, quoted = value_at(data, found[1])
    value = data[value_start:value_end]
    if (
        len(value) >= 4
        and not value.startswith(b"-")
        and strength.is_assigned_secret("password", value, quoted=quoted)
    ):
        yield value_start, value_end


def user_and_password(data: bytes, found: Span, _inner: Span) -> Iterable[Span]:
    """`-u user:password`: the part behind the colon."""
    value_start, value_end, _ = value_at(data, found[1])
    colon = data.find(b":", value_start, value_end)
    if colon < 0 or data[colon + 1 : colon + 3] == b"//":
        return
    if not strength.is_placeholder(data[colon + 1 : value_end]) and value_end - colon > 4:
        yield colon + 1, value_end


def url_password(data: bytes, _found: Span, inner: Span) -> Iterable[Span]:
    """The password in a URL's user part."""
    if not strength.is_placeholder(data[inner[0] : inner[1]]):
        yield inner[0], inner[1]


def cookies(data: bytes, _found: Span, inner: Span) -> Iterable[Span]:
    """The long values of a cookie header's pairs; `Path`, `Expires` and their like are short or wordy."""
    position = inner[0]
    for pair in data[inner[0] : inner[1]].split(b";"):
        name, equals, value = pair.partition(b"=")
        begin = position + len(name) + len(equals)
        value = value.split(b"'")[0].split(b'"')[0].rstrip()
        if equals and len(value) >= 16 and is_strong(value):
            yield begin, begin + len(value)
        position += len(pair) + 1


def jwt(data: bytes, found: Span, _inner: Span) -> Iterable[Span]:
    """Three parts (signed) or five (encrypted)."""
    before = data[found[0] - 1 : found[0]]
    if before.isalnum() and data[max(0, found[0] - 2) : found[0]] not in (b"\\n", b"\\t"):
        return
    parts = data[found[0] : found[1]].rstrip(b".").split(b".")
    if len(parts) >= 3 and min(len(part) for part in parts[:3]) >= 6:
        yield found[0], found[1]


def pem_block(data: bytes, found: Span, _inner: Span) -> Iterable[Span]:
    """From BEGIN to END; without an END (cut off output) to the end of what looks like its body."""
    # The next BEGIN bounds the search for END, so that many BEGINs do not each look through the same text.
    following = data.find(b"-----BEGIN ", found[1], found[1] + BLOCK_MAX_BYTES)
    limit = following if following >= 0 else min(len(data), found[1] + BLOCK_MAX_BYTES)
    close = data.find(b"-----END ", found[1], limit)
    if close >= 0:
        tail = data.find(b"-----", close + 9, close + 80)
        stop = tail + 5 if tail >= 0 else min(len(data), close + 9)
        if _base64_bytes(data[found[1] : min(close, found[1] + 512)]) >= 8:
            yield found[0], stop
        return
    stop = _end_of_body(data, found[1], limit)
    if stop > found[1]:
        yield found[0], stop


def putty_block(data: bytes, found: Span, _inner: Span) -> Iterable[Span]:
    """The private lines of a PuTTY key file."""
    stop = _end_of_body(data, found[1], min(found[1] + BLOCK_MAX_BYTES, len(data)))
    if stop > found[1]:
        yield found[0], stop


def _end_of_body(data: bytes, start: int, limit: int) -> int:
    """The end of the last long base64 line before one that is none; `start` if there is none at all."""
    stop = position = start
    skipped = 0
    while position < limit and skipped < 3:
        line_end = data.find(b"\n", position, limit)
        escaped_end = data.find(b"\\n", position, limit if line_end < 0 else line_end)
        step = 2 if escaped_end >= 0 else 1
        line_end = escaped_end if escaped_end >= 0 else (limit if line_end < 0 else line_end)
        words = data[position:line_end].split()
        if words and len(words[-1]) >= 16 and _base64_bytes(words[-1]) >= len(words[-1]) - 2:
            stop, skipped = line_end, 0
        else:
            skipped += 1
        position = line_end + step
    return stop


def _base64_bytes(data: bytes) -> int:
    return len(data) - len(data.translate(None, _BASE64_BYTES))
