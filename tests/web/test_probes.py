"""Probes: what counts as standing still, and what readiness says."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from memory_core import limits
from memory_core.clock import FakeClock, SystemClock
from tests.web.house import House
from web.names import Names
from web.probes import Probes, Progress
from web.readiness import writer_trouble
from workers.heartbeat import Heartbeat, heartbeat_file

HOST = {"Host": "127.0.0.1:49375"}


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def probes_factory(clock: FakeClock) -> Callable[..., Probes]:
    def make(progress: Progress | None = None, **checks: Callable[[], str | None]) -> Probes:
        return Probes(
            address=("127.0.0.1", 0),
            names=Names("127.0.0.1", []),
            progress=progress or Progress(clock),
            checks=checks,
            clock=clock,
        )

    return make


def test_a_busy_pool_lives_and_one_that_finishes_nothing_does_not(
    probes_factory: Callable[..., Probes], clock: FakeClock
) -> None:
    progress = Progress(clock, threads=2)
    probes = probes_factory(progress)
    clock.advance(3600)
    progress.begin()
    progress.begin()
    assert probes.answer("/livez", HOST)[0] == 200
    clock.advance(limits.WEB_STILL_SECONDS + 1)
    assert probes.answer("/livez", HOST)[0] == 503
    progress.end()
    assert probes.answer("/livez", HOST)[0] == 200


def test_one_long_request_beside_free_threads_is_no_standstill(clock: FakeClock) -> None:
    progress = Progress(clock, threads=2)
    progress.begin()
    clock.advance(limits.WEB_STILL_SECONDS * 10)
    assert not progress.stands_still()


def test_readiness_names_what_is_away_and_survives_a_broken_check(
    probes_factory: Callable[..., Probes],
) -> None:
    def broken() -> str | None:
        raise RuntimeError("quoting somebody")

    status, body = probes_factory(fine=lambda: None, away=lambda: "gone", broken=broken).answer(
        "/readyz", HOST
    )
    assert status == 503
    assert body["checks"] == {"fine": "ok", "away": "gone", "broken": "could not be checked (RuntimeError)"}
    assert probes_factory(fine=lambda: None).answer("/readyz", HOST) == (
        200,
        {"status": "ready", "checks": {"fine": "ok"}},
    )


def test_the_gate_is_ready_once_its_writer_beats(house: House) -> None:
    assert house.parts.probes.answer("/readyz", HOST)[0] == 503
    beat = Heartbeat(heartbeat_file(house.settings.run_dir, "writer"), SystemClock())
    beat.beat()
    assert house.parts.probes.answer("/readyz", HOST) == (
        200,
        {"status": "ready", "checks": dict.fromkeys(("broker", "writer", "database", "disk", "wiki"), "ok")},
    )
    beat.close()
    house.settings.database.rename(house.settings.database.with_name("away"))
    status, body = house.parts.probes.answer("/readyz", HOST)
    assert status == 503
    assert body["checks"]["database"] != "ok"


def test_the_probes_port_is_bound_as_soon_as_it_is_free(probes_factory: Callable[..., Probes]) -> None:
    from tests.queue.broker import until

    probes = probes_factory()
    probes.start()
    until(lambda: probes.port)
    probes.stop()


def test_readiness_says_that_the_disk_takes_no_writes(house: House) -> None:
    settings = house.settings
    Heartbeat(heartbeat_file(settings.run_dir, "writer"), SystemClock()).beat()
    figures = settings.run_dir / "writer.metrics.json"

    figures.write_text('{"is_stopped": false}')
    assert writer_trouble(settings, SystemClock()) is None
    figures.write_text('{"is_stopped": true}')
    assert "takes no writes" in str(writer_trouble(settings, SystemClock()))
