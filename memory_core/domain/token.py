"""memoryd's own access token: how its text is made, read, and compared. Only the digest is ever stored."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field

from memory_core.errors import Invalid

#: Marks our tokens in any text; the redaction rules look for it.
PREFIX = "mdt_"
#: What a token may be for, the mightiest first; `web.auth` says what each may do.
SCOPES = ("admin", "write", "read", "capture", "pool")
#: Random bytes of the secret part.
SECRET_BYTES = 32
#: Characters of the public id.
PUBLIC_ID_CHARS = 8

_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_SHAPE = re.compile(r"mdt_([0-9a-z]{8})_([A-Za-z0-9_-]{43})_([0-9A-Za-z]{6})", re.ASCII)


@dataclass(frozen=True, kw_only=True)
class Token:
    """A token at the one moment when its text is known."""

    #: Shown once to its owner and never stored.
    text: str = field(repr=False)
    #: Names the token in logs and in the table; not secret.
    public_id: str
    #: SHA-256 of the 32 secret bytes: what is stored.
    digest: bytes = field(repr=False)


def mint(random: Callable[[int], bytes] = os.urandom) -> Token:
    """A new token. `random(n)` gives n unpredictable bytes (tests may pass their own)."""
    public_id = _base36(random(PUBLIC_ID_CHARS))
    secret = random(SECRET_BYTES)
    body = f"{PREFIX}{public_id}_{base64.urlsafe_b64encode(secret).decode().rstrip('=')}"
    return Token(text=f"{body}_{_checksum(body)}", public_id=public_id, digest=digest_of(secret))


def parse(text: str) -> tuple[str, bytes]:
    """The public id and the secret's digest of a token's text.

    Raises `Invalid`, without quoting the text, when it is no token or was mistyped: the checksum
    says so before anything is looked up. A right checksum proves nothing about the token's validity.
    """
    match = _SHAPE.fullmatch(text)
    if match is None:
        raise Invalid("this is not a memoryd token")
    public_id, secret_text, checksum = match.groups()
    if checksum != _checksum(text[: -len(checksum) - 1]):
        raise Invalid("the token is mistyped or cut short")
    return public_id, digest_of(base64.urlsafe_b64decode(secret_text + "="))


def digest_of(secret: bytes) -> bytes:
    """SHA-256. A slow password hash is not needed: the secret has 256 random bits."""
    return hashlib.sha256(secret).digest()


def digests_equal(one: bytes, other: bytes) -> bool:
    """Compare in a time that does not depend on where they differ."""
    return hmac.compare_digest(one, other)


def _checksum(body: str) -> str:
    """CRC-32 in base 62, six characters."""
    number, digits = zlib.crc32(body.encode()), ""
    for _ in range(6):
        number, digit = divmod(number, 62)
        digits = _ALPHABET[digit] + digits
    return digits


def _base36(raw: bytes) -> str:
    # A byte modulo 36 is slightly uneven; an id needs to be unlikely to repeat, not unguessable.
    return "".join(_ALPHABET[byte % 36].lower() for byte in raw)
