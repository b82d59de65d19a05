"""A kill in the middle of a migration leaves a whole revision: the old one or the next."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from memory_core.clock import FakeClock
from memory_core.store import migrate, schema
from memory_core.store.database import create_database, open_writer

pytestmark = pytest.mark.kills

ROOT = Path(__file__).parents[2]
#: Ends the process the hard way when it is about to run its n-th statement.
DIE_AT = """
import os, signal, sys
from pathlib import Path
from memory_core.clock import SystemClock
from memory_core.store import driver, migrate
seen = 0
def trace(_sql):
    global seen
    seen += 1
    if seen == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
connect = driver.connect
def traced(uri):
    connection = connect(uri)
    connection.set_trace_callback(trace)
    return connection
driver.connect = traced
migrate.migrate(Path(sys.argv[1]), Path(sys.argv[1]).parent, SystemClock())
"""


@pytest.mark.parametrize("statement", [12, 20, 35, 50, 52, 53, 60, 75, 90])
def test_a_kill_leaves_a_whole_revision(tmp_path, statement):
    path = tmp_path / "memory.sqlite"
    create_database(path)

    child = subprocess.run(
        [sys.executable, "-c", DIE_AT, str(path), str(statement)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
    )

    connection = open_writer(path)
    tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    versions = (
        [r[0] for r in connection.execute("SELECT version_num FROM alembic_version")] if tables else [None]
    )
    connection.close()
    assert child.returncode in (0, -9)
    assert versions[0] in (schema.REVISIONS[-1:] if child.returncode == 0 else (None, *schema.REVISIONS))
    assert ("observations" in tables) == (versions[0] is not None)
    assert ("observations_fts" in tables) == (versions[0] not in (None, "0001"))
    migrate.migrate(path, tmp_path, FakeClock())
    assert migrate.is_current(path)
