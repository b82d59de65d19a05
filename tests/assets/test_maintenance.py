"""Maintenance: what goes when, what never goes, and that a run which was interrupted is only begun again."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memory_core import bootstrap, job_kind, limits
from memory_core.asset_files import AssetFiles
from memory_core.commands.assets import CatalogueAsset
from memory_core.commands.durable_turns import EventAsset, TurnEvent
from memory_core.commands.maintenance import PHASES
from memory_core.config import Settings
from memory_core.domain.retention import DAY_US
from memory_core.errors import Invalid, Unavailable
from memory_core.job_kind import Cancelled
from memory_core.jobs import maintenance
from memory_core.retention_settings import read_retention
from tests.durable.directly import Holder, code, say, started, stored
from tests.factories import Store, database
from tests.jobs.test_integrity_audit import Told
from tests.jobs.working import Worker, add_job, job_of, look

DAY = DAY_US / 1_000_000


class House:
    def __init__(self, directory: Path) -> None:
        self.settings = Settings(data_dir=directory)
        self.settings.database.parent.mkdir(parents=True)
        self.settings.assets.mkdir()
        self.files = AssetFiles(self.settings.assets)
        self.store: Store = database(self.settings.database.parent)
        self.runs = 0

    def maintain(self, *, slices: int = 10_000) -> dict[str, int]:
        """Work one job off as a worker would, or its first slices; what it did."""
        self.runs += 1
        job_id = add_job(self.store, str(self.runs), name="maintenance")
        worker = Worker(self.store, queues=("forget",), kind="maintenance")
        while slices and worker.take() is not None:
            slices -= 1
            turn = maintenance.prepare(look(self.store), job_of(self.store, job_id))
            worker.finish(maintenance.compute(turn, Told(self.settings)))
        result = self.store.all("SELECT result FROM jobs WHERE id = ?", job_id)[0]["result"]
        return json.loads(result) if result else {}

    def keep(self, data: bytes) -> EventAsset:
        received = self.files.receive([data])
        self.files.publish(received)
        self.store.apply(CatalogueAsset(sha256=received.sha256, bytes=received.bytes))
        return EventAsset(sha256=received.sha256, bytes=received.bytes, kind="image")

    def age(self, asset: EventAsset) -> None:
        os.utime(self.settings.assets / asset.sha256.hex(), ns=(5, 5))

    def count(self, table: str) -> int:
        return self.store.all(f"SELECT count(*) AS n FROM {table}")[0]["n"]

    def session(self, *events: TurnEvent) -> Holder:
        """One that was written and given back."""
        holder = Holder(self.store, started(self.store))
        holder.claim()
        holder.append(*(events or (say("one"),)))
        return holder


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    bootstrap.load_jobs()
    house = House(tmp_path / "data")
    yield house
    house.store.close()


def distilled(house: House, holder: Holder) -> None:
    """As if the session's distillation had been done."""
    if code(holder.close()):  # its lease ran out meanwhile
        holder.claim()
        assert not code(holder.close())
    house.store.connection.execute(
        "UPDATE jobs SET state = 'completed', claims = 1, worker = 'w', claimed_at = 1, result = '{}', finished_at = 1"
        " WHERE kind = 'distillation'"
    )


def test_an_old_distilled_session_goes_with_its_events_and_a_young_one_stays(house: House):
    old = house.session()
    distilled(house, old)
    house.store.clock.advance(89 * DAY)
    assert "sessions_deleted" not in house.maintain()
    young = house.session()
    house.store.clock.advance(1.1 * DAY)

    result = house.maintain()

    assert result["sessions_deleted"] == 1
    assert house.store.all("SELECT session_id FROM durable_sessions") == [{"session_id": young.session}]
    assert stored(house.store, old.session) == []


def live(house: House, holder: Holder) -> None:
    distilled(house, holder)
    house.store.clock.advance(91 * DAY)
    holder.claim()


def undistilled(house: House, holder: Holder) -> None:
    holder.release()
    house.store.clock.advance(91 * DAY)


def queued_to_be_distilled(house: House, holder: Holder) -> None:
    """Its end waits for a worker that never came."""
    assert not code(holder.close())
    house.store.clock.advance(91 * DAY)


def failed_to_be_distilled(house: House, holder: Holder) -> None:
    assert not code(holder.close())
    house.store.connection.execute(
        "UPDATE jobs SET state = 'failed', failures = 3, last_error = 'no', finished_at = 1 WHERE kind = 'distillation'"
    )
    house.store.clock.advance(91 * DAY)


def with_an_unfinished_turn(house: House, holder: Holder) -> None:
    distilled(house, holder)
    house.store.connection.execute(
        "INSERT INTO active_turns (session_id, turn_id, input_json, checkpoint_count, event_count, event_bytes,"
        " created_at, updated_at)"
        " VALUES (?, x'00112233445566778899aabbccddeeff', '{}', 0, 0, 0, 1, 1)",
        (holder.session,),
    )
    house.store.clock.advance(91 * DAY)


@pytest.mark.parametrize(
    "made", [live, undistilled, queued_to_be_distilled, failed_to_be_distilled, with_an_unfinished_turn]
)
def test_retention_never_removes_a_session_that_is_not_at_its_end(house: House, made):
    holder = house.session()
    made(house, holder)

    assert "sessions_deleted" not in house.maintain()
    assert len(stored(house.store, holder.session)) == 1


def test_a_lease_that_ran_out_cannot_be_renewed_after_maintenance(house: House):
    holder = house.session()
    house.store.clock.advance(limits.SESSION_LEASE_SECONDS + 1)

    assert house.maintain()["leases_cleared"] == 1
    assert holder.renew().code == "stale_lease"


def test_gc_preserves_references_then_collects_after_session_deletion(house: House):
    asset = house.keep(b"picture")
    holder = house.session(
        TurnEvent(kind="user_message", payload={"text": "look"}, assets=(asset,)),
    )
    house.age(asset)
    house.store.clock.advance(30 * DAY)
    assert "assets_forgotten" not in house.maintain()
    distilled(house, holder)
    house.store.clock.advance(91 * DAY)

    # Its time counts from the moment that nothing refers to it any more, not from its making.
    first = house.maintain()
    assert (first["sessions_deleted"], first["assets_unreferenced"]) == (1, 1)
    assert house.count("assets") == 1
    house.store.clock.advance(8 * DAY)
    house.age(asset)
    second = house.maintain()

    assert (second["assets_forgotten"], second["files_removed"], second["bytes_removed"]) == (1, 1, 7)
    assert [p.name for p in house.settings.assets.iterdir()] == [".lock"]


def test_custom_databases_in_one_parent_have_isolated_asset_namespaces(tmp_path: Path):
    """The same bytes in two data directories side by side: what one forgets and collects the other still has."""
    bootstrap.load_jobs()
    one, other = House(tmp_path / "one"), House(tmp_path / "two")
    asset = one.keep(b"picture")
    assert other.keep(b"picture") == asset
    holder = other.session(TurnEvent(kind="user_message", payload={"text": "look"}, assets=(asset,)))
    for house in (one, other):
        house.maintain()
        house.store.clock.advance(8 * DAY)
        house.age(asset)

    assert one.maintain()["files_removed"] == 1

    assert "files_removed" not in other.maintain()
    assert b"".join(other.files.read(asset.sha256, asset.bytes)) == b"picture"
    assert len(stored(other.store, holder.session)) == 1
    for house in (one, other):
        house.store.close()


def test_an_asset_that_is_referred_to_again_is_as_good_as_new(house: House):
    house.keep(b"picture")
    house.maintain()
    house.store.clock.advance(8 * DAY)

    house.keep(b"picture")

    assert "assets_forgotten" not in house.maintain()


def test_a_damaged_orphan_is_counted_and_left_and_does_not_stop_the_rest(house: House):
    damaged, orphan = house.files.receive([b"one"]), house.files.receive([b"two"])
    for received in (damaged, orphan):
        house.files.publish(received)
    (house.settings.assets / damaged.sha256.hex()).write_bytes(b"eno")
    for received in (damaged, orphan):
        os.utime(house.settings.assets / received.sha256.hex(), ns=(5, 5))

    result = house.maintain()

    assert (result["files_damaged"], result["files_removed"]) == (1, 1)
    assert (house.settings.assets / hashlib.sha256(b"one").hexdigest()).exists()


@pytest.mark.parametrize("slices", range(1, len(PHASES) + 3))
def test_a_run_that_is_interrupted_anywhere_is_made_up_for_by_the_next(house: House, slices: int):
    asset = house.keep(b"picture")
    house.maintain()
    distilled(house, house.session())
    house.store.clock.advance(91 * DAY)
    house.age(asset)

    house.maintain(slices=slices)
    house.store.connection.execute("DELETE FROM jobs WHERE kind = 'maintenance'")
    house.maintain()

    assert [house.count(t) for t in ("durable_sessions", "session_events", "assets")] == [0, 0, 0]
    assert [p.name for p in house.settings.assets.iterdir()] == [".lock"]


def test_a_phase_with_many_rows_takes_several_slices(house: House, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(limits, "MAINTENANCE_ROWS", 2)
    for number in range(5):
        house.keep(bytes([number]))

    assert house.maintain()["assets_unreferenced"] == 5


def test_every_phase_is_in_the_docs():
    text = Path("docs/maintenance.md").read_text()

    assert [name for name in PHASES if f"`{name}`" not in text] == []


def test_it_runs_beside_the_data_directory_only_and_can_be_cancelled(house: House):
    with pytest.raises(Unavailable):
        maintenance.compute(maintenance.Turn(), Told(None))
    with pytest.raises(Cancelled):
        maintenance.compute(maintenance.Turn(), Told(house.settings, stops_at=0))
    assert job_kind.kinds.get("maintenance").on_data_host


@pytest.mark.parametrize(
    "told", [{"SESSION_DAYS": "0"}, {"ASSET_DAYS": "soon"}, {"VERSIONS_PER_KEY": "1001"}, {"YEARS": "1"}]
)
def test_a_retention_that_cannot_be_is_refused_by_its_name(tmp_path: Path, told: dict[str, Any]):
    ((key, value),) = told.items()

    with pytest.raises(Invalid, match=key.lower()):
        read_retention(Settings(data_dir=tmp_path), {f"MEMORYD_RETENTION__{key}": value})


def test_retention_is_read_from_the_environment(tmp_path: Path):
    read = read_retention(Settings(data_dir=tmp_path), {"MEMORYD_RETENTION__SESSION_DAYS": "7"})

    assert (read.session_days, read.asset_days) == (7, 7)
