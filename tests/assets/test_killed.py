"""Whoever takes a file in or collects files is killed before each thing that it does to the disk: what has a row stays, the rest goes later."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from memory_core.asset_files import AssetFiles

pytestmark = pytest.mark.kills

ROOT = Path(__file__).parents[2]
FAR = 2**62
#: Ends the process the hard way before its n-th doing of these kinds.
CHILD = """
import os, signal, sys
from pathlib import Path
from memory_core.asset_files import AssetFiles
directory, what, number, known = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4:]
files, left = AssetFiles(directory), number
def die(event, args):
    global left
    if event in ("os.link", "os.remove", "os.utime", "fcntl.flock", "open") and left is not None:
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(die)
if what == "keep":
    received = files.receive([b"pic", b"ture"])
    with files.shared():
        files.publish(received)
else:
    with files.alone() as is_alone:
        assert is_alone
        strays, _ = files.strays(
            older_than_ns=2**62, unfinished_older_than_ns=2**62, known=[bytes.fromhex(each) for each in known]
        )
        for stray in strays:
            files.remove(stray)
        files.sync()
left = None
"""


def killed_before(number: int, directory: Path, what: str, *known: bytes) -> bool:
    """Whether it came to a doing of that number, which it did not do."""
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(directory), what, str(number), *(each.hex() for each in known)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode in (0, -9), done.stderr
    return done.returncode == -9


def kept(files: AssetFiles, data: bytes) -> bytes:
    received = files.receive([data])
    with files.shared():
        files.publish(received)
    return received.sha256


def collect(files: AssetFiles, known: Iterable[bytes] = ()) -> None:
    with files.alone() as is_alone:
        assert is_alone, "the lock of a process that was killed is nobody's"
        strays, _ = files.strays(older_than_ns=FAR, unfinished_older_than_ns=FAR, known=known)
        assert [stray.name for stray in strays if stray.is_whole is False] == []
        for stray in strays:
            assert files.remove(stray)


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir() if path.name != ".lock")


def test_a_file_whose_taking_in_is_cut_anywhere_is_collected_and_can_be_taken_in_again(tmp_path: Path):
    number = 0
    while killed_before(number := number + 1, tmp_path, "keep"):
        files = AssetFiles(tmp_path)
        collect(files)
        assert names(tmp_path) == []
        digest = kept(files, b"picture")
        assert b"".join(files.read(digest, 7)) == b"picture"
        collect(files)
    assert number > 6, "there are several steps, and each was cut"


def test_a_file_with_a_row_survives_whoever_is_killed_while_it_comes_again(tmp_path: Path):
    files, number = AssetFiles(tmp_path), 0
    digest = kept(files, b"picture")
    while killed_before(number := number + 1, tmp_path, "keep"):
        assert b"".join(files.read(digest, 7)) == b"picture"
        collect(files, [digest])
        assert names(tmp_path) == [digest.hex()]
    assert number > 6


def test_a_collection_that_is_cut_anywhere_takes_nothing_with_a_row_and_is_made_up_for(tmp_path: Path):
    files, number, digest = AssetFiles(tmp_path), 0, b""
    while True:
        digest = kept(files, b"booked")
        for data in (b"orphan 1", b"orphan 2"):
            kept(files, data)
        (tmp_path / f".asset-{'b' * 32}").write_bytes(b"half")
        if not killed_before(number := number + 1, tmp_path, "collect", digest):
            break
        assert b"".join(files.read(digest, 6)) == b"booked"
        collect(files, [digest])
        assert names(tmp_path) == [digest.hex()]
    assert number > 5
    assert names(tmp_path) == [digest.hex()]
