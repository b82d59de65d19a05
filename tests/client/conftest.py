"""A home directory with an awkward name, a gate to speak to, and a spool to fill."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from client.installers import Place
from client.settings import ClientSettings
from client.spool import Entry, Spool
from tests.client.gate_server import Gate, running_gate

NOW_US = 1_780_000_000_000_000


@pytest.fixture
def gate() -> Iterator[Gate]:
    with running_gate() as running:
        yield running


@pytest.fixture
def at_gate(gate: Gate, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands speak to the gate, and know nothing of this machine's own settings."""
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("MEMORYD_URL", gate.url)
    monkeypatch.setenv("MEMORYD_TOKEN", "of-the-test")
    for name in ("MEMORYD_TOKEN_FILE", "MEMORYD_CLIENT_CONFIG", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "ada lovelace's Проект № 1 $HOME"
    home.mkdir()
    return home


@pytest.fixture
def settings_of(home: Path) -> Callable[..., ClientSettings]:
    def make(url: str = "http://127.0.0.1:9") -> ClientSettings:
        return ClientSettings(
            url=url,
            token="of-the-test",
            token_file="",
            redaction_key=b"k" * 32,
            state_dir=str(home / ".local/state/memoryd"),
            config_file="",
        )

    return make


@pytest.fixture
def spool(home: Path) -> Spool:
    return Spool(str(home / ".local/state/memoryd/spool"))


@pytest.fixture
def spooled(spool: Spool) -> Callable[..., list[Entry]]:
    """Put `count` events into the spool."""

    def fill(count: int, *, now_us: int | None = None) -> list[Entry]:
        import time

        start = time.time_ns() // 1000 if now_us is None else now_us
        return [
            spool.add(
                query=f"event=Stop&agent=codex&n={n}", body={"n": n}, now_us=start + n * 1000, seq=n + 1
            )
            for n in range(count)
        ]

    return fill


@pytest.fixture
def token() -> str:
    return secrets.token_urlsafe(24)


@pytest.fixture
def place(home: Path, token: str) -> Place:
    token_file = home / ".local/share/memoryd/data/token"
    token_file.parent.mkdir(parents=True)
    token_file.write_text(f"{token}\n")
    return Place(home=home)
