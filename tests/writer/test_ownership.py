"""The writer's lock: held for life, and tested, because a lock that lies lets two writers damage the database."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from memory_core.errors import NotAlone
from workers.writer.ownership import WriterLock

ROOT = Path(__file__).parents[2]
FAULTS = Path(__file__).parent / "faults" / "lying_locks.c"
TAKE = "import sys; from pathlib import Path; from workers.writer.ownership import WriterLock; WriterLock(Path(sys.argv[1])).self_test()"


def test_a_second_holder_is_refused_with_the_pid_of_the_first(tmp_path):
    lock = WriterLock(tmp_path)

    with pytest.raises(NotAlone, match=str(os.getpid())):
        WriterLock(tmp_path)

    lock.release()
    WriterLock(tmp_path).release()


def test_working_locks_pass_their_test(tmp_path):
    lock = WriterLock(tmp_path)

    lock.self_test()

    lock.release()


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
@pytest.mark.parametrize(
    ("locks", "said"), [("none", "cannot be locked"), ("lie", "do not keep a second process out")]
)
def test_locks_that_fail_or_lie_are_caught(tmp_path, locks, said):
    library = tmp_path / "lying_locks.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(FAULTS), "-ldl"], check=True)
    run = tmp_path / "run"
    run.mkdir()

    ended = subprocess.run(
        [sys.executable, "-c", TAKE, str(run)],
        env={**os.environ, "LD_PRELOAD": str(library), "LOCKS": locks, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert ended.returncode != 0
    assert said in ended.stderr
