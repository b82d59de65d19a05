"""A data directory, and a real broker in it; each test stops what it started, by pid."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from memory_core.config import Settings
from tests.patience import until as wait_until
from tests.ports import free_ports
from tests.store.databases import ready
from workers import broker, data_dir

ROOT = Path(__file__).parents[2]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    made = Settings(data_dir=tmp_path / "data")
    data_dir.prepare(made)
    return made


#: Of each directory: the names that were in it when it was last synced.
Synced = dict[Path, set[str]]


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> Synced:
    """What a power cut would leave of each directory's names; it notes every sync of one from now on."""
    found: Synced = defaultdict(set)
    sync = os.fsync

    def noting(descriptor: int) -> None:
        sync(descriptor)
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        if path.is_dir():
            found[path] = {entry.name for entry in path.iterdir()}

    monkeypatch.setattr(os, "fsync", noting)
    return found


BrokerStart = Callable[[Settings], subprocess.Popen[bytes]]


@pytest.fixture
def start_broker() -> Iterator[BrokerStart]:
    """Starts the embedded broker of a data directory and waits for its PONG."""
    started: list[subprocess.Popen[bytes]] = []

    def start(settings: Settings) -> subprocess.Popen[bytes]:
        endpoint = broker.set_up(settings)
        process = subprocess.Popen(broker.argv(settings), stdout=subprocess.DEVNULL)
        started.append(process)
        wait_until(lambda: broker.answers(endpoint))
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()


ForeignStart = Callable[..., str]


@pytest.fixture
def start_foreign_broker(tmp_path: Path) -> Iterator[ForeignStart]:
    """Starts a broker of "somebody else" on a loopback port, sound but for the given settings; gives its address."""
    started: list[subprocess.Popen[bytes]] = []
    sound = {"appendonly": "yes", "appendfsync": "always", "maxmemory-policy": "noeviction"}

    def start(*more: str, **options: str) -> str:
        (port,) = free_ports(1)
        given = {**sound, **{name.replace("_", "-"): value for name, value in options.items()}}
        words = [word for name, value in given.items() for word in (f"--{name}", value)]
        place = ["--dir", str(tmp_path), "--port", str(port), "--bind", "127.0.0.1"]
        argv = [str(broker.binary()), *place, *words, *more]
        started.append(subprocess.Popen(argv, stdout=subprocess.DEVNULL))
        wait_until(lambda: broker.answers(broker.Endpoint(port=port)))
        return f"redis://127.0.0.1:{port}/0"

    yield start
    for process in started:
        process.kill()
        process.wait()


class RunningTree:
    """A supervisor that a test started, and what it says of its children."""

    def __init__(self, settings: Settings, process: subprocess.Popen[str]) -> None:
        self.settings = settings
        self.process = process

    @property
    def pids(self) -> dict[str, int]:
        """The children by name, as the supervisor last wrote them down."""
        return self.pids_of()

    def pids_of(self, *only: str) -> dict[str, int]:
        """The children of a supervisor that runs these rows only."""
        record = json.loads((self.settings.run_dir / f"{'-'.join(('children', *only))}.json").read_text())
        return {entry["name"]: entry["pid"] for entry in record["children"]}

    def wait_ready(self, seconds: float = 120.0) -> dict[str, object]:
        """The announcement, as JSON."""
        assert self.process.stdout is not None
        os.set_blocking(self.process.stdout.fileno(), False)
        descriptor, text = self.process.stdout.fileno(), b""

        def announced() -> bool:
            nonlocal text
            assert self.process.poll() is None, f"the supervisor ended with {self.process.returncode}"
            try:
                text += os.read(descriptor, 4096)
            except BlockingIOError:
                pass
            return text.endswith(b"\n")

        wait_until(announced, seconds)
        return json.loads(text.splitlines()[-1])

    def post(self, path: str, body: object) -> int:
        """The status of a JSON request with the directory's token; 0 when nobody answered."""
        request = urllib.request.Request(
            self.settings.url + path,
            data=json.dumps(body).encode(),
            headers={
                "Authorization": f"Bearer {self.settings.token_file.read_text().strip()}",
                "Content-Type": "application/json",
            },
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return response.status
        except urllib.error.HTTPError as error:
            with error:
                return error.code
        except OSError:
            return 0

    def prompt(self, text: str) -> None:
        """Send one prompt of an agent, again and again as its drain would, until it is committed."""
        body = {"session_id": "01890000-0000-7000-8000-000000000001", "cwd": "/nowhere", "prompt": text}
        path = f"/hook?agent=claude-code&event=UserPromptSubmit&wait=commit&ingest_key={uuid.uuid4()}"
        wait_until(lambda: self.post(path, body) == 200, saying=f"{text!r} is committed")

    def everybody(self) -> set[int]:
        """Every process that serves this data directory, grandchildren included, by what /proc says."""
        mark = b"MEMORYD_DATA_DIR=" + os.fsencode(self.settings.data_dir)
        found = set()
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != self.process.pid and is_alive(int(entry.name)):
                try:
                    if mark in (entry / "environ").read_bytes().split(b"\0"):
                        found.add(int(entry.name))
                except OSError:
                    continue
        return found

    def logged(self, action: str) -> list[dict[str, object]]:
        log = self.settings.log_dir / "supervisor.log"
        lines = log.read_text().splitlines() if log.exists() else []
        return [record for record in map(json.loads, lines) if record.get("action") == action]


def is_alive(pid: int) -> bool:
    """Whether it runs; one that ended and waits to be buried does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


TreeStart = Callable[..., RunningTree]

#: What starts the real tree.
_REAL = ("workers.supervisor", "client")


@pytest.fixture
def start_tree(tmp_path: Path) -> Iterator[TreeStart]:
    with make_tree(tmp_path) as start:
        yield start


@contextmanager
def make_tree(home: Path) -> Iterator[TreeStart]:
    """Starts a supervisor: `module` is the tiny tree's, the real one, or the client's (with its arguments). `first` makes the data
    directory by that start and by nothing else."""
    started: list[RunningTree] = []

    def start(
        module: str = "tests.stack.tiny_tree",
        *arguments: str,
        data: Path | None = None,
        prefix: Sequence[str] = (),
        environ: dict[str, str] | None = None,
        first: bool = False,
        **options: object,
    ) -> RunningTree:
        port, probe_port = free_ports(2)
        settings = Settings(data_dir=data or home / "data", port=port, probe_port=probe_port, **options)
        if module in _REAL and data is None and not first:
            ready(settings)
        process = subprocess.Popen(
            [*prefix, sys.executable, "-m", module, *arguments, "--json"],
            env={
                **os.environ,
                **settings.environment(),
                "PYTHONPATH": str(ROOT),
                "PYTHONDONTWRITEBYTECODE": "1",
                **(environ or {}),
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(RunningTree(settings, process))
        return started[-1]

    yield start
    for tree in started:
        if tree.process.poll() is None:
            tree.process.send_signal(signal.SIGTERM)
            try:
                tree.process.wait(60)
            except subprocess.TimeoutExpired:
                tree.process.kill()
        # Before the pipes are read to their end: who outlived the supervisor would hold them open.
        for pid in tree.everybody():
            os.kill(pid, signal.SIGKILL)
        tree.process.communicate()
