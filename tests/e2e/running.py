"""A whole memoryd in a directory of its own: started as `memoryd up` starts it, watched and killed by pid."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from redis import Redis

from memory_core import config
from memory_core.config import Settings
from tests.patience import until as wait_until
from tests.ports import free_pair
from tests.store.databases import ready as make_ready
from workers.broker import broker_url
from workers.queue.keys import Keys

ROOT = Path(__file__).parents[2]

#: What tells a process of the tree from the others, in its command line.
MARKS = {
    "supervisor": "workers.supervisor",
    "broker": "valkey-server",
    "writer": "workers.writer",
    "web": "web.gunicorn_conf",
    "pool": "workers.pool",
    "beat": "workers.beat",
}


#: Which mutant the product is to be; read from the environment of the test run, so that the tests stay the same.
MUTANT = "MEMORYD_TEST_MUTANT"


def _patched(conditions: Sequence[str]) -> dict[str, str]:
    names = [*conditions, *filter(None, [os.environ.get(MUTANT)])]
    if not names:
        return {}
    path = os.pathsep.join((str(ROOT / "tests" / "mutants" / "loader"), str(ROOT)))
    return {MUTANT: ",".join(names), "PYTHONPATH": path}


def send(pids: Iterable[int], number: int) -> None:
    """A signal to each process that still is there."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def is_alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (OSError, IndexError):
        return False


class Running:
    """One stack. `with Running(tmp_path) as memoryd: memoryd.hook(...)`.

    `conditions` are patches of `tests/mutants` that make the world harder, not the product wrong. A `data_dir` of the test's own
    is made by the first start, and by nothing else.
    """

    def __init__(
        self,
        home: Path,
        *,
        environ: Mapping[str, str] | None = None,
        port: int | None = None,
        data_dir: Path | None = None,
        conditions: Sequence[str] = (),
        only: Sequence[str] = (),
    ) -> None:
        self.home = home
        #: Of the processes of the tree, those that are run.
        self.only = tuple(only)
        self.data_dir = data_dir or home / "data"
        self._is_ours = data_dir is None
        self.port = port or free_pair()
        self.environ = {
            "PATH": os.environ["PATH"],
            "MEMORYD_MODELS__EMBED_PROVIDER": "none",
            "HOME": str(home),
            "PYTHONPATH": str(ROOT),
            "PYTHONDONTWRITEBYTECODE": "1",
            "MEMORYD_DATA_DIR": str(self.data_dir),
            "MEMORYD_PORT": str(self.port),
            "MEMORYD_FREE_DISK_MIN_BYTES": str(1024 * 1024),
            **_patched(conditions),
            **(environ or {}),
        }
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Running:
        try:
            return self.start()
        except BaseException:
            self.stop()
            raise

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def start(self, *, ready: bool = True) -> Running:
        self.home.mkdir(parents=True, exist_ok=True)
        if self._is_ours:
            make_ready(Settings(data_dir=self.data_dir))
        log = (self.home / "terminal.log").open("ab")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "workers.supervisor", *(f"--only={name}" for name in self.only)],
            env=self.environ,
            cwd=self.home,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        if ready:
            self.wait_ready()
        return self

    def stop(self) -> None:
        """SIGTERM and wait; whatever is left after that is killed, by pid."""
        if self.process is None:
            return
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(60)
        for pids in self.pids().values():
            for pid in pids:
                os.kill(pid, signal.SIGKILL)
        self.process = None

    # --- processes ---

    def pids(self) -> dict[str, list[int]]:
        """Living processes of this data directory by role; found by their environment, so orphans too."""
        mine: dict[str, list[int]] = {}
        needle = f"MEMORYD_DATA_DIR={self.data_dir}\0".encode()
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == os.getpid():
                continue
            try:
                if needle not in (entry / "environ").read_bytes() + b"\0":
                    continue
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                if (entry / "stat").read_text().rsplit(")", 1)[1].split()[0] == "Z":
                    continue
            except (OSError, IndexError):
                continue
            role = next((name for name, mark in MARKS.items() if mark in line), "other")
            mine.setdefault(role, []).append(int(entry.name))
        return mine

    def kill(self, role: str, number: int = signal.SIGKILL) -> list[int]:
        """Send a signal to every process of a role; their pids."""
        pids = self.pids().get(role, [])
        send(pids, number)
        return pids

    def kill_all(self) -> None:
        """SIGKILL to everybody, and to what they had started just then, until nobody is left."""

        def nobody_is_left() -> bool:
            pids = [pid for group in self.pids().values() for pid in group]
            send(pids, signal.SIGKILL)
            return not pids

        wait_until(nobody_is_left, saying="every process has ended")
        if self.process is not None:
            self.process.wait(60)

    @contextmanager
    def stopped(self, *roles: str) -> Generator[None]:
        """SIGSTOP to all processes of these roles, and SIGCONT to the same processes at the end."""
        pids = [pid for role in roles for pid in self.kill(role, signal.SIGSTOP)]
        assert pids, f"no process of {roles}"
        try:
            yield
        finally:
            send(pids, signal.SIGCONT)

    # --- the inside ---

    @property
    def settings(self) -> Settings:
        return config.load(environ=self.environ)

    def waiting(self) -> int:
        """Commands in the stream."""
        with self.broker() as broker:
            return int(broker.xlen(self.keys.commands))

    @property
    def keys(self) -> Keys:
        return Keys(config.install_id(self.settings))

    @contextmanager
    def broker(self) -> Generator[Any]:
        """A client of this stack's broker."""
        client = Redis.from_url(broker_url(self.settings), socket_timeout=60)
        try:
            yield client
        finally:
            client.close()

    # --- requests ---

    @property
    def token(self) -> str:
        return (self.data_dir / "token").read_text().strip()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def wait_ready(self, seconds: float = 120.0) -> None:
        try:
            wait_until(self.is_ready, seconds=seconds, saying="ready")
        except AssertionError as error:
            raise AssertionError(f"{error}; terminal: {self.terminal()[-2000:]}") from error

    def is_ready(self) -> bool:
        try:
            probe = "/livez" if self.only else "/readyz"
            return self.request("GET", probe, port=self.port + 1)[0] == 200
        except OSError:
            return False

    def terminal(self) -> str:
        return (self.home / "terminal.log").read_text(errors="replace")

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        port: int | None = None,
        headers: Mapping[str, str] | None = None,
        seconds: float = 15.0,
        token: str | None = None,
    ) -> tuple[int, Any]:
        """Status and answer (parsed where it is JSON); `OSError` where there was none."""
        connection = http.client.HTTPConnection("127.0.0.1", port or self.port, timeout=seconds)
        given = {"Authorization": f"Bearer {token or self.token}"} if port is None else {}
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        if data is not None:
            given["Content-Type"] = "application/json"
        try:
            connection.request(method, path, body=data, headers={**given, **(headers or {})})
            response = connection.getresponse()
            raw = response.read()
        except http.client.HTTPException as error:
            raise ConnectionError(str(error)) from error
        finally:
            connection.close()
        try:
            return response.status, json.loads(raw)
        except ValueError:
            return response.status, raw.decode(errors="replace")

    def hook(
        self, event: str, *, client: str = "claude-code", query: str = "", **payload: Any
    ) -> tuple[int, Any]:
        return self.request("POST", f"/hook?agent={client}&event={event}{query}", payload)

    def tool(self, name: str, **arguments: Any) -> Any:
        status, answer = self.request("POST", f"/api/v1/tools/{name}", arguments)
        assert status == 200, (status, answer)
        return answer
