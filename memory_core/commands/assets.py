"""Assets: booking a file that the gate has put in its place."""

from __future__ import annotations

from dataclasses import dataclass

from memory_core import limits
from memory_core.commands import Answer, command
from memory_core.domain.command import Refusal
from memory_core.store import assets
from memory_core.store.transaction import Transaction


@dataclass(frozen=True, kw_only=True)
class CatalogueAsset:
    """A file under that digest, of that many bytes, is in its place and whole."""

    sha256: bytes
    bytes: int


@command(CatalogueAsset, name="catalogue_asset")
def catalogue(body: CatalogueAsset, tx: Transaction) -> Answer | Refusal:
    """Answer: `{"sha256", "bytes"}`."""
    if len(body.sha256) != 32 or not 0 <= body.bytes <= limits.ASSET_MAX_BYTES:
        return Refusal(code="invalid", message="an asset has a SHA-256 and a size within the limit")
    known = assets.size_of(tx, body.sha256)
    if known is not None and known != body.bytes:
        return Refusal(
            code="corrupt",
            message=f"asset {body.sha256.hex()} is catalogued with {known} bytes; compare the file with a backup of assets/",
        )
    assets.catalogue(tx, sha256=body.sha256, size=body.bytes)
    return {"sha256": body.sha256.hex(), "bytes": body.bytes}
