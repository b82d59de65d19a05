from __future__ import annotations

import stat
from pathlib import Path

import pytest

from memory_core.config import Settings
from memory_core.errors import Invalid
from memory_core.store.database import create_database
from tests.stack.conftest import Synced
from workers import data_dir


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_first_start_makes_everything_private(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path / "deep" / "data")
    data_dir.prepare(settings)

    assert _mode(settings.data_dir) == 0o700
    for directory in data_dir.layout(settings):
        assert _mode(directory) == 0o700
    for file in (settings.token_file, settings.install_key_file, settings.marker_file):
        assert _mode(file) == 0o600
    assert len(settings.install_key_file.read_bytes()) == 32
    assert settings.token_file.read_text().startswith("mdt_")
    assert not list(settings.data_dir.glob(".new-*"))


def test_each_directory_of_a_first_start_outlasts_a_power_cut(tmp_path: Path, synced: Synced) -> None:
    settings = Settings(data_dir=tmp_path / "deep" / "data")
    data_dir.prepare(settings)

    made = [settings.data_dir.parent, settings.data_dir, *data_dir.layout(settings)]
    assert [path for path in made if path.name not in synced[path.parent]] == []


def test_the_database_of_a_first_start_outlasts_a_power_cut(settings: Settings, synced: Synced) -> None:
    create_database(settings.database)

    assert settings.database.name in synced[settings.database.parent]


def test_a_second_start_keeps_token_and_key(settings: Settings) -> None:
    before = settings.token_file.read_bytes(), settings.install_key_file.read_bytes()
    data_dir.prepare(settings)
    assert (settings.token_file.read_bytes(), settings.install_key_file.read_bytes()) == before


def test_a_directory_that_was_opened_to_others_is_closed_again(settings: Settings) -> None:
    settings.data_dir.chmod(0o755)
    settings.run_dir.chmod(0o777)
    data_dir.prepare(settings)
    assert _mode(settings.data_dir) == _mode(settings.run_dir) == 0o700


def test_somebody_elses_files_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(Invalid, match="not empty"):
        data_dir.prepare(Settings(data_dir=tmp_path))
    assert [entry.name for entry in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_configuration_file_may_lie_there_before_the_first_start(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("[server]\n")
    settings = Settings(data_dir=tmp_path)
    data_dir.prepare(settings)
    data_dir.require(settings)

    assert (tmp_path / "config.toml").read_text() == "[server]\n"


def test_a_configuration_file_elsewhere_makes_no_foreign_one_welcome(tmp_path: Path) -> None:
    root = tmp_path / "data"
    root.mkdir()
    (root / "config.toml").write_text("title = 'a site of somebody else'\n")
    with pytest.raises(Invalid, match="not empty"):
        data_dir.prepare(Settings(data_dir=root, config_file=str(tmp_path / "own.toml")))


def test_a_start_that_was_killed_in_the_middle_can_go_on(tmp_path: Path) -> None:
    (tmp_path / ".new-0123").write_text("")
    data_dir.prepare(Settings(data_dir=tmp_path))


def test_a_link_inside_is_refused(settings: Settings, tmp_path: Path) -> None:
    settings.wiki.rmdir()
    settings.wiki.symlink_to(tmp_path)
    with pytest.raises(Invalid, match="symbolic link"):
        data_dir.prepare(settings)


def test_a_link_in_the_place_of_the_token_is_refused(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path / "data")
    settings.data_dir.mkdir()
    settings.token_file.symlink_to(tmp_path / "elsewhere")
    settings.marker_file.write_text("{}")
    with pytest.raises(Invalid, match="symbolic link"):
        data_dir.prepare(settings)
    assert not (tmp_path / "elsewhere").exists()


def test_it_works_behind_a_link_below_a_hidden_directory_and_with_spaces(tmp_path: Path) -> None:
    (tmp_path / ".real dir").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / ".real dir")
    settings = Settings(data_dir=tmp_path / "link" / "my data")
    data_dir.prepare(settings)
    assert (tmp_path / ".real dir" / "my data" / "token").exists()


_MOUNTS = """\
22 1 254:0 / / rw,relatime - ext4 /dev/root rw
30 22 0:40 / /mnt/share rw - nfs4 server:/x rw
31 22 0:41 / /mnt/my\\040disk rw - fuse.sshfs me@host:/ rw
32 30 254:1 / /mnt/share/local rw - xfs /dev/vdb rw
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/home/me", "ext4"),
        ("/mnt/share/data", "nfs4"),
        ("/mnt/sharedata", "ext4"),
        ("/mnt/my disk/data", "fuse.sshfs"),
        ("/mnt/share/local/data", "xfs"),
    ],
)
def test_the_file_system_of_the_nearest_mount_counts(path: str, kind: str) -> None:
    assert data_dir.file_system(Path(path), _MOUNTS) == kind


def test_a_network_disk_is_refused_unless_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text("22 1 0:40 / / rw - nfs4 server:/x rw\n")
    monkeypatch.setattr(data_dir, "_MOUNTS", mounts)

    with pytest.raises(Invalid, match="nfs4"):
        data_dir.prepare(Settings(data_dir=tmp_path / "data"))
    data_dir.prepare(Settings(data_dir=tmp_path / "data", allow_network_disk=True))


def test_every_place_of_temporary_files_of_a_child_is_inside(settings: Settings) -> None:
    inherited = {"TMPDIR": "/tmp", "XDG_CACHE_HOME": "/root/.cache", "HOME": "/root", "PATH": "/bin"}

    made = data_dir.environment(settings, inherited)

    assert made["PATH"] == "/bin"
    for name in ("TMPDIR", "TMP", "TEMP", "XDG_CACHE_HOME", "HOME", "XDG_CONFIG_HOME", "SQLITE_TMPDIR"):
        assert Path(made[name]).is_relative_to(settings.data_dir)
        assert Path(made[name]).is_dir()
