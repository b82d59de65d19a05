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
from memory_core.durable import sync_directory
from memory_core.errors import Invalid, Unavailable

#: Locks and mmap are not to be trusted there; SQLite's write-ahead log needs both.
_NETWORK_TYPES = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs"})
_MOUNTS = Path("/proc/self/mountinfo")
_FORMAT = 1
#: The one user of Flower.
FLOWER_USER = "memoryd"
_ASIDE = ".new-"


def prepare(settings: Settings) -> None:
    """Make or check the layout; on a first start make the tokens and the install's key. Idempotent.

    Raises `Invalid`, with what to do about it, for a directory that is not ours, is open to
    others' links, or lies on a network file system.
    """
    root = settings.data_dir
    _make_root(root)
    _refuse_network(root, settings)
    _refuse_foreign(root, settings.marker_file, settings.effective_config_file)
    # The marker comes first: a start that is killed here must not make the next one refuse its own directory.
    _create(settings.marker_file, json.dumps({"memoryd": "data directory", "format": _FORMAT}) + "\n")
    for directory in layout(settings):
        _make_inside(directory)
    # What is synced below a name that a power cut takes away is gone with it; an earlier start may have been killed before this.
    for parent in {directory.parent for directory in layout(settings)}:
        sync_directory(parent)
    _create(settings.token_file, mint().text + "\n")
    _create(settings.install_key_file, secrets.token_bytes(32))
    _make_handout(settings)


def require(settings: Settings) -> None:
    """Look whether this is a data directory that its owner made ready; changes nothing in it. A state directory apart is made.

    Raises `Unavailable` where it is not (yet), `Invalid` where it is somebody else's or on a network file system.
    """
    root = settings.data_dir
    if not settings.marker_file.is_file() or not settings.install_key_file.is_file():
        raise Unavailable(
            f"{root} is no memoryd data directory yet; its writer makes it, start that one first"
        )
    _refuse_network(root, settings)
    _refuse_foreign(root, settings.marker_file)
    for directory in _data_places(settings) if settings.state_dir else layout(settings):
        if directory.is_symlink() or not directory.is_dir():
            raise Invalid(f"{directory} must be a directory; start the writer, which makes it")
    if settings.state_dir:
        prepare_scratch(settings)


def prepare_scratch(settings: Settings) -> None:
    """Make a directory for a process tree's own files: logs, signs of life, temporary files."""
    root = settings.own_dir
    marker = root / settings.marker_file.name
    _make_root(root)
    _refuse_network(root, settings)
    _refuse_foreign(root, marker, settings.effective_config_file)
    _create(marker, json.dumps({"memoryd": "scratch directory", "format": _FORMAT}) + "\n")
    for directory in _own_places(settings):
        _make_inside(directory)


def layout(settings: Settings) -> tuple[Path, ...]:
    """The directories inside, parents first."""
    return (*_data_places(settings), *_own_places(settings))


def _data_places(settings: Settings) -> tuple[Path, ...]:
    return (
        settings.database.parent,
        settings.backups,
        settings.wiki,
        settings.assets,
        settings.incoming,
        settings.broker_dir,
    )


def _own_places(settings: Settings) -> tuple[Path, ...]:
    """What every process tree needs, the data or not."""
    return (
        settings.run_dir,
        settings.log_dir,
        settings.tmp_dir,
        _home(settings),
        settings.cache_dir,
    )


def environment(settings: Settings, inherited: Mapping[str, str]) -> dict[str, str]:
    """The environment of a child: the settings, and every usual place of temporary files inside the tree's own directory."""
    temporary, home = str(settings.tmp_dir), str(_home(settings))
    return {
        **{name: value for name, value in inherited.items() if not name.startswith("XDG_")},
        **settings.environment(),
        "TMPDIR": temporary,
        "TMP": temporary,
        "TEMP": temporary,
        "SQLITE_TMPDIR": temporary,
        "HOME": home,
        "XDG_CACHE_HOME": str(settings.cache_dir),
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
        missing = [path for path in (root, *root.parents) if not path.exists()]
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        for path in missing:
            sync_directory(path.parent)
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


def _refuse_foreign(root: Path, marker: Path, *expected: Path) -> None:
    """`expected` may lie there before a first start."""
    _refuse_others(root)
    if marker.is_symlink():
        raise Invalid(f"{marker} is a symbolic link; it must be a file that memoryd made")
    if not marker.exists() and _has_content(root, expected):
        raise Invalid(
            f"{root} is not empty and no memoryd data directory (it has no {marker.name}). "
            "Choose an empty or a new directory with --data-dir."
        )
    _set_mode(root, 0o700)


def _refuse_others(directory: Path) -> None:
    owner = directory.stat().st_uid
    if owner != os.geteuid():
        raise Invalid(f"{directory} belongs to user {owner}; memoryd runs as {os.geteuid()}")


def _has_content(root: Path, expected: tuple[Path, ...]) -> bool:
    """A fresh file system brings `lost+found`, a start that was killed half a marker; neither is content."""
    return any(
        entry.name != "lost+found" and not entry.name.startswith(_ASIDE) and entry not in expected
        for entry in root.iterdir()
    )


def handed_out(settings: Settings) -> dict[Path, int]:
    """The files for processes without the data, and their modes. Apart, our group may read all but the workers' token: a scraper
    of metrics and Flower run as somebody else."""
    for_group = 0o640 if settings.handout_dir else 0o600
    return {
        settings.install_file: for_group,
        settings.metrics_token_file: for_group,
        settings.flower_auth_file: for_group,
        settings.local_pool_token_file: 0o600,
    }


def _make_handout(settings: Settings) -> None:
    """All of them but the id, which the writer knows; and the modes of what an earlier start made."""
    modes = handed_out(settings)
    if settings.handout_dir:
        for file, mode in modes.items():
            _make_root(file.parent)
            _refuse_others(file.parent)
            _set_mode(file.parent, 0o750 if mode & stat.S_IRGRP else 0o700)
    for file, text in (
        (settings.metrics_token_file, mint().text),
        (settings.local_pool_token_file, mint().text),
        (settings.flower_auth_file, f"{FLOWER_USER}:{secrets.token_urlsafe(24)}"),
    ):
        _create(file, text + "\n", mode=modes[file])
    for file, mode in modes.items():
        if file.is_file():
            _set_mode(file, mode)


def _set_mode(path: Path, mode: int) -> None:
    # Only where it differs: of a mount that cannot be changed the right mode is enough.
    if stat.S_IMODE(path.stat().st_mode) != mode:
        path.chmod(mode)


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


def _create(path: Path, content: str | bytes, mode: int = 0o600) -> None:
    """Make a file with that content unless it is there; whole or absent also after a power cut."""
    if path.is_symlink():
        raise Invalid(f"{path} is a symbolic link; it must be a file that memoryd made")
    if path.exists():
        return
    data = content.encode() if isinstance(content, str) else content
    aside = path.with_name(f"{_ASIDE}{secrets.token_hex(8)}")
    descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(descriptor, mode)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.link(aside, path)
    except FileExistsError:
        pass  # another start was quicker; its content holds
    finally:
        aside.unlink()
    sync_directory(path.parent)
