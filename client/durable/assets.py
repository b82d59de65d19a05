"""Files beside a transcript: taken in by digest, referred to by messages, read back by whoever resumes."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Callable
from pathlib import Path

from client.durable.transport import Transport
from memory_core import limits
from memory_core.domain.agent_message import AssetKind, AssetReference
from memory_core.errors import Corrupt, Invalid, NotFound


class Assets:
    """Assets of one session. What this program took in itself it need not ask the server for."""

    def __init__(self, transport: Transport, session_id: Callable[[], str]) -> None:
        self._transport = transport
        self._session_id = session_id
        self._here: dict[str, bytes | Path] = {}

    def take_in(self, source: bytes | str | os.PathLike[str], kind: str) -> AssetReference:
        """Send bytes, or a file by its path; a reference for messages. Raises `Invalid`."""
        if kind not in set(AssetKind):
            raise Invalid(f"an asset's kind is one of {', '.join(AssetKind)}, not {kind!r}")
        given = source if isinstance(source, bytes) else Path(source)
        size = len(given) if isinstance(given, bytes) else _size_of(given)
        if size > limits.ASSET_MAX_BYTES:
            raise Invalid(f"an asset has at most {limits.ASSET_MAX_BYTES // limits.MIB} MiB")
        with _opened(given) as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            file.seek(0)
            answer = self._transport.upload(f"/assets?kind={kind}", file, size)
        # Of a text the server may have redacted something: the reference is to what is kept.
        if answer["sha256"] == digest:
            self._here[digest] = given
        return AssetReference(sha256=str(answer["sha256"]), bytes=int(answer["bytes"]), kind=AssetKind(kind))

    def read(self, reference: AssetReference) -> bytes:
        """The bytes of an asset that this program took in, or that an event of the session refers to.

        Raises `NotFound`, `Corrupt`.
        """
        data = self._own(reference)
        if data is None:
            data = self._fetched(reference)
        if hashlib.sha256(data).hexdigest() != reference.sha256:
            raise Corrupt(f"the asset {reference.sha256} was changed")
        return data

    def _own(self, reference: AssetReference) -> bytes | None:
        source = self._here.get(reference.sha256)
        if not isinstance(source, Path):
            return source
        try:
            with source.open("rb") as file:
                data = file.read(reference.bytes + 1)
        except OSError:
            return None
        # The file may be another one by now; the server has the one that was taken in.
        return data if hashlib.sha256(data).hexdigest() == reference.sha256 else None

    def _fetched(self, reference: AssetReference) -> bytes:
        base = f"/durable-sessions/{self._session_id()}"
        links = self._transport.read(f"{base}/assets")
        found = next((link for link in links if link["sha256"] == reference.sha256), None)
        if found is None:
            raise NotFound("no event of this session refers to that asset")
        place = f"{base}/events/{found['event_id']}/assets/{found['ordinal']}"
        return self._transport.download(place, reference.bytes)


def _opened(source: bytes | Path) -> io.BytesIO | io.BufferedReader:
    return io.BytesIO(source) if isinstance(source, bytes) else source.open("rb")


def _size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError as error:
        raise Invalid(f"{path} cannot be read ({error.strerror})") from error
