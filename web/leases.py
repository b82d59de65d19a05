"""Lease tokens: 32 bytes in base64url that only their holder keeps. From here on only their SHA-256 goes further."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from typing import Final

from memory_core.errors import Invalid

_BYTES: Final = 32


def lease_hash(token: str) -> bytes:
    """SHA-256 of a lease token's 32 bytes. Raises `Invalid`, without quoting it."""
    try:
        raw = base64.b64decode(token + "=", altchars=b"-_", validate=True)
    except (ValueError, binascii.Error):
        raw = b""
    # Written again it is the same: one token has one spelling.
    if len(raw) != _BYTES or base64.urlsafe_b64encode(raw) != token.encode() + b"=":
        raise Invalid("lease: 32 random bytes of your own, as base64url without padding")
    return hashlib.sha256(raw).digest()


def mint(key: bytes, principal: str, command_id: bytes) -> str:
    """A token that nobody without the install's key can guess, the same for the same command: a claim that is sent again is
    answered with the token that it has."""
    raw = hmac.digest(key, b"session lease\0" + principal.encode() + b"\0" + command_id, "sha256")
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")
