"""Files that events refer to: looked at in the plan, sent before the events, and named in them as memoryd keeps them."""

from __future__ import annotations

import codecs
import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from client.durable.transport import Transport
from client.emelex.plan import Asset
from memory_core import limits


@dataclass(frozen=True, kw_only=True)
class Kept:
    """An asset as memoryd has it; of a text something may have been redacted."""

    sha256: str
    bytes: int


class Files:
    """The older program's directory of assets: each under its SHA-256."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def looked_at(self, sha256: str) -> Asset:
        """Its size, and what is wrong with it."""
        try:
            with self._opened(sha256) as file:
                size = os.fstat(file.fileno()).st_size
                digest, is_text = _read(file)
        except OSError as error:
            return Asset(sha256=sha256, bytes=0, problem=f"its file cannot be read ({error.strerror})")
        problem = ""
        if digest != sha256:
            problem = "its file was changed: it has another SHA-256"
        elif size > limits.ASSET_MAX_BYTES:
            problem = f"it has more than {limits.ASSET_MAX_BYTES // limits.MIB} MiB"
        elif is_text and size > limits.ASSET_TEXT_MAX_BYTES:
            problem = f"it is a text of more than {limits.ASSET_TEXT_MAX_BYTES // limits.KIB} KiB, which memoryd keeps as no asset"
        return Asset(sha256=sha256, bytes=size, problem=problem)

    def send(self, transport: Transport, asset: Asset, kind: str) -> Kept:
        """Raises what the server refuses, and `OSError`."""
        with self._opened(asset.sha256) as file:
            answer = transport.upload(f"/assets?kind={kind}", file, asset.bytes)
        return Kept(sha256=str(answer["sha256"]), bytes=int(answer["bytes"]))

    def _opened(self, sha256: str) -> Any:
        descriptor = os.open(
            self._directory / sha256, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        )
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise OSError(0, "it is no file")
        return os.fdopen(descriptor, "rb")


def _read(file: Any) -> tuple[str, bool]:
    """SHA-256, and whether all of it is text."""
    digest, decoder, is_text = hashlib.sha256(), codecs.getincrementaldecoder("utf-8")(), True
    while chunk := file.read(limits.ASSET_CHUNK_BYTES):
        digest.update(chunk)
        if is_text:
            try:
                is_text = "\x00" not in decoder.decode(chunk)
            except UnicodeDecodeError:
                is_text = False
    return digest.hexdigest(), is_text


def named_in(value: Any) -> Iterator[str]:
    """The digests of assets that messages in a JSON value refer to."""
    for reference in _references(value):
        if isinstance(reference.get("sha256"), str):
            yield reference["sha256"]


def renamed(value: Any, kept: Mapping[str, Kept], notes: Mapping[str, str]) -> Any:
    """A JSON value whose messages refer to assets as memoryd has them; to one that it does not have, a note in its place."""
    if isinstance(value, list):
        return [renamed(item, kept, notes) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    told = cast("dict[str, Any]", value)
    reference = _reference_of(told)
    if reference is None:
        return {name: renamed(item, kept, notes) for name, item in told.items()}
    sha256 = reference.get("sha256")
    if sha256 in notes:
        return {"type": "text", "data": f"[asset {sha256} was not imported: {notes[cast('str', sha256)]}]"}
    found = kept.get(cast("str", sha256))
    if found is None:
        return told
    return {**told, "data": {**reference, "sha256": found.sha256, "bytes": found.bytes}}


def _references(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from _references(item)
    elif isinstance(value, dict):
        told = cast("dict[str, Any]", value)
        reference = _reference_of(told)
        if reference is not None:
            yield reference
        else:
            for item in told.values():
                yield from _references(item)


def _reference_of(value: dict[str, Any]) -> dict[str, Any] | None:
    data = value.get("data")
    return cast("dict[str, Any]", data) if value.get("type") == "asset" and isinstance(data, dict) else None
