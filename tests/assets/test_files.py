"""Files of assets: published by digest, verified whenever read, collected only when nobody can need them."""

from __future__ import annotations

import fcntl
import hashlib
import os
import threading
from pathlib import Path

import pytest

from memory_core import limits
from memory_core.asset_files import AssetFiles, Received
from memory_core.errors import Corrupt, TooLarge, Unavailable

FAR = 2**62


def kept(files: AssetFiles, data: bytes) -> Received:
    received = files.receive([data])
    files.publish(received)
    return received


def read(files: AssetFiles, received: Received) -> bytes:
    return b"".join(files.read(received.sha256, received.bytes))


def collect(files: AssetFiles, *known: bytes, older_than_ns: int = FAR) -> list[str]:
    strays, _ = files.strays(older_than_ns=older_than_ns, unfinished_older_than_ns=older_than_ns, known=known)
    return [stray.name for stray in strays if stray.is_whole is not False and files.remove(stray)]


@pytest.fixture
def files(tmp_path: Path) -> AssetFiles:
    return AssetFiles(tmp_path)


def test_a_file_lies_under_its_digest_and_nobody_else_may_read_it(files: AssetFiles, tmp_path: Path):
    received = kept(files, b"a picture")

    (path,) = [p for p in tmp_path.iterdir() if p.name != ".lock"]
    assert path.name == hashlib.sha256(b"a picture").hexdigest()
    assert path.stat().st_mode & 0o7777 == 0o600
    assert read(files, received) == b"a picture"


def test_the_same_bytes_are_stored_once(files: AssetFiles, tmp_path: Path):
    first, second = kept(files, b"twice"), kept(files, b"twice")

    assert first.sha256 == second.sha256
    assert len([p for p in tmp_path.iterdir() if p.name != ".lock"]) == 1


def test_more_than_an_asset_may_have_leaves_nothing(
    files: AssetFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(limits, "ASSET_MAX_BYTES", 10)

    with pytest.raises(TooLarge):
        files.receive([b"x" * 6, b"x" * 6])

    assert list(tmp_path.iterdir()) == []


def test_an_upload_that_breaks_off_leaves_nothing(files: AssetFiles, tmp_path: Path):
    def broken():
        yield b"half"
        raise ConnectionResetError("gone")

    with pytest.raises(Unavailable):
        files.receive(broken())

    assert list(tmp_path.iterdir()) == []


def tampered(path: Path) -> None:
    path.write_bytes(b"another")


def shortened(path: Path) -> None:
    path.write_bytes(b"")


def made_a_link(path: Path) -> None:
    aside = path.with_name("aside")
    path.rename(aside)
    path.symlink_to(aside)


def opened_to_others(path: Path) -> None:
    path.chmod(0o644)


def made_a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path, 0o600)


@pytest.mark.parametrize(
    "harm", [tampered, shortened, made_a_link, opened_to_others, made_a_pipe, Path.unlink]
)
def test_assets_deduplicate_and_tampering_is_detected(files: AssetFiles, tmp_path: Path, harm):
    received = kept(files, b"picture")
    harm(tmp_path / received.sha256.hex())

    with pytest.raises(Corrupt):
        read(files, received)


def test_a_damaged_file_is_not_taken_for_the_same_bytes_that_come_again(files: AssetFiles, tmp_path: Path):
    received = kept(files, b"picture")
    tampered(tmp_path / received.sha256.hex())

    with pytest.raises(Corrupt):
        kept(files, b"picture")

    assert [p.name for p in tmp_path.glob(".asset-*")] == []


def test_files_without_a_row_are_collected_and_files_with_one_stay(files: AssetFiles):
    orphan, booked = kept(files, b"orphan"), kept(files, b"booked")

    assert collect(files, booked.sha256) == [orphan.sha256.hex()]
    assert read(files, booked) == b"booked"


def test_young_files_stay(files: AssetFiles):
    kept(files, b"orphan")

    assert collect(files, older_than_ns=1) == []


def test_a_file_that_is_found_again_is_young_again(files: AssetFiles, tmp_path: Path):
    received = kept(files, b"picture")
    path = tmp_path / received.sha256.hex()
    os.utime(path, ns=(5, 5))
    strays, _ = files.strays(older_than_ns=10, unfinished_older_than_ns=10, known=())

    kept(files, b"picture")

    assert not files.remove(strays[0])
    assert read(files, received) == b"picture"


def test_a_corrupt_orphan_is_told_and_left_and_the_others_go(files: AssetFiles, tmp_path: Path):
    damaged, orphan = kept(files, b"one"), kept(files, b"two")
    tampered(tmp_path / damaged.sha256.hex())

    strays, _ = files.strays(older_than_ns=FAR, unfinished_older_than_ns=FAR, known=())

    assert {stray.name: stray.is_whole for stray in strays} == {
        damaged.sha256.hex(): False,
        orphan.sha256.hex(): True,
    }


def test_an_upload_under_way_is_not_collected_and_one_that_died_is(files: AssetFiles, tmp_path: Path):
    living, dead = tmp_path / f".asset-{'a' * 32}", tmp_path / f".asset-{'b' * 32}"
    for path in (living, dead):
        path.write_bytes(b"half")
    with living.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)

        assert collect(files) == [dead.name]


def test_other_files_are_nobodys(files: AssetFiles, tmp_path: Path):
    (tmp_path / "README").write_text("put here by a person")

    assert collect(files) == []


def test_a_directory_is_looked_through_in_parts(files: AssetFiles, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(limits, "ASSET_GC_ENTRIES", 2)
    wanted = {kept(files, bytes([number])).sha256.hex() for number in range(5)}
    found, after = set(), ""
    while True:
        strays, after = files.strays(older_than_ns=FAR, unfinished_older_than_ns=FAR, known=(), after=after)
        found |= {stray.name for stray in strays}
        if not after:
            break

    assert found == wanted


def test_nothing_is_collected_while_something_is_taken_in(files: AssetFiles):
    with files.shared(), files.alone() as is_alone:
        assert not is_alone
    with files.alone() as is_alone:
        assert is_alone


def test_concurrent_store_and_gc_leave_a_readable_catalog_entry(files: AssetFiles):
    """Sixteen keep the same bytes sixteen times while somebody collects all the time."""
    booked: set[bytes] = set()
    complaints: list[BaseException] = []
    is_over = threading.Event()

    def keep() -> None:
        try:
            for _ in range(16):
                received = files.receive([b"shared bytes"])
                with files.shared():
                    files.publish(received)
                    booked.add(received.sha256)
        except BaseException as error:
            complaints.append(error)

    def gather() -> None:
        while not is_over.is_set():
            with files.alone() as is_alone:
                if not is_alone:
                    continue
                strays, _ = files.strays(older_than_ns=FAR, unfinished_older_than_ns=1, known=booked)
                for stray in strays:
                    files.remove(stray)

    collector = threading.Thread(target=gather)
    collector.start()
    keepers = [threading.Thread(target=keep) for _ in range(16)]
    for thread in keepers:
        thread.start()
    for thread in keepers:
        thread.join()
    is_over.set()
    collector.join()

    assert complaints == []
    (digest,) = booked
    assert b"".join(files.read(digest, len(b"shared bytes"))) == b"shared bytes"
