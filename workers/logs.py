"""Structured logs: JSON lines in one file per process, rotated and capped; a plain line for the terminal.

An exception is logged as its type and its stack. Its text is left out: it may quote what somebody wrote.
"""

from __future__ import annotations

import json
import logging
import logging.handlers
import os
import sys
import traceback
from io import TextIOWrapper
from pathlib import Path
from types import TracebackType
from typing import Any

from memory_core import limits
from memory_core.clock import rfc3339
from memory_core.config import Settings

_KNOWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}
_STACK_FRAMES_MAX = 30
#: They would write two lines for every doorbell, and one for every MCP call; at DEBUG they may.
_CHATTY = ("celery", "kombu", "mcp")
_EXTRA_MAX_CHARS = 500


class JsonFormatter(logging.Formatter):
    """One record as one JSON object: at, level, process, pid, logger, message, and what `extra` brought."""

    def __init__(self, process: str) -> None:
        super().__init__()
        self._process = process

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, Any] = {
            "at": rfc3339(round(record.created * 1_000) * 1_000),
            "level": record.levelname.lower(),
            "process": self._process,
            "pid": record.process,
            "logger": record.name,
            "message": record.getMessage()[: limits.LOG_MESSAGE_MAX_CHARS],
        }
        for name, value in vars(record).items():
            if name not in _KNOWN and name not in entry:
                entry[name] = _plain(value)
        if record.exc_info and record.exc_info[0] is not None:
            entry["exception"] = describe(record.exc_info[0], record.exc_info[2])
        return json.dumps(entry, ensure_ascii=False, separators=(",", ":"))


class TerminalFormatter(logging.Formatter):
    """A short line for people; details are in the file."""

    def __init__(self, process: str) -> None:
        super().__init__()
        self._process = process

    def format(self, record: logging.LogRecord) -> str:
        text = f"memoryd {self._process}: {record.getMessage()[: limits.LOG_MESSAGE_MAX_CHARS]}"
        if record.exc_info and record.exc_info[0] is not None:
            text += f" ({record.exc_info[0].__name__})"
        return text


class CappedFile(logging.handlers.RotatingFileHandler):
    """A rotated file, 0600. A full disk costs log lines, never the process."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            path, maxBytes=limits.LOG_FILE_MAX_BYTES, backupCount=limits.LOG_FILES_KEPT - 1, encoding="utf-8"
        )

    def _open(self) -> TextIOWrapper:
        return open(self.baseFilename, "a", encoding=self.encoding, opener=_private)

    def close(self) -> None:
        try:
            super().close()
        except OSError:
            pass  # the last lines did not fit

    def handleError(self, record: logging.LogRecord) -> None:
        if not isinstance(sys.exc_info()[1], OSError):
            super().handleError(record)


def configure(settings: Settings, process: str, *, terminal_level: int = logging.WARNING) -> None:
    """Send this process's records to `logs/<process>.log` and, from `terminal_level` on, to stderr.

    Call it once, after the last fork: two processes must not rotate one file.
    """
    settings.log_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = CappedFile(settings.log_dir / f"{process}.log")
    file.setFormatter(JsonFormatter(process))
    _use(settings, file, _terminal(process, terminal_level))


def configure_terminal(settings: Settings, process: str, *, terminal_level: int = logging.WARNING) -> None:
    """The same without a file, for a child whose parent writes down what happens to it."""
    _use(settings, _terminal(process, terminal_level))


def _terminal(process: str, level: int) -> logging.Handler:
    terminal = logging.StreamHandler(sys.stderr)
    terminal.setLevel(level)
    terminal.setFormatter(TerminalFormatter(process))
    return terminal


def _use(settings: Settings, *handlers: logging.Handler) -> None:
    root = logging.getLogger()
    for handler in list(root.handlers):
        root.removeHandler(handler)
        handler.close()
    for handler in handlers:
        root.addHandler(handler)
    root.setLevel(settings.log_level.upper())
    for name in _CHATTY:
        logging.getLogger(name).setLevel(
            max(root.level, logging.WARNING) if root.level > logging.DEBUG else 0
        )
    # A doorbell that a stopping worker gives back says nothing that anybody must do.
    logging.getLogger("kombu.transport.virtual.base").setLevel(logging.ERROR)
    logging.captureWarnings(True)
    sys.excepthook = _log_uncaught


def describe(kind: type[BaseException], trace: TracebackType | None) -> dict[str, Any]:
    """An exception without its text: `{"type", "stack": ["file:line function", …]}`, innermost last."""
    frames = traceback.extract_tb(trace)[-_STACK_FRAMES_MAX:]
    stack = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]
    return {"type": f"{kind.__module__}.{kind.__qualname__}", "stack": stack}


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, dict):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return str(value)[:_EXTRA_MAX_CHARS]


def _log_uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):
        return
    logging.getLogger("memoryd").critical(
        "This process ends by an error that nobody expected.",
        exc_info=(kind, error, trace),
        extra={"action": "process_crashed"},
    )
