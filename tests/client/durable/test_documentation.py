"""The newcomer's example of docs/durable-client.md runs as it stands there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.client.durable.gate import Gate

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "durable-client.md").read_text()


def test_the_example_runs_and_goes_on_where_it_was(gate: Gate, tmp_path: Path) -> None:
    program = tmp_path / "notes.py"
    program.write_text(re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.S)[0])
    environ = {
        **os.environ,
        "HOME": str(tmp_path),
        "PYTHONPATH": str(ROOT),
        "MEMORYD_URL": gate.settings.url,
        "MEMORYD_TOKEN": gate.house.token,
    }

    def run(*words: str) -> list[str]:
        done = subprocess.run(
            [sys.executable, str(program), *words],
            cwd=tmp_path,
            env=environ,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    answer, about = run("buy milk")
    assert answer == "Done: buy milk is in notes.txt."
    session = about.split()[1]
    assert run("and bread", session)[1] == f"session {session} now has 8 messages"
    assert (tmp_path / "notes.txt").read_text() == "buy milk\nand bread\n"


def test_the_page_names_every_public_error() -> None:
    import client.durable as public
    from memory_core.errors import CoreError

    named = [
        name
        for name in public.__all__
        if isinstance(getattr(public, name), type) and issubclass(getattr(public, name), CoreError)
    ]
    missing = [name for name in named if name not in PAGE]
    assert missing == ["Closed", "CoreError", "Corrupt", "InUse", "StaleSessionLease"]
