"""Settings: the only place that reads the environment, once per process."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from memory_core import config_file, limits, variables
from memory_core.errors import Invalid, Unavailable

#: Prefix of every environment variable; `data_dir` is `MEMORYD_DATA_DIR`.
PREFIX = variables.PREFIX

DEFAULT_PORT = 49374


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What one process was told. Reference: `docs/settings.md`."""

    #: Everything that memoryd keeps lies below this directory.
    data_dir: Path
    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    #: `/livez` and `/readyz`; 0 means main port + 1.
    probe_port: int = 0
    #: Empty means the embedded broker (unix socket inside the data directory).
    broker_url: str = ""
    #: Take a broker that does not sync each append; `/readyz` and the log say which promise is void.
    accept_weaker_durability: bool = False
    #: `Host` headers that are answered (besides loopback names).
    allowed_hosts: tuple[str, ...] = ()
    log_level: str = "INFO"
    #: The install id, for processes that have no access to the data directory.
    install: str = ""
    #: Take the data directory over although it was moved or copied from another machine.
    take_over: bool = False
    #: Give a copied data directory an install id of its own, because the original lives on.
    new_install: bool = False
    #: Begin with an empty database where the old one is lost; the install keeps its id.
    new_database: bool = False
    #: Free disk under which nothing is admitted, bytes; 0 means the built-in mark.
    free_disk_min_bytes: int = 0
    #: Accept a data directory on NFS, SMB, 9p or FUSE, where locks cannot be trusted.
    allow_network_disk: bool = False
    #: Where a pool worker finds the gate; empty: at `host` and `port`.
    gate_url: str = ""
    #: A pool worker's token; empty: the one that the first start wrote into the data directory.
    pool_token_file: str = ""
    #: What a pool worker serves; empty: all queues.
    pool_queues: tuple[str, ...] = ()
    #: Jobs of one queue at once.
    pool_slots: int = 1
    #: How jobs, logs and Flower name a pool worker; empty: `pool`, or of one that lives apart its queues and host.
    worker_name: str = ""
    #: `data_dir` holds nothing but this process's own logs and temporary files: the data is on another machine.
    off_data_host: bool = False
    #: Where a supervisor and its children keep logs, signs of life and temporary files; empty: in `data_dir`.
    state_dir: str = ""
    #: A configuration file elsewhere than in the data directory.
    config_file: str = ""
    #: The name of the machine that the data directory belongs to, where the system's own id does not last (containers).
    machine: str = ""
    #: Where processes without the data find what they must know of this install; empty: inside the data directory.
    handout_dir: str = ""
    #: Show Celery's tasks and workers in Flower.
    flower: bool = False
    flower_host: str = "127.0.0.1"
    #: 0 means main port + 2.
    flower_port: int = 0

    @property
    def effective_config_file(self) -> Path:
        return Path(self.config_file) if self.config_file else self.data_dir / "config.toml"

    @property
    def effective_probe_port(self) -> int:
        return self.probe_port or self.port + 1

    @property
    def effective_flower_port(self) -> int:
        return self.flower_port or self.port + 2

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"

    @property
    def effective_gate_url(self) -> str:
        """A gate that listens on every address is asked on loopback."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)  # noqa: S104
        return self.gate_url or f"http://{f'[{host}]' if ':' in host else host}:{self.port}"

    @property
    def effective_pool_token_file(self) -> Path:
        return Path(self.pool_token_file) if self.pool_token_file else self.local_pool_token_file

    # --- the layout of the data directory (docs/data-model.md) ---

    @property
    def database(self) -> Path:
        return self.data_dir / "db" / "memory.sqlite"

    @property
    def backups(self) -> Path:
        return self.data_dir / "db" / "backups"

    @property
    def wiki(self) -> Path:
        return self.data_dir / "wiki"

    @property
    def history_aside(self) -> Path:
        """Damaged histories (git) that were replaced by new ones."""
        return self.data_dir / "history-aside"

    @property
    def assets(self) -> Path:
        return self.data_dir / "assets"

    @property
    def models(self) -> Path:
        """Models that run on this machine and that a person added."""
        return self.data_dir / "models"

    @property
    def incoming(self) -> Path:
        return self.data_dir / "incoming"

    @property
    def broker_dir(self) -> Path:
        return self.data_dir / "broker"

    @property
    def run_dir(self) -> Path:
        """Locks, heartbeats, the writer's in-progress mark."""
        return self.own_dir / "run"

    @property
    def own_dir(self) -> Path:
        """What belongs to this process tree and not to the data."""
        return Path(self.state_dir) if self.state_dir else self.data_dir

    @property
    def handout(self) -> Path:
        """What processes without the data need to know: the install's id and tokens of small power."""
        return Path(self.handout_dir) if self.handout_dir else self.data_dir / "run"

    def _handed_out(self, reader: str, name: str) -> Path:
        """Apart, a directory for each kind of reader: a container mounts what it reads and nothing else."""
        return self.handout / reader / name if self.handout_dir else self.handout / name

    @property
    def install_file(self) -> Path:
        """The install id in hexadecimal, written by the writer at its start for processes that open no database."""
        return self._handed_out("common", "install")

    @property
    def metrics_token_file(self) -> Path:
        """A token for `/metrics` and nothing else; it holds as long as it stands in this file."""
        return self._handed_out("metrics", "metrics.token")

    @property
    def local_pool_token_file(self) -> Path:
        """The token of this machine's own pool worker."""
        return self._handed_out("pool", "pool.token")

    @property
    def flower_auth_file(self) -> Path:
        """`user:password` of Flower."""
        return self._handed_out("flower", "flower.auth")

    @property
    def log_dir(self) -> Path:
        return self.own_dir / "logs"

    @property
    def tmp_dir(self) -> Path:
        """TMPDIR and cache directories of every child."""
        return self.own_dir / "tmp"

    @property
    def cache_dir(self) -> Path:
        """What can be made again; also `XDG_CACHE_HOME` of every child."""
        return self.tmp_dir / "home" / "cache"

    @property
    def token_file(self) -> Path:
        return self.data_dir / "token"

    @property
    def install_key_file(self) -> Path:
        """32 random bytes: the key of redaction markers and body hashes."""
        return self.data_dir / "install.key"

    @property
    def marker_file(self) -> Path:
        return self.data_dir / ".memoryd"

    @property
    def ballast_file(self) -> Path:
        return self.data_dir / "ballast"

    def environment(self) -> dict[str, str]:
        """These settings as environment variables, for a child process."""
        return {PREFIX + f.name.upper(): _to_text(getattr(self, f.name)) for f in fields(self)}


def default_data_dir(environ: Mapping[str, str]) -> Path:
    """Where the data directory lies unless somebody says otherwise. Raises `Invalid` for a user without a home."""
    if base := environ.get("XDG_DATA_HOME"):
        return Path(base) / "memoryd" / "data"
    try:
        home = Path(environ.get("HOME", "~")).expanduser()
    except RuntimeError as error:  # a number that no user has, as in some containers
        raise Invalid(
            "this user has no home directory; say where the data lies with MEMORYD_DATA_DIR"
        ) from error
    return home / ".local" / "share" / "memoryd" / "data"


def install_id(settings: Settings) -> str:
    """The install id in hexadecimal: the configured one, else what the writer of this data directory wrote.

    Raises `Unavailable` when no writer has ever started here.
    """
    if settings.install:
        return settings.install
    try:
        return settings.install_file.read_text(encoding="ascii").strip()
    except OSError as error:
        raise Unavailable(f"no writer has started in {settings.data_dir} yet") from error


def load(overrides: Mapping[str, Any] | None = None, environ: Mapping[str, str] | None = None) -> Settings:
    """Defaults, then the file's table `[server]`, then `MEMORYD_*` of the environment, then `overrides` (those not None).

    Raises `Invalid` that names the variable or the file's key when a value cannot be read, a variable that is nearly a
    setting's, or that both ports are one.
    """
    environ = os.environ if environ is None else environ
    for variable, meant in unknown_variables(environ).items():
        if meant is not None:
            raise Invalid(f"{variable} is no setting; {meant} is (docs/settings.md lists them)")
    told: dict[str, Any] = {}
    for f in fields(Settings):
        text = environ.get(PREFIX + f.name.upper())
        if text is not None:
            told[f.name] = _from_text(f.name, text)
    told.update({name: value for name, value in (overrides or {}).items() if value is not None})
    told["data_dir"] = Path(told.get("data_dir") or default_data_dir(environ)).expanduser().absolute()
    file = Settings(data_dir=told["data_dir"], config_file=told.get("config_file", "")).effective_config_file
    settings = Settings(**{**_server_table(file), **told})
    if not 1 <= settings.pool_slots <= limits.POOL_SLOTS_MAX:
        raise Invalid(f"pool_slots is 1 to {limits.POOL_SLOTS_MAX}")
    if settings.effective_probe_port == settings.port:
        raise Invalid(f"port and probe port are both {settings.port}; choose another one with --probe-port")
    return settings


def unknown_variables(environ: Mapping[str, str]) -> dict[str, str | None]:
    """Variables that look like memoryd's and are not, with the one that is probably meant; see `memory_core.variables`."""
    return variables.unknown(environ, [f.name for f in fields(Settings)], config_file.SECTIONS)


def section(settings: Settings, name: str, environ: Mapping[str, str] | None = None) -> dict[str, Any]:
    """One table of the configuration file: its values, under those of `MEMORYD_<NAME>__<KEY>` (always text).

    `name` is one of `config_file.SECTIONS`. Keys are lower case. Raises `Invalid` where the file cannot be read.
    """
    environ = os.environ if environ is None else environ
    prefix = f"{PREFIX}{name.upper()}__"
    told = {key[len(prefix) :].lower(): text for key, text in environ.items() if key.startswith(prefix)}
    return {**config_file.table(settings.effective_config_file, name), **told}


def _server_table(file: Path) -> dict[str, Any]:
    found = config_file.table(file, "server")
    types: dict[str, type[Any]] = {
        f.name: type(f.default) for f in fields(Settings) if f.name not in ("data_dir", "config_file")
    }
    for name, value in found.items():
        if name not in types:
            raise Invalid(f"{file}: [server] has no setting {name!r} (docs/settings.md lists them)")
        wanted: type[Any] = list if types[name] is tuple else types[name]
        if type(value) is not wanted:
            raise Invalid(f"{file}: [server] {name} must be of type {wanted.__name__}")
        if wanted is list:
            found[name] = tuple(str(item) for item in value)
    return found


def _to_text(value: Any) -> str:
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, tuple):
        return ",".join(str(item) for item in value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return str(value)


def _flag(text: str) -> bool:
    return text.strip().lower() in ("1", "true", "yes", "on")


def _names(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


_READERS: dict[str, Callable[[str], Any]] = {
    "data_dir": Path,
    "port": int,
    "probe_port": int,
    "flower_port": int,
    "free_disk_min_bytes": int,
    "accept_weaker_durability": _flag,
    "take_over": _flag,
    "new_install": _flag,
    "new_database": _flag,
    "allow_network_disk": _flag,
    "flower": _flag,
    "off_data_host": _flag,
    "pool_slots": int,
    "pool_queues": _names,
    "allowed_hosts": _names,
}


def _from_text(name: str, text: str) -> Any:
    try:
        return _READERS.get(name, str)(text)
    except ValueError as error:
        raise Invalid(f"{PREFIX}{name.upper()}={text!r} is not usable: {error}") from error
