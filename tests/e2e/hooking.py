"""Hooks as an agent client runs them: the installed launcher, with its own home, spool and drain."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from client import launcher
from client.settings import ClientSettings
from client.settings import load as load_client
from client.spool import Spool
from tests.e2e.running import ROOT, Running


class HookClient:
    """One laptop."""

    def __init__(self, memoryd: Running, home: Path) -> None:
        home.mkdir(parents=True, exist_ok=True)
        config = home / "client.json"
        config.write_text(
            json.dumps(
                {
                    "url": memoryd.url,
                    "token_file": str(memoryd.data_dir / "token"),
                    "redaction_key": "5a" * 32,
                }
            )
        )
        self.launcher = home / "bin" / launcher.NAME
        self.launcher.parent.mkdir(exist_ok=True)
        self.launcher.write_text(launcher.script(config_file=config, python=Path(sys.executable), code=ROOT))
        self.launcher.chmod(0o755)
        self.environ = {"HOME": str(home), "PATH": os.environ["PATH"], "MEMORYD_CLIENT_CONFIG": str(config)}
        self.home = home

    @property
    def settings(self) -> ClientSettings:
        return load_client(self.environ)

    @property
    def spool(self) -> Spool:
        return Spool(self.settings.spool_dir)

    def start(self, event: str, payload: Any, *, client: str = "claude-code") -> subprocess.Popen[bytes]:
        """The hook's process, its payload written; it is not waited for."""
        process = subprocess.Popen(
            [str(self.launcher), client, event],
            env=self.environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps(payload).encode())
            process.stdin.close()
        except BrokenPipeError:
            pass
        return process

    def hook(self, event: str, **payload: Any) -> None:
        process = self.start(event, payload)
        assert process.stderr is not None
        said = process.stderr.read()
        process.stderr.close()
        assert process.wait(60) == 0
        assert not said, said

    def pids(self) -> list[int]:
        """Hooks and drains of this home that are alive."""
        needle = f"HOME={self.home}\0".encode()
        found: list[int] = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                try:
                    if needle in (entry / "environ").read_bytes() + b"\0":
                        found.append(int(entry.name))
                except OSError:
                    continue
        return found
