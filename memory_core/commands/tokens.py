"""Access tokens: giving them out and taking them back. Their secrets never come here, only their digests."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from memory_core import limits
from memory_core.commands import Answer, command
from memory_core.domain.command import Refusal
from memory_core.domain.token import SCOPES
from memory_core.store import audit, principals
from memory_core.store.transaction import Transaction

_NAME = re.compile(rf"[A-Za-z0-9][A-Za-z0-9 ._@'-]{{0,{limits.NAME_MAX_CHARS - 1}}}")


@dataclass(frozen=True, kw_only=True)
class CreateToken:
    """Let the token with this digest in. `name` tells it from others; no two that count have the same."""

    public_id: str
    #: SHA-256 of the secret, 32 bytes.
    digest: bytes = field(repr=False)
    scope: str
    name: str
    principal: str
    #: UTC microseconds; None for no end.
    expires_at: int | None = None


@dataclass(frozen=True, kw_only=True)
class RevokeToken:
    """Let a token in no more. `which` is its public id, or the name of one that counts.

    A field named `token` would be redacted on its way."""

    which: str


@command(CreateToken, name="create_token")
def create(body: CreateToken, tx: Transaction) -> Answer | Refusal:
    """Answer: `{"id", "name", "scope", "principal"}`."""
    refusal = _only_admins(tx) or _unfit(body, tx)
    if refusal is not None:
        return refusal
    principals.add_token(
        tx,
        body.public_id,
        body.digest,
        principal=body.principal,
        scope=body.scope,
        name=body.name,
        expires_at=body.expires_at,
    )
    told = {"id": body.public_id, "name": body.name, "scope": body.scope, "principal": body.principal}
    audit.record(tx, "token_created", detail=told)
    return told


@command(RevokeToken, name="revoke_token")
def revoke(body: RevokeToken, tx: Transaction) -> Answer | Refusal:
    """Answer: `{"id", "name", "status": "revoked"}`, also for one that was revoked before."""
    refusal = _only_admins(tx)
    if refusal is not None:
        return refusal
    found = principals.token_by_public_id(tx, body.which)
    if found is None:
        named = principals.live_by_name(tx, body.which, tx.now)
        found = None if named is None else principals.token_by_public_id(tx, named)
    if found is None:
        return Refusal(code="not_found", message=f"there is no token {body.which[:64]!r}")
    counts = found["revoked_at"] is None and (found["expires_at"] is None or found["expires_at"] > tx.now)
    if counts and found["scope"] == "admin" and principals.live_admins(tx, tx.now) == 1:
        return Refusal(
            code="conflict", message="this is the last token of scope admin; create another one before"
        )
    principals.revoke(tx, found["public_id"])
    told = {"id": str(found["public_id"]), "name": str(found["name"])}
    audit.record(tx, "token_revoked", detail=told)
    return {**told, "status": "revoked"}


def _only_admins(tx: Transaction) -> Refusal | None:
    if tx.token_scope == "admin":  # noqa: S105 - the name of a scope
        return None
    return Refusal(code="forbidden", message="tokens need a token of scope admin")


def _unfit(body: CreateToken, tx: Transaction) -> Refusal | None:
    if body.scope not in SCOPES:
        return Refusal(code="invalid", message=f"scope is one of: {', '.join(SCOPES)}")
    for what, text in (("name", body.name), ("principal", body.principal)):
        if not _NAME.fullmatch(text):
            return Refusal(
                code="invalid",
                message=f"{what}: at most {limits.NAME_MAX_CHARS} letters, digits, spaces and . _ @ -, a letter or digit first",
            )
    if body.expires_at is not None and body.expires_at <= tx.now:
        return Refusal(code="invalid", message="the token would be over before it counts")
    if principals.live_by_name(tx, body.name, tx.now) is not None:
        return Refusal(
            code="conflict",
            message=f"there is a token {body.name!r} already; revoke it, or choose another name",
        )
    if principals.token_by_public_id(tx, body.public_id) is not None:
        return Refusal(code="conflict", message="a token with this id exists; try again")
    if principals.count(tx) >= limits.TOKENS_MAX:
        return Refusal(code="conflict", message=f"there are {limits.TOKENS_MAX} tokens, and no more are kept")
    return None
