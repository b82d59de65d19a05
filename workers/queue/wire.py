"""What one entry of the stream holds: an envelope as MessagePack, its body inside or named."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from memory_core.domain.command import Envelope
from memory_core.errors import Invalid

#: The one field of a stream entry.
FIELD = b"e"
FORMAT = 1


@dataclass(frozen=True, kw_only=True)
class BodyReference:
    """A body that lies beside the stream: the name of its file in `incoming/` and its size in bytes."""

    name: str
    size: int


class Packed(msgspec.Struct, array_like=True, frozen=True, kw_only=False):
    """The entry as it lies in the stream. New fields go to the end, with a default; a change of meaning
    raises `FORMAT`, and older writers then set the entry aside instead of guessing.
    """

    format: int
    id: bytes
    name: str
    version: int
    body: bytes
    body_hash: bytes
    principal: str
    token_scope: str
    recorded_at: int
    is_foreign: bool
    wants_reply: bool
    not_after: int | None
    beside_name: str = ""
    beside_size: int = 0

    @property
    def reference(self) -> BodyReference | None:
        return BodyReference(name=self.beside_name, size=self.beside_size) if self.beside_name else None

    def envelope(self, body: bytes) -> Envelope:
        return Envelope(
            id=self.id,
            name=self.name,
            version=self.version,
            body=body,
            body_hash=self.body_hash,
            principal=self.principal,
            token_scope=self.token_scope,
            recorded_at=self.recorded_at,
            is_foreign=self.is_foreign,
            wants_reply=self.wants_reply,
            not_after=self.not_after,
        )


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Packed)


def pack(envelope: Envelope, reference: BodyReference | None = None) -> bytes:
    """The bytes of an entry; with a `reference` the body is left out and named."""
    return _encoder.encode(
        Packed(
            FORMAT,
            envelope.id,
            envelope.name,
            envelope.version,
            b"" if reference else envelope.body,
            envelope.body_hash,
            envelope.principal,
            envelope.token_scope,
            envelope.recorded_at,
            envelope.is_foreign,
            envelope.wants_reply,
            envelope.not_after,
            reference.name if reference else "",
            reference.size if reference else 0,
        )
    )


def open_packed(raw: bytes) -> Packed:
    """The entry in these bytes; `Invalid` when they are not one that this release reads."""
    try:
        packed = _decoder.decode(raw)
    except msgspec.MsgspecError as error:
        raise Invalid(f"an entry of the stream cannot be read: {error}") from error
    if packed.format != FORMAT or len(packed.id) != 16 or packed.beside_size < 0:
        raise Invalid(f"an entry of the stream has format {packed.format}, this release reads {FORMAT}")
    return packed


def unpack(raw: bytes) -> Envelope:
    """The envelope of an entry that carries its body; `Invalid` for any other bytes."""
    packed = open_packed(raw)
    if packed.reference:
        raise Invalid("the body of this entry lies beside the stream")
    return packed.envelope(packed.body)
