"""People, agents and git at work in one wiki while its writer is killed: everything agrees at the end, no edit is lost."""

from __future__ import annotations

import itertools
import json
import logging
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from memory_core.commands.pages import WritePage
from memory_core.config import Settings
from tests.factories import envelope
from tests.stack.conftest import wait_until
from tests.wiki.oracle import unexplained
from tests.writer.conftest import RunningWriter, rows

logger = logging.getLogger(__name__)

ROOT = Path(__file__).parents[2]
#: `scripts/chaos --wiki` makes more of both.
KILLS = int(os.environ.get("STORM_KILLS", "3"))
SECONDS_BETWEEN_KILLS = float(os.environ.get("STORM_SECONDS", "4"))
WRITES_PER_SECOND = 20


class BooksOf:
    """What the oracle asks for, of a running writer's data directory."""

    def __init__(self, of: Settings) -> None:
        self._of = of

    def query(self, sql: str) -> list[Any]:
        return rows(self._of, sql)

    def files(self) -> dict[str, bytes]:
        root = self._of.wiki
        return {
            str(file.relative_to(root)): file.read_bytes()
            for file in sorted(root.rglob("*.md"))
            if file.is_file()
            and file.name != "_meta.md"
            and not any(part.startswith(".") for part in file.relative_to(root).parts)
        }


class Agent:
    """Writes pages through the stream, so many a second, whether there is a writer or not."""

    def __init__(self, writer: RunningWriter, seed: int) -> None:
        self._writer = writer
        self._chance = random.Random(seed)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.markers: list[str] = []

    def __enter__(self) -> Agent:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        for number in itertools.count():
            if self._stopping.wait(1 / WRITES_PER_SECOND):
                return
            marker = f"agent-{number}-end"
            path = f"notes/{self._chance.randint(0, 9)}.md"
            page = WritePage(workspace="default", project="alpha", path=path, body=f"{marker}\n")
            self._writer.append(envelope(page, token_scope="write"))
            self.markers.append(marker)


@pytest.mark.kills
@pytest.mark.timeout(120 + 60 * KILLS)
def test_no_edit_is_lost_in_a_storm_and_everything_agrees_at_its_end(
    settings,
    start_broker,
    start_writer,
    tmp_path: Path,
):
    seed = int(os.environ.get("STORM_SEED", "0")) or int.from_bytes(os.urandom(4), "big")
    logger.warning("seed %d", seed)
    start_broker(settings)
    writer = start_writer()
    ledger = tmp_path / "ledger"
    ledger.touch()
    project = settings.wiki / "default" / "alpha"
    in_flight: list[int] = []
    with Agent(writer, seed) as agent:
        wait_until(lambda: (project / "notes").exists())
        editor = subprocess.Popen(
            [sys.executable, "-m", "tests.wiki.storm_editor", project, settings.database, ledger, str(seed)],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        try:
            for _ in range(KILLS):
                time.sleep(SECONDS_BETWEEN_KILLS)  # the storm itself: there is nothing to wait for
                wait_until(lambda w=writer: _in_flight(w))
                writer.kill()
                in_flight.append(_in_flight(writer))
                writer = start_writer()
            time.sleep(SECONDS_BETWEEN_KILLS)
        finally:
            editor.send_signal(signal.SIGTERM)
            assert editor.wait(60) == 0
    looked_at = _state(settings).get("whole_look_at") or 0
    writer.kill()
    writer = start_writer()  # which begins with a look at everything
    writer.drained(60)
    _wait_still(settings, looked_at)

    edits = ledger.read_text().split()
    texts = [row["content"] for row in rows(settings, "SELECT content FROM page_versions")]
    everything = "\n".join(texts)
    lost = [marker for marker in (*edits, *agent.markers) if marker not in everything]
    logger.warning(
        "%d edits, %d writes, in flight at the kills: %s", len(edits), len(agent.markers), in_flight
    )
    assert lost == [], f"in no version: {lost}, seed {seed}"
    assert len(edits) > 20
    assert any(in_flight)
    assert unexplained(BooksOf(settings)) == []  # type: ignore[arg-type]
    assert rows(settings, "PRAGMA integrity_check")[0]["integrity_check"] == "ok"
    _git_agrees(settings)


def _in_flight(writer: RunningWriter) -> int:
    """Commands that are not applied yet, and files that are not in place yet."""
    return writer.waiting() + len(writer.rows("SELECT 1 FROM file_outbox"))


def _state(of: Settings) -> dict[str, Any]:
    try:
        return json.loads((of.run_dir / "wiki.status.json").read_text())
    except (OSError, ValueError):
        return {}


def _wait_still(of: Settings, looked_at: int) -> None:
    """Until a whole look later than the one of `looked_at` found nothing to do, and every promised file is in place."""

    def unrest() -> dict[str, Any]:
        state = _state(of)
        return {
            "not looked at again": (state.get("whole_look_at") or 0) <= looked_at,
            "waiting": state.get("waiting"),
            "held": state.get("held"),
            "promised": [row["file"] for row in rows(of, "SELECT file FROM file_outbox")],
            "unexplained": unexplained(BooksOf(of)),  # type: ignore[arg-type]
        }

    deadline = time.monotonic() + 90
    while any((found := unrest()).values()):
        assert time.monotonic() < deadline, f"no rest: {found} {_state(of)}"
        time.sleep(0.2)


def _git_agrees(of: Settings) -> None:
    def dirty() -> str:
        return subprocess.run(
            ["git", "-C", of.wiki, "status", "--porcelain"], capture_output=True, text=True, check=True
        ).stdout

    wait_until(lambda: dirty() == "")
    subprocess.run(["git", "-C", of.wiki, "fsck", "--strict"], check=True, capture_output=True)


@pytest.mark.kills
def test_a_writer_that_exchanges_files_blindly_is_caught():
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-x",
            "-p",
            "no:cacheprovider",
            "-k",
            "no_edit_is_lost",
            __file__,
        ],
        env={
            **os.environ,
            "MEMORYD_TEST_MUTANT": "blind_exchange",
            "STORM_KILLS": "1",
            "PYTHONPATH": str(ROOT),
        },
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 1, done.stdout[-2000:]
    assert "in no version: ['" in done.stdout, done.stdout[-2000:]
