"""Facts about the running system, for status answers: never an error, a part that is away says so."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from memory_core import limits
from memory_core.clock import MICROSECONDS, Clock
from memory_core.config import Settings
from memory_core.errors import CoreError
from memory_core.store import git_batches
from memory_core.store.database import Database
from web import embedding_state, model_state
from web.line import Line
from workers import heartbeat
from workers.queue.disk import DiskGauge

_WIKI_IN_SHORT = (
    "status",
    "away",
    "watcher",
    "looked_at",
    "files",
    "pages",
    "waiting",
    "unwritten",
    "broken",
    "held",
    "troubles_in_all",
)
#: Files and folders that are named in a short answer; `/api/v1/wiki` names more.
_NAMED = 10


def wiki_state(settings: Settings, clock: Clock) -> dict[str, Any]:
    """The writer's status of the wiki, whole; `status` is `ok`, `held` (files vanished) or `silent`."""
    try:
        state: dict[str, Any] = json.loads((settings.run_dir / "wiki.status.json").read_bytes())
    except (OSError, ValueError):
        return {"status": "ok", "looked_at": None}
    silent = (clock.now_us() - int(state["written_at"])) / MICROSECONDS
    return {**state, "status": "silent"} if silent > limits.WIKI_SILENT_SECONDS else state


#: What the history's thread says of itself while all is in order; `busy`: somebody else is at work in the repository.
_GIT_WORKS = ("ok", "starting", "busy", "repairing")


class Vitals:
    def __init__(
        self,
        *,
        settings: Settings,
        clock: Clock,
        line: Line,
        disk: DiskGauge,
        database: Database,
        version: str,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._line = line
        self._disk = disk
        self._database = database
        self._version = version
        self._models_configured = model_state.Configured(settings)

    def read(self) -> Mapping[str, Any]:
        """`{version, url, port, data_dir, sqlite, broker, backlog, writer, git, disk, wiki, models, vectors}`."""
        return {
            "version": self._version,
            "url": self._settings.url,
            "port": self._settings.port,
            "sqlite": self._database.version,
            "data_dir": str(self._settings.data_dir),
            **self._broker(),
            "writer": self._writer(),
            "git": self._history(),
            "disk": self._disk_state(),
            "wiki": self.wiki(),
            "models": self._models(),
            "vectors": self._vectors(),
        }

    def wiki(self) -> dict[str, Any]:
        """What the writer last saw of the wiki's files, in short; the whole is at `/api/v1/wiki`."""
        state = wiki_state(self._settings, self._clock)
        short = {name: state[name] for name in _WIKI_IN_SHORT if name in state}
        if troubles := state.get("troubles"):
            short["troubles"] = troubles[:_NAMED]
        if strangers := state.get("strangers"):
            short["strangers"] = dict(list(strangers.items())[:_NAMED])
        return short

    def _models(self) -> dict[str, Any]:
        """A budget that is used up is no failure: there is no `status` here."""
        try:
            with self._database.snapshot() as reading:
                return model_state.short(reading, self._models_configured, self._clock.now_us())
        except CoreError as error:
            return {"state": "unknown", "reason": str(error)}

    def _vectors(self) -> dict[str, Any]:
        """How far embeddings are. That some are missing is no failure: words answer."""
        try:
            with self._database.snapshot() as reading:
                return embedding_state.shape(reading)
        except CoreError as error:
            return {"state": "unknown", "reason": str(error)}

    def _broker(self) -> dict[str, Any]:
        try:
            waiting = self._line.backlog()
            version = self._line.broker_version()
        except CoreError as error:
            return {"broker": {"status": "away", "reason": str(error)}, "backlog": None}
        backlog = {
            "entries": waiting.entries,
            "bytes": waiting.bytes,
            "oldest_age_seconds": round(waiting.oldest_age_seconds, 3),
        }
        return {
            "broker": {"status": "ok", "version": version, "is_embedded": not self._settings.broker_url},
            "backlog": backlog,
        }

    def _writer(self) -> dict[str, Any]:
        beat = heartbeat.read(heartbeat.heartbeat_file(self._settings.run_dir, "writer"))
        if beat is None:
            return {"status": "not started"}
        silent = beat.silent_seconds(self._clock.monotonic())
        return {
            "status": "ok" if silent < limits.WRITER_SILENT_SECONDS else "silent",
            "pid": beat.pid,
            "silent_seconds": round(silent, 1),
        }

    def _history(self) -> dict[str, Any]:
        """What the thread that commits the wiki said last, and how many files wait for it."""
        try:
            said = json.loads((self._settings.run_dir / "history.json").read_bytes())
            silent = self._clock.monotonic() - said.pop("written_at")
            pending = {"pending_files": self._pending_files()}
        except (OSError, ValueError, KeyError, TypeError, CoreError):
            return {"status": "ok", "state": "not started"}
        state = said.pop("status")
        # Times of a machine's life before this one say nothing.
        if state in _GIT_WORKS and not 0 <= silent < limits.GIT_SILENT_SECONDS:
            state = "silent"
        return {"status": "ok" if state in _GIT_WORKS else state, "state": state, **said, **pending}

    def _pending_files(self) -> int:
        with self._database.snapshot() as reading:
            return git_batches.pending_files(reading)

    def _disk_state(self) -> dict[str, Any]:
        try:
            return {"backlog_room_bytes": self._disk.backlog_room_bytes()}
        except CoreError as error:
            return {"status": "unmeasured", "reason": str(error)}
