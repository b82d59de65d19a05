"""The gate under a real gunicorn, over a house's data directory."""

from __future__ import annotations

import dataclasses
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import redis

from memory_core.config import Settings
from tests.ports import free_pair
from tests.queue.broker import until
from tests.web.house import House

ROOT = Path(__file__).parents[2]


class Served:
    """`url` answers; `raw` sends bytes as they are and gives back what came until the connection closed."""

    def __init__(self, house: House, app: str = "web.app:create_app()", *options: str) -> None:
        self.house = house
        self.port = free_pair()
        self.url = f"http://127.0.0.1:{self.port}"
        self.settings: Settings = dataclasses.replace(
            house.settings, port=self.port, probe_port=self.port + 1
        )
        environment = {
            "PATH": os.environ["PATH"],
            "MEMORYD_MODELS__EMBED_PROVIDER": "none",
            "PYTHONPATH": str(ROOT),
            "HOME": str(house.settings.tmp_dir),
        }
        self.log = house.settings.data_dir / "gunicorn.out"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "gunicorn",
                    "--config",
                    "python:web.gunicorn_conf",
                    *options,
                    app,
                ],
                env=environment | self.settings.environment(),
                cwd=house.settings.data_dir,
                stdout=log,
                stderr=log,
            )
        until(self._is_up)

    def _is_up(self) -> bool:
        assert self.process.poll() is None, self.log.read_text()
        try:
            socket.create_connection(("127.0.0.1", self.port + 1), timeout=0.2).close()
        except OSError:
            return False
        return True

    def worker_pids(self) -> list[int]:
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        return [int(pid) for pid in children.split()]

    def rss_kib(self) -> int:
        status = Path(f"/proc/{self.worker_pids()[0]}/status").read_text()
        return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1])

    def raw(self, *pieces: bytes, timeout: float = 15.0, port: int | None = None) -> bytes:
        """Send pieces until the other side stops taking them; read until it closes or `timeout`."""
        with socket.create_connection(("127.0.0.1", port or self.port), timeout=timeout) as connection:
            try:
                for piece in pieces:
                    connection.sendall(piece)
            except OSError:
                pass
            answer = b""
            try:
                while part := connection.recv(65_536):
                    answer += part
            except OSError:
                pass
            return answer

    def head(self, method: str, path: str, **headers: str) -> bytes:
        lines = [f"{method} {path} HTTP/1.1"]
        given = {"Host": f"127.0.0.1:{self.port}", "Authorization": f"Bearer {self.house.token}"} | {
            name.replace("_", "-"): value for name, value in headers.items()
        }
        lines += [f"{name}: {value}" for name, value in given.items() if value]
        return ("\r\n".join(lines) + "\r\n\r\n").encode()

    def close(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def stream_length(house: House) -> int:
    client: Any = redis.Redis.from_url(house.broker.url)
    try:
        return int(client.xlen(house.keys.commands))
    finally:
        client.close()
