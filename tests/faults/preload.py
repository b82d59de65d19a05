"""Builds the preloaded library of faults, and gives the environment that loads it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

SOURCE = Path(__file__).with_name("preload.c")


def preloaded(folder: Path, **faults: str | int) -> dict[str, str]:
    """`FAULT_*` and `LD_PRELOAD` for a process tree; the library is built into `folder`."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    assert compiler, "this test needs a C compiler: apt-get install gcc libc6-dev"
    library = folder / "faults.so"
    if not library.exists():
        folder.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(
            [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(SOURCE), "-ldl"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"the faults do not compile: {done.stderr}"
    named = {f"FAULT_{name.upper()}": str(value) for name, value in faults.items()}
    return {"LD_PRELOAD": str(library), **named}


class SlowDisk:
    """How slow each write of a database's log is, in milliseconds; `is_busy` once a write waits. `file` is `FAULT_SLOW_FILE`."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._busy = file.with_name(file.name + ".busy")

    def set(self, milliseconds: int) -> None:
        self._busy.unlink(missing_ok=True)
        self.file.write_text(str(milliseconds))

    def is_busy(self) -> bool:
        return self._busy.exists()
