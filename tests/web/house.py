"""A gate with what it needs: a data directory, a real broker, and the real engine draining the real stream."""

from __future__ import annotations

import json
import secrets
import tempfile
import threading
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

from flask import Flask
from flask.testing import FlaskClient

from memory_core import limits
from memory_core.clock import SystemClock
from memory_core.config import Settings
from memory_core.domain.token import mint, parse
from memory_core.ids import IdSource
from memory_core.redaction.server import Redactor
from memory_core.store.install import mark, read_install
from memory_core.store.principals import ensure_owner
from tests.queue.broker import Broker, until
from tests.store.databases import new_writer, with_transaction
from web.app import create_app
from web.parts import Parts, build
from workers.data_dir import prepare
from workers.queue.connect import writer_client
from workers.queue.incoming import Incoming
from workers.queue.keys import Keys
from workers.queue.owner import claim_owner
from workers.queue.reader import StreamReader
from workers.queue.replies import publish
from workers.writer.engine import Engine
from workers.writer.mark import MarkFile

__all__ = ["House", "until"]


class House:
    """`app` answers as the gate; `start_writer` applies what waits; `rows` looks into the database."""

    def __init__(self, directory: Path, broker: Broker, **settings: Any) -> None:
        self.broker = broker
        self.settings = Settings(data_dir=directory / "data", broker_url=broker.url, probe_port=1, **settings)
        with not_synced():
            prepare(self.settings)
        clock = SystemClock()
        self.connection = new_writer(self.settings.database.parent, clock)
        self.token = self.settings.token_file.read_text().strip()
        public_id, digest = parse(self.token)
        with_transaction(self.connection, lambda tx: ensure_owner(tx, public_id, digest), clock)
        install = with_transaction(self.connection, read_install, clock)
        assert install is not None
        mark(self.settings.marker_file, install)
        self.keys = Keys(install.text)
        self.redis = writer_client(broker.url)
        self.reader = StreamReader(self.redis, self.keys, incoming=Incoming(self.settings.incoming))
        self.engine = Engine(
            self.connection,
            epoch=install.epoch,
            ids=IdSource(clock),
            clock=clock,
            mark=MarkFile(self.settings.run_dir / "mark"),
        )
        self._epoch = install.epoch
        self._stopping = threading.Event()
        self._writer: threading.Thread | None = None
        claim_owner(self.redis, self.keys, self._epoch, "test")
        self.parts: Parts = build(self.settings, redactor=_redactor())
        self.app: Flask = create_app(self.settings, self.parts)
        # As a web process does after its fork, except that it waits for nothing.
        self.parts.line.ensure_subscribed(60.0)

    # --- asking ---

    @property
    def bearer(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    def client(self) -> FlaskClient:
        return self.app.test_client()

    def post(self, path: str, body: Any, **headers: str) -> Any:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.client().post(
            path, data=data, headers=self.bearer | {"Content-Type": "application/json"} | headers
        )

    def get(self, path: str, **headers: str) -> Any:
        return self.client().get(path, headers=self.bearer | headers)

    def add_token(self, scope: str, principal: str = "owner") -> str:
        """A new token of that scope, as text."""
        token = mint()
        raw = self.connection.raw
        raw.execute("INSERT OR IGNORE INTO principals (name, created_at) VALUES (?, 1)", (principal,))
        raw.execute(
            "INSERT INTO tokens (public_id, principal, digest, scope, created_at) VALUES (?, ?, ?, ?, 1)",
            (token.public_id, principal, token.digest, scope),
        )
        return token.text

    # --- looking ---

    def waiting(self) -> int:
        return int(self.redis.xlen(self.keys.commands))  # type: ignore[arg-type]

    def stream_bytes(self) -> bytes:
        """Everything in the stream, as bytes."""
        entries: Any = self.redis.xrange(self.keys.commands)
        return b"\n".join(value for _, fields in entries for value in fields.values())

    def rows(self, sql: str, *parameters: Any) -> list[dict[str, Any]]:
        return [dict(row) for row in self.connection.raw.execute(sql, parameters).fetchall()]

    # --- the writer ---

    def drain(self) -> int:
        """Apply one batch of what waits; how many commands that were."""
        entries = self.reader.read(limits.BATCH_COMMANDS_MAX, 10)
        if not entries:
            return 0
        report = self.engine.apply_batch([entry.envelope for entry in entries], until="")
        assert report.stopped is None, report.stopped
        publish(self.redis, self.keys, report.reply_ids)
        self.reader.delete(entries[: len(report.outcomes)], self._epoch, "test")
        return len(report.outcomes)

    def drain_all(self) -> None:
        while self.waiting():
            self.drain()

    def start_writer(self) -> None:
        self._writer = threading.Thread(target=self._write, daemon=True)
        self._writer.start()

    def stop_writer(self) -> None:
        self._stopping.set()
        if self._writer is not None:
            self._writer.join()
        self._writer = None
        self._stopping.clear()

    def wait_drained(self) -> None:
        until(lambda: self.waiting() == 0)

    def _write(self) -> None:
        while not self._stopping.is_set():
            self.drain()

    def close(self) -> None:
        self.stop_writer()
        self.redis.delete(self.keys.commands, self.keys.bytes, self.keys.oldest, self.keys.door)
        self.parts.accesses.stop()
        self.parts.line.close()
        self.redis.close()
        self.connection.close()


@contextmanager
def not_synced() -> Generator[None]:
    """What is written meanwhile need not survive a power cut."""
    with mock.patch("os.fsync"):
        yield


@cache
def _redactor() -> Redactor:
    """One for all tests: compiling the scanner's rules takes seconds."""
    return Redactor(secrets.token_bytes(32), Path(tempfile.mkdtemp(prefix="redactor-")))
