"""The spool: one file per hook event, on disk before the hook returns, deleted when the server has committed it.

A file is written beside its place, synced, renamed, and the directory synced; so an entry is whole or
absent. Light: standard library only, imported by the shim.
"""

from __future__ import annotations

import json
import os
import re

from memory_core import limits
from memory_core.durable import sync_directory

_NAME = re.compile(r"(\d{13})-(\d+)-([0-9a-f]+)\.json")
_TMP = re.compile(r"\.(\d{13}-\d+-[0-9a-f]+\.json)\.tmp")


class Entry:
    """One event that waits: `query` is the hook URL's query without the key, `tries` counts refusals."""

    __slots__ = ("body", "created_ms", "key", "name", "query", "size", "tries")

    def __init__(
        self, *, name: str, query: str, body: object, created_ms: int, key: str, tries: int, size: int = 0
    ) -> None:
        self.name = name
        self.query = query
        self.body = body
        self.created_ms = created_ms
        self.key = key
        self.tries = tries
        self.size = size

    @property
    def url(self) -> str:
        return f"/hook?{self.query}&ingest_key={self.key}"

    def to_bytes(self) -> bytes:
        record = {
            "v": 1,
            "query": self.query,
            "body": self.body,
            "created_ms": self.created_ms,
            "key": self.key,
            "tries": self.tries,
        }
        return json.dumps(record, separators=(",", ":"), allow_nan=False).encode("ascii")


class Spool:
    def __init__(self, directory: str) -> None:
        self.directory = directory

    def add(self, *, query: str, body: object, now_us: int, seq: int) -> Entry:
        """Keep one event; returns when it is on disk. Raises `OSError` when it cannot be kept."""
        self._make()
        now_ms = now_us // 1000
        name = self._free_name(now_ms, seq)
        entry = Entry(name=name, query=query, body=body, created_ms=now_ms, key=mint_key(now_us), tries=0)
        self._write(name, entry.to_bytes())
        return entry

    def names(self) -> list[str]:
        """Names of the entries, in the order in which they were made."""
        try:
            found = os.listdir(self.directory)
        except FileNotFoundError:
            return []
        keyed = [((int(m[1]), int(m[3], 16)), name) for name in found if (m := _NAME.fullmatch(name))]
        return [name for _, name in sorted(keyed)]

    def oldest_seconds(self, now_us: int) -> float | None:
        """For how long the oldest entry has waited; None when nothing waits."""
        names = self.names()
        return max(0.0, now_us / 1e6 - int(names[0][:13]) / 1e3) if names else None

    def read(self, name: str) -> Entry | None:
        """The entry, or None when it is gone. A file that is no entry is moved aside."""
        try:
            with open(os.path.join(self.directory, name), "rb") as file:
                data = file.read()
        except FileNotFoundError:
            return None
        entry = _entry(name, data)
        if entry is None:
            self.reject(name, "not an entry of the spool")
        return entry

    def remove(self, name: str) -> None:
        _unlink(os.path.join(self.directory, name))

    def count_try(self, entry: Entry) -> None:
        """One more refusal. The key stays, so a late effect of an earlier send is found again."""
        entry.tries += 1
        self._write(entry.name, entry.to_bytes())

    def reject(self, name: str, reason: str) -> None:
        """Move an entry aside with the reason; it is not sent again and not lost."""
        aside = self._aside("")
        os.makedirs(aside, mode=0o700, exist_ok=True)
        try:
            os.rename(os.path.join(self.directory, name), os.path.join(aside, name))
        except FileNotFoundError:
            return
        with open(
            os.open(os.path.join(aside, f"{name}.reason"), _CREATE, 0o600), "w", encoding="utf-8"
        ) as file:
            file.write(reason[:2_000] + "\n")
        kept = sorted(found for found in os.listdir(aside) if found.endswith(".json"))
        for old in kept[: -limits.SPOOL_REJECTED_FILES_MAX]:
            self.discard(old)

    def rejected(self) -> list[str]:
        """Names of the entries that lie aside, oldest first."""
        try:
            return sorted(n for n in os.listdir(self._aside("")) if n.endswith(".json"))
        except FileNotFoundError:
            return []

    def reason(self, name: str) -> str:
        """Why an entry lies aside; empty when nothing says so."""
        try:
            with open(self._aside(f"{name}.reason"), encoding="utf-8", errors="replace") as file:
                return file.read().strip()
        except FileNotFoundError:
            return ""

    def take_back(self, name: str) -> None:
        """Put an entry that lies aside among those that wait, its key as it was and its tries forgotten."""
        with open(self._aside(name), "rb") as file:
            entry = _entry(name, file.read())
        if entry is None:
            raise ValueError(f"{name} is no whole entry; it can only be discarded")
        entry.tries = 0
        self._write(name, entry.to_bytes())
        self.discard(name)

    def discard(self, name: str) -> None:
        """Delete an entry that lies aside."""
        _unlink(self._aside(name))
        _unlink(self._aside(f"{name}.reason"))

    def evict(self, now_us: int, *, files_max: int = limits.SPOOL_FILES_MAX) -> list[str]:
        """Remove what is too old or too much, the oldest first; returns the names, for a warning."""
        names = self.names()
        oldest_ms = now_us // 1000 - limits.SPOOL_DAYS * 86_400_000
        surplus = max(0, len(names) - files_max)
        gone = [name for n, name in enumerate(names) if n < surplus or int(name[:13]) < oldest_ms]
        for name in gone:
            self.remove(name)
        return gone

    def take_orphans(self, now_us: int) -> list[str]:
        """Take in whole entries of shims that died between writing and renaming; drop torn ones."""
        try:
            found = [name for name in os.listdir(self.directory) if _TMP.fullmatch(name)]
        except FileNotFoundError:
            return []
        taken: list[str] = []
        for tmp in found:
            path = os.path.join(self.directory, tmp)
            try:
                if now_us / 1e6 - os.stat(path).st_mtime < limits.SPOOL_ORPHAN_SECONDS:
                    continue
                with open(path, "rb") as file:
                    data = file.read()
                name = tmp[1:-4]
                if _entry(name, data) is None or os.path.exists(os.path.join(self.directory, name)):
                    os.unlink(path)
                    continue
                os.rename(path, os.path.join(self.directory, name))
                taken.append(name)
            except FileNotFoundError:
                continue  # its shim lives and went on
        return taken

    def _aside(self, name: str) -> str:
        return os.path.join(self.directory, "rejected", name)

    def _make(self) -> None:
        os.makedirs(os.path.dirname(self.directory), mode=0o700, exist_ok=True)
        try:
            os.mkdir(self.directory, 0o700)
        except FileExistsError:
            pass

    def _free_name(self, now_ms: int, seq: int) -> str:
        """Process ids repeat between containers that share a home: a taken name is passed over."""
        while os.path.exists(
            os.path.join(self.directory, name := f"{now_ms:013d}-{os.getpid()}-{seq:x}.json")
        ):
            seq += 1
        return name

    def _write(self, name: str, data: bytes) -> None:
        tmp = os.path.join(self.directory, f".{name}.tmp")
        descriptor = os.open(tmp, _CREATE, 0o600)
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(descriptor, view) :]
            os.fsync(descriptor)
        except OSError:
            os.close(descriptor)
            _unlink(tmp)
            raise
        os.close(descriptor)
        os.rename(tmp, os.path.join(self.directory, name))
        sync_directory(self.directory)


_CREATE = os.O_CREAT | os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC


def mint_key(now_us: int) -> str:
    """A UUIDv7 in hex: the server reads from it that memoryd minted it, and when.

    Written out here because importing `uuid` takes as long as all the rest of the shim.
    """
    high = (now_us // 1000) << 16 | 0x7000 | int.from_bytes(os.urandom(2), "big") & 0xFFF
    low = int.from_bytes(os.urandom(8), "big") & 0x3FFF_FFFF_FFFF_FFFF | 0x8000_0000_0000_0000
    return f"{high:016x}{low:016x}"


def _entry(name: str, data: bytes) -> Entry | None:
    try:
        record = json.loads(data)
        return Entry(
            name=name,
            query=str(record["query"]),
            body=record["body"],
            created_ms=int(record["created_ms"]),
            key=str(record["key"]),
            tries=int(record["tries"]),
            size=len(data),
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
