"""Runs a command as a container would, as far as the kernel does that without an engine.

    unshare --pid --fork --mount --mount-proc --uts --kill-child python tests/stack/contained.py HOST UID GID GROUPS WRITABLE HIDDEN COMMAND…

It is process 1 of its own process tree, on a host of that name, as that user with no capability and no way to new ones, can write
nowhere but in the directories of WRITABLE (with colons) and below other mounts, and sees nothing in those of HIDDEN. Must be started by root.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from functools import cache
from pathlib import Path

from tests.pool.apart import open_the_way

_TOOLS = ("unshare", "nsenter", "setpriv", "mount")
_SPACES = ["--pid", "--fork", "--mount", "--mount-proc", "--uts", "--kill-child"]


@cache
def can_be() -> bool:
    """Whether this is root, with these tools, a kernel that lets it, and a checkout that others may read."""
    if os.geteuid() != 0 or not all(map(shutil.which, _TOOLS)):
        return False
    if not all(above.stat().st_mode & 0o001 for above in Path(__file__).resolve().parents):
        return False
    tried = subprocess.run(
        ["unshare", *_SPACES, "mount", "-o", "remount,ro,bind", "/"], capture_output=True, check=False
    )
    return tried.returncode == 0


def command(
    argv: list[str],
    *,
    host: str,
    user: tuple[int, int],
    groups: list[int],
    writable: list[Path],
    hidden: list[Path],
) -> list[str]:
    """The command that runs `argv` so."""
    places = [":".join(map(str, paths)) for paths in (writable, hidden)]
    told = [host, str(user[0]), str(user[1]), ",".join(map(str, groups)), *places]
    return ["unshare", *_SPACES, sys.executable, "-m", "tests.stack.contained", *told, *argv]


def inside(argv: list[str], *, pid: int, user: tuple[int, int], groups: list[int]) -> list[str]:
    """The command that runs `argv` beside process `pid` of such a container."""
    return ["nsenter", "--target", str(pid), "--pid", "--mount", "--uts", *_as(user, groups), *argv]


def first_process(pid: int) -> int | None:
    """The number outside of what is process 1 inside, by that of its `unshare`."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return None
    return int(children[0]) if children else None


def _as(user: tuple[int, int], groups: list[int]) -> list[str]:
    more = ["--groups", ",".join(map(str, groups))] if groups else ["--clear-groups"]
    return [
        "setpriv", "--reuid", str(user[0]), "--regid", str(user[1]), *more,
        "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs", "--",
    ]  # fmt: skip


def main(host: str, uid: str, gid: str, groups: str, writable: str, hidden: str, *argv: str) -> None:
    socket.sethostname(host)
    for place in filter(None, hidden.split(":")):
        _run("mount", "-t", "tmpfs", "-o", "ro,mode=0,size=4k", "none", place)
    for place in filter(None, writable.split(":")):
        _run("mount", "--bind", place, place)
    open_the_way(Path(sys.base_prefix))
    # Whoever writes a file at this moment, a mount before this one for example, keeps the root writable.
    for _ in range(100):
        if (
            subprocess.run(
                ["mount", "-o", "remount,ro,bind", "/"], capture_output=True, check=False
            ).returncode
            == 0
        ):
            break
        time.sleep(0.05)
    else:
        sys.exit("the root could not be made read-only")
    words = [*_as((int(uid), int(gid)), [int(group) for group in groups.split(",") if group]), *argv]
    os.execvp(words[0], words)  # noqa: S606 — no shell wanted


def _run(*argv: str) -> None:
    subprocess.run(argv, check=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
