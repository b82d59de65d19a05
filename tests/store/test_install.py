"""A data directory is what it says, lies where it lay, and never gets a new database quietly."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from memory_core.errors import Conflict, NotFound
from memory_core.store import install
from memory_core.store.database import open_writer
from memory_core.store.install import Install, Permission
from memory_core.store.writing import WriterConnection
from tests.store.databases import new_database, with_transaction


class Home:
    """One data directory, as far as the install is concerned."""

    def __init__(self, directory: Path, machine: str = "m1") -> None:
        self.database = directory / "memory.sqlite"
        self.marker = directory / ".memoryd"
        self.machine = machine

    def verify(self, **permission: bool) -> None:
        install.verify(self.database, self.marker, self.machine, Permission(**permission))

    def start(self, **permission: bool) -> Install:
        """What a writer does with it."""
        self.verify(**permission)
        connection = WriterConnection(self.database)
        allowed = Permission(**permission)
        identity = with_transaction(
            connection,
            lambda tx: install.establish(
                tx, self.database, self.machine, allowed, known=install.marked_install(self.marker)
            ),
        )
        connection.close()
        install.mark(self.marker, identity)
        return identity


@pytest.fixture
def home(tmp_path: Path) -> Home:
    directory = tmp_path / "home"
    directory.mkdir()
    new_database(directory)
    return Home(directory)


def copied(home: Home, tmp_path: Path) -> Home:
    copy = tmp_path / "copy"
    shutil.copytree(home.database.parent, copy)
    return Home(copy)


def test_each_start_has_a_higher_epoch_and_the_same_id(home):
    first, second = home.start(), home.start()

    assert (first.epoch, second.epoch) == (1, 2)
    assert first.id == second.id
    assert json.loads(home.marker.read_text())["install"] == first.text


def test_the_marker_keeps_what_else_it_says(home):
    home.marker.write_text('{"format": 1}')

    home.start()

    assert json.loads(home.marker.read_text())["format"] == 1


def test_a_first_start_makes_an_empty_database_for_its_owner_alone(tmp_path):
    home = Home(tmp_path)

    home.verify()

    assert home.database.stat().st_mode & 0o777 == 0o600


def test_a_database_that_vanished_is_not_made_anew(home):
    home.start()
    for file in home.database.parent.glob("memory.sqlite*"):
        file.unlink()

    with pytest.raises(NotFound, match="is gone"):
        home.verify()

    assert not home.database.exists()


def test_a_database_that_lost_its_content_is_not_filled_anew(home):
    home.start()
    for file in home.database.parent.glob("memory.sqlite*"):
        file.unlink()
    home.database.touch()

    with pytest.raises(NotFound, match="lost its content"):
        home.verify()


def test_a_lost_database_is_begun_anew_when_told_with_the_same_id_and_a_higher_epoch(home):
    before = [home.start() for _ in range(3)][-1]
    for file in home.database.parent.glob("memory.sqlite*"):
        file.unlink()
    with pytest.raises(NotFound, match=r"--new-database.*reindex"):
        home.verify()

    home.verify(new_database=True)
    home.database.unlink()
    new_database(home.database.parent)
    anew = home.start(new_database=True)

    assert anew.id == before.id
    assert anew.epoch > before.epoch
    assert home.start(new_database=True).epoch == anew.epoch + 1


def test_a_first_start_with_the_permission_is_a_first_start(home):
    assert home.start(new_database=True).epoch == 1


def test_a_copy_is_refused_before_it_writes_anything(home, tmp_path):
    home.start()
    copy = copied(home, tmp_path)
    before = copy.database.read_bytes()

    with pytest.raises(Conflict, match=r"--take-over.*--new-install"):
        copy.verify()

    assert copy.database.read_bytes() == before


def test_on_a_machine_with_a_name_the_volume_may_come_back_with_another_device_number(home, monkeypatch):
    home.machine = install.machine_id("box")
    first = home.start()
    on_device(monkeypatch, 4711)

    assert home.start().id == first.id

    home.machine = "m2"  # a system's own id again
    with pytest.raises(Conflict, match="last lay on machine named:box"):
        home.verify()


def test_without_a_name_another_device_number_is_another_disk(home, monkeypatch):
    home.start()
    on_device(monkeypatch, 4711)

    with pytest.raises(Conflict, match="device 4711"):
        home.verify()


def test_a_copy_is_refused_on_a_machine_with_a_name_too(home, tmp_path):
    home.machine = install.machine_id("box")
    home.start()
    copy = copied(home, tmp_path)
    copy.machine = home.machine

    with pytest.raises(Conflict, match="copied or moved"):
        copy.verify()


def test_a_machine_that_gets_a_name_is_remembered_by_it(home):
    home.machine = ""  # a container without an id of its own
    home.start()
    home.machine = install.machine_id("box")
    home.start()

    home.machine = install.machine_id("other")
    with pytest.raises(Conflict, match="named:box"):
        home.verify()


def test_the_name_of_a_machine_goes_before_the_systems_id():
    assert install.machine_id("box") == "named:box"
    assert install.machine_id() != "named:"


def on_device(monkeypatch, number: int) -> None:
    """The file lies where it lay, and its disk has another number since the last start."""
    real = Path.stat

    def stat(path: Path, **options: bool) -> os.stat_result:
        found = list(real(path, **options))
        found[2] = number
        return os.stat_result(found)

    monkeypatch.setattr(install.Path, "stat", stat)


def test_another_machine_is_refused(home):
    home.start()
    home.machine = "m2"

    with pytest.raises(Conflict, match="copied or moved"):
        home.verify()


def test_a_machine_without_an_id_is_not_compared(home):
    home.start()
    home.machine = ""

    home.verify()


def test_taking_over_keeps_the_identity(home, tmp_path):
    original = home.start()
    copy = copied(home, tmp_path)

    taken = copy.start(take_over=True)

    assert taken.id == original.id
    assert copy.start().id == original.id


def test_a_new_install_gets_an_identity_of_its_own_once(home, tmp_path):
    original = home.start()
    copy = copied(home, tmp_path)

    new = copy.start(new_install=True)

    assert new.id != original.id
    assert copy.start(new_install=True).id == new.id
    assert home.start().id == original.id


def test_a_database_of_another_install_is_not_taken_for_ours(home, tmp_path):
    home.start()
    other = Home(tmp_path / "other")
    other.database.parent.mkdir()
    new_database(other.database.parent)
    other.start()
    other.marker.write_text(home.marker.read_text())

    with pytest.raises(Conflict, match="do not belong together"):
        other.verify()


def test_a_start_that_was_killed_before_its_marker_goes_on(home):
    identity = home.start()
    home.marker.unlink()

    assert home.start().id == identity.id


def test_a_database_behind_a_symbolic_link_is_not_opened(home, tmp_path):
    link = tmp_path / "memory.sqlite"
    link.symlink_to(home.database)

    with pytest.raises(Exception, match="symbolic link"):
        open_writer(link)
