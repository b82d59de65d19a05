"""The data directory: made, checked and closed to others before any process works in it.

Nothing that memoryd writes lies outside of it; `environment` points the temporary files and caches of every child here.
"""

from __future__ import annotations

import json
import os
import secrets
import stat
from collections.abc import Mapping
from pathlib import Path

from memory_core.config import Settings
from memory_core.domain.token import mint
from memory_core.errors import Invalid

#: Locks and mmap are not to be trusted there; SQLite's write-ahead log needs both.
_NETWORK_TYPES = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs"})
_MOUNTS = Path("/proc/self/mountinfo")
_FORMAT = 1
_ASIDE = ".new-"


def prepare(settings: Settings) -> None:
    """Make or check the layout; on a first start make the token and the install's key. Idempotent.

    Raises `Invalid`, with what to do about it, for a directory that is not ours, is open to
    others' links, or lies on a network file system.
    """
    root = settings.data_dir
    _make_root(root)
    _refuse_network(root, settings)
    _refuse_foreign(root, settings.marker_file)
    # The marker comes first: a start that is killed here must not make the next one refuse its own directory.
    _create(settings.marker_file, json.dumps({"memoryd": "data directory", "format": _FORMAT}) + "\n")
    for directory in layout(settings):
        _make_inside(directory)
    _create(settings.token_file, mint().text + "\n")
    _create(settings.install_key_file, secrets.token_bytes(32))


def layout(settings: Settings) -> tuple[Path, ...]:
    """The directories inside, parents first."""
    return (
        settings.database.parent,
        settings.backups,
        settings.wiki,
        settings.incoming,
        settings.broker_dir,
        settings.run_dir,
        settings.log_dir,
        settings.tmp_dir,
        _home(settings),
        _home(settings) / "cache",
    )


def environment(settings: Settings, inherited: Mapping[str, str]) -> dict[str, str]:
    """The environment of a child: the settings, and every usual place of temporary files inside the data directory."""
    temporary, home = str(settings.tmp_dir), str(_home(settings))
    return {
        **{name: value for name, value in inherited.items() if not name.startswith("XDG_")},
        **settings.environment(),
        "TMPDIR": temporary,
        "TMP": temporary,
        "TEMP": temporary,
        "SQLITE_TMPDIR": temporary,
        "HOME": home,
        "XDG_CACHE_HOME": str(_home(settings) / "cache"),
        "XDG_CONFIG_HOME": home,
        "XDG_DATA_HOME": home,
        "XDG_STATE_HOME": home,
        "XDG_RUNTIME_DIR": home,
        # Byte code would be written beside the sources.
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def file_system(path: Path, mounts: str) -> str:
    """The type of the file system that holds `path`, by the text of a mountinfo file; empty when unknown."""
    best, kind = -1, ""
    for line in mounts.splitlines():
        left, _, right = line.partition(" - ")
        fields = left.split()
        if len(fields) < 5 or not right:
            continue
        mount = fields[4].encode().decode("unicode_escape")
        inside = path == Path(mount) or Path(mount) in path.parents
        if inside and len(mount) >= best:
            best, kind = len(mount), right.split()[0]
    return kind


def _home(settings: Settings) -> Path:
    return settings.tmp_dir / "home"


def _make_root(root: Path) -> None:
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
    except FileExistsError as error:
        raise Invalid(f"{root} is not a directory; choose another one with --data-dir") from error
    except OSError as error:
        raise Invalid(f"cannot make {root}: {error.strerror}; choose another one with --data-dir") from error


def _refuse_network(root: Path, settings: Settings) -> None:
    if settings.allow_network_disk or not _MOUNTS.exists():
        return
    kind = file_system(root.resolve(), _MOUNTS.read_text(encoding="utf-8", errors="replace"))
    if kind in _NETWORK_TYPES or kind.startswith("fuse"):
        raise Invalid(
            f"{root} lies on {kind}, where file locks cannot be trusted and a database can be damaged. "
            "Choose a local disk with --data-dir, or set MEMORYD_ALLOW_NETWORK_DISK=1 if you are sure."
        )


def _refuse_foreign(root: Path, marker: Path) -> None:
    status = root.stat()
    if status.st_uid != os.geteuid():
        raise Invalid(f"{root} belongs to user {status.st_uid}; memoryd runs as {os.geteuid()}")
    if marker.is_symlink():
        raise Invalid(f"{marker} is a symbolic link; it must be a file that memoryd made")
    if not marker.exists() and _has_content(root):
        raise Invalid(
            f"{root} is not empty and no memoryd data directory (it has no {marker.name}). "
            "Choose an empty or a new directory with --data-dir."
        )
    if stat.S_IMODE(status.st_mode) != 0o700:
        root.chmod(0o700)


def _has_content(root: Path) -> bool:
    """A fresh file system brings `lost+found`, a start that was killed half a marker; neither is content."""
    return any(entry.name != "lost+found" and not entry.name.startswith(_ASIDE) for entry in root.iterdir())


def _make_inside(directory: Path) -> None:
    if directory.is_symlink():
        raise Invalid(
            f"{directory} is a symbolic link; a directory inside the data directory must be a real one"
        )
    try:
        directory.mkdir(mode=0o700, exist_ok=True)
    except FileExistsError as error:
        raise Invalid(f"{directory} must be a directory") from error
    directory.chmod(0o700)


def _create(path: Path, content: str | bytes) -> None:
    """Make a file with that content unless it is there; whole or absent also after a power cut, 0600."""
    if path.is_symlink():
        raise Invalid(f"{path} is a symbolic link; it must be a file that memoryd made")
    if path.exists():
        return
    data = content.encode() if isinstance(content, str) else content
    aside = path.with_name(f"{_ASIDE}{secrets.token_hex(8)}")
    descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.link(aside, path)
    except FileExistsError:
        pass  # another start was quicker; its content holds
    finally:
        aside.unlink()
    _sync_directory(path.parent)


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
