"""The embedded broker: durable settings, closed to others, reachable below any path."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

import pytest
import redis

from memory_core.clock import SystemClock
from memory_core.config import Settings
from memory_core.errors import Unavailable
from tests.stack.conftest import BrokerStart, Synced
from workers import broker, data_dir
from workers.beat import ring_all
from workers.broker_check import check_broker
from workers.celery_app import make_app, queue_name
from workers.supervisor.table import table

pytestmark = pytest.mark.stack


def _settings(path: Path) -> Settings:
    made = Settings(data_dir=path)
    data_dir.prepare(made)
    return made


def test_what_was_appended_survives_a_kill_of_the_broker(
    settings: Settings, start_broker: BrokerStart
) -> None:
    process = start_broker(settings)
    with redis.Redis.from_url(broker.broker_url(settings)) as client:
        for number in range(50):
            client.xadd("m:x:commands", {"n": number})
    process.kill()
    process.wait()

    start_broker(settings)

    with redis.Redis.from_url(broker.broker_url(settings)) as client:
        assert client.xlen("m:x:commands") == 50


def test_a_torn_tail_of_the_broker_file_does_not_stop_its_start(
    settings: Settings, start_broker: BrokerStart
) -> None:
    process = start_broker(settings)
    with redis.Redis.from_url(broker.broker_url(settings)) as client:
        client.xadd("m:x:commands", {"n": 1})
        client.xadd("m:x:commands", {"n": 2})
    process.kill()
    process.wait()
    log = next((settings.broker_dir / "appendonlydir").glob("*.incr.aof"))
    os.truncate(log, log.stat().st_size - 3)

    start_broker(settings)

    with redis.Redis.from_url(broker.broker_url(settings)) as client:
        assert client.xlen("m:x:commands") == 1


@pytest.mark.parametrize("left", ["a whole entry", "a torn entry"])
def test_zeros_at_the_end_of_the_broker_file_do_not_stop_its_start(
    left: str, settings: Settings, start_broker: BrokerStart, caplog: pytest.LogCaptureFixture
) -> None:
    process = start_broker(settings)
    with redis.Redis.from_url(broker.broker_url(settings)) as client:
        client.xadd("m:x:commands", {"n": 1})
        client.xadd("m:x:commands", {"n": b"2" + bytes(50)})
    process.kill()
    process.wait()
    log = next((settings.broker_dir / "appendonlydir").glob("*.incr.aof"))
    if left == "a torn entry":
        os.truncate(log, log.stat().st_size - 10)
    os.truncate(log, log.stat().st_size + 3 * 1024 * 1024)

    start_broker(settings)

    with redis.Redis.from_url(broker.broker_url(settings)) as client:
        assert client.xlen("m:x:commands") == (2 if left == "a whole entry" else 1)
    assert [record for record in caplog.records if getattr(record, "action", "") == "broker_file_cut"]


def test_a_file_without_zeros_at_its_end_is_left_alone(settings: Settings, start_broker: BrokerStart) -> None:
    process = start_broker(settings)
    with redis.Redis.from_url(broker.broker_url(settings)) as client:
        client.xadd("m:x:commands", {"n": 1})
    process.kill()
    process.wait()
    log = next((settings.broker_dir / "appendonlydir").glob("*.incr.aof"))
    before = log.stat().st_mtime_ns, log.read_bytes()

    broker.set_up(settings)

    assert (log.stat().st_mtime_ns, log.read_bytes()) == before


def test_the_directory_of_the_broker_files_outlasts_a_power_cut(settings: Settings, synced: Synced) -> None:
    shutil.rmtree(settings.broker_dir)
    broker.set_up(settings)

    assert "appendonlydir" in synced[settings.broker_dir]
    assert settings.broker_dir.name in synced[settings.broker_dir.parent]


def test_a_broker_whose_directory_was_wiped_is_laid_out_anew_before_its_next_start(
    settings: Settings,
) -> None:
    endpoint = broker.set_up(settings)
    row = next(row for row in table(settings, endpoint, SystemClock()) if row.name == "broker")
    before = broker.config_file(settings).read_text()
    shutil.rmtree(settings.broker_dir)

    assert row.before_start is not None
    row.before_start()

    assert broker.config_file(settings).read_text() == before
    assert broker.read_endpoint(settings) == endpoint
    assert stat.S_IMODE(settings.broker_dir.stat().st_mode) == 0o700


@pytest.mark.parametrize("below", ["plain", ".hidden dir/with spaces", "ünïcode \"quoted\" 'x' #1 %41"])
def test_a_socket_works_below_any_short_path(
    below: str, tmp_path_factory: pytest.TempPathFactory, start_broker: BrokerStart
) -> None:
    root = Path(os.fspath(tmp_path_factory.getbasetemp())).parent.parent / f"m{os.getpid()}"
    settings = _settings(root / below)
    try:
        start_broker(settings)

        url = broker.broker_url(settings)
        with redis.Redis.from_url(url) as client:
            assert client.ping()
            assert ring_all(make_app(settings, "ab" * 16), "ab" * 16)
            assert client.llen(queue_name("ab" * 16, "lint")) == 1
        assert url.startswith("unix://")
        assert stat.S_IMODE((settings.broker_dir / "valkey.sock").stat().st_mode) == 0o600
    finally:
        shutil.rmtree(root)


def test_a_long_path_gets_a_loopback_port_with_a_password(tmp_path: Path, start_broker: BrokerStart) -> None:
    settings = _settings(tmp_path / ("long" * 30))
    process = start_broker(settings)

    url = broker.broker_url(settings)
    port = broker.read_endpoint(settings)
    assert port is not None
    with redis.Redis.from_url(url) as client:
        assert client.ping()
    with redis.Redis(port=port.port) as stranger, pytest.raises(redis.AuthenticationError):
        stranger.ping()
    assert port.password not in broker.config_file(settings).read_text()
    assert stat.S_IMODE((settings.broker_dir / "endpoint.json").stat().st_mode) == 0o600
    process.kill()
    process.wait()
    assert broker.set_up(settings) == port


@pytest.mark.parametrize(
    "command", ["FLUSHALL", "CONFIG SET appendfsync no", "SHUTDOWN NOSAVE", "DEBUG SLEEP 1"]
)
def test_a_command_that_loses_data_is_refused(
    command: str, settings: Settings, start_broker: BrokerStart
) -> None:
    start_broker(settings)
    url = broker.broker_url(settings)
    with (
        redis.Redis.from_url(url) as client,
        pytest.raises(redis.RedisError, match=r"permission|not allowed"),
    ):
        client.execute_command(*command.split())


def test_the_embedded_broker_keeps_every_promise(settings: Settings, start_broker: BrokerStart) -> None:
    start_broker(settings)

    report = check_broker(broker.broker_url(settings))

    assert report.server == "Valkey"
    assert report.promises_void == []


def test_the_address_of_a_directory_without_a_broker_is_an_error(settings: Settings) -> None:
    with pytest.raises(Unavailable, match="memoryd up"):
        broker.broker_url(settings)
