"""No process of the tree changes anything outside the data directory: the kernel's own record of its calls is read."""

from __future__ import annotations

import os
import re
import shutil
import signal
from pathlib import Path

import pytest

from tests.stack.conftest import TreeStart, wait_until
from workers import heartbeat

pytestmark = pytest.mark.stack

_CHANGES = (
    "open,openat,openat2,creat,mkdir,mkdirat,mknod,mknodat,rename,renameat,renameat2,link,linkat,symlink,symlinkat,"
    "unlink,unlinkat,rmdir,truncate,chmod,fchmodat,chown,fchownat,bind"
)
_PLACES = frozenset({"chdir", "fchdir", "clone", "clone3", "fork", "vfork"})
#: Devices and views of the kernel; nothing stays there.
_NO_FILES = re.compile(r"/dev/(null|tty|pts/.*|full|zero)|/proc/.*")
_LINE = re.compile(r"^(?P<call>\w+)\((?P<arguments>.*)\) += (?P<result>\d+).*$")
_TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"')
_AT = re.compile(r'(?:AT_FDCWD|\d+)<((?:[^>\\]|\\.)*)>, "((?:[^"\\]|\\.)*)"')


_END = {"session_id": "01890000-0000-7000-8000-000000000001", "cwd": "/nowhere", "reason": "exit"}


@pytest.fixture
def strace() -> str:
    found = shutil.which("strace")
    if found is None:
        assert not os.environ.get("CI"), "strace must be installed where this runs for good"
        pytest.skip("strace is not installed")
    return found


def changed_paths(traces: dict[int, str], first: int, directory: Path) -> set[Path]:
    """Every path that a successful call opened for writing, made, renamed, removed or bound a socket to.

    `traces` holds the calls by process; the `first` one began in `directory`, the others where their parent was.
    """
    found: set[Path] = set()
    waiting = [(first, directory)]
    while waiting:
        pid, here = waiting.pop()
        for line in traces.get(pid, "").splitlines():
            match = _LINE.match(line)
            if match is None:
                continue
            call, arguments = match["call"], match["arguments"]
            if call in _PLACES:
                if call == "chdir":
                    here = here / _plain(_TEXT.findall(arguments)[0])
                elif call == "fchdir":
                    here = Path(_plain(re.findall(r"<(.*)>", arguments)[0]))
                else:
                    waiting.append((int(match["result"]), here))
            else:
                found.update(here / path for path in _named(call, arguments))
    return found


def _named(call: str, arguments: str) -> list[Path]:
    if call.startswith("open") and not re.search(r"O_WRONLY|O_RDWR|O_CREAT|O_TRUNC", arguments):
        return []
    if call == "bind":
        return [Path(_plain(name)) for name in re.findall(r'sun_path="([^"]+)"', arguments)]
    pairs = _AT.findall(arguments)
    if pairs:
        return [Path(_plain(base)) / _plain(name) for base, name in pairs]
    return [Path(_plain(name)) for name in _TEXT.findall(arguments)]


def _plain(text: str) -> str:
    return text.encode("latin-1", "replace").decode("unicode_escape")


@pytest.mark.parametrize("below", ["data", ".hidden dir/with spaces"])
def test_nothing_outside_the_data_directory_is_changed(
    below: str, strace: str, tmp_path: Path, start_tree: TreeStart
) -> None:
    calls = ",".join((_CHANGES, *_PLACES))
    record = tmp_path / "traces"
    record.mkdir()
    trace = [strace, "-ff", "-y", "-z", "-s", "4096", "-e", f"trace={calls}", "-o", str(record / "of")]
    tree = start_tree("workers.supervisor", data=tmp_path / below, prefix=trace)
    supervisor = int(str(tree.wait_ready()["pid"]))
    for number in range(5):
        tree.prompt(f"remember number {number}")
    assert tree.post("/hook?agent=claude-code&event=SessionEnd&wait=commit", _END) == 200
    heart = heartbeat.heartbeat_file(tree.settings.run_dir, "pool")
    first = heartbeat.read(heart)
    wait_until(lambda: heartbeat.read(heart) != first)
    os.kill(supervisor, signal.SIGTERM)
    tree.process.wait(60)
    traces = {int(path.suffix[1:]): path.read_text(errors="replace") for path in record.iterdir()}

    changed = changed_paths(traces, supervisor, Path.cwd())

    # Each process was watched: here is something that only it writes.
    names = {path.name for path in changed}
    assert {"valkey.conf.new", "supervisor.log", "writer.log", "web.log", "pool.log", "beat.log"} <= names
    assert any(path.is_relative_to(tree.settings.wiki) and path.suffix == ".md" for path in changed)
    outside = {path for path in changed if not path.is_relative_to(tree.settings.data_dir)}
    assert {path for path in outside if not _NO_FILES.fullmatch(str(path))} <= _parents(
        tree.settings.data_dir
    )


def _parents(data_dir: Path) -> set[Path]:
    """The directories on the way to it are made at a first start."""
    return set(data_dir.parents)


def test_the_reader_of_traces_sees_what_it_must() -> None:
    traces = {
        7: """\
openat(AT_FDCWD</w>, "a", O_WRONLY|O_CREAT, 0600) = 3</w/a>
openat(AT_FDCWD</w>, "/read", O_RDONLY|O_CLOEXEC) = 3</read>
chdir("sub") = 0
clone(child_stack=NULL, flags=CLONE_CHILD_SETTID|SIGCHLD) = 8
chdir("/w") = 0
rename("x", "/w/y") = 0
renameat2(5</d>, "p", 5</d>, "q", RENAME_EXCHANGE) = 0
bind(4<socket:[1]>, {sa_family=AF_UNIX, sun_path="/w/s.sock"}, 110) = 0
bind(4<socket:[1]>, {sa_family=AF_INET, sin_port=htons(1)}, 16) = 0
+++ exited with 0 +++
""",
        8: 'mkdir("made", 0700) = 0\n',
    }

    changed = changed_paths(traces, 7, Path("/start"))

    expected = ("/w/a", "/w/x", "/w/y", "/d/p", "/d/q", "/w/s.sock", "/start/sub/made")
    assert changed == {Path(path) for path in expected}
