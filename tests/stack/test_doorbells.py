"""Beat over a real broker: every queue is rung, and a broker that is away or a full disk holds nothing up."""

from __future__ import annotations

import pytest
import redis

from memory_core import limits
from memory_core.config import Settings
from tests.stack.conftest import BrokerStart, TreeStart, wait_until
from workers import broker, heartbeat
from workers.beat import ring_all
from workers.celery_app import QUEUES, make_app, queue_name

pytestmark = pytest.mark.stack

_INSTALL = "ab" * 16


def test_every_queue_is_rung_and_carries_the_install(settings: Settings, start_broker: BrokerStart) -> None:
    start_broker(settings)
    app = make_app(settings, _INSTALL)

    assert ring_all(app, _INSTALL)

    app.close()
    with redis.Redis.from_url(broker.broker_url(settings)) as client:
        assert [client.llen(queue_name(_INSTALL, queue)) for queue in QUEUES] == [1] * len(QUEUES)
        strangers = [key for key in client.keys("*") if _INSTALL.encode() not in key]
        assert strangers == []


def test_a_doorbell_holds_json_and_ends_by_itself(settings: Settings, start_broker: BrokerStart) -> None:
    start_broker(settings)
    app = make_app(settings, _INSTALL)
    ring_all(app, _INSTALL)
    app.close()

    with redis.Redis.from_url(broker.broker_url(settings), decode_responses=True) as client:
        (message,) = client.lrange(queue_name(_INSTALL, "lint"), 0, -1)

    assert '"content-type": "application/json"' in message
    assert '"expires": null' not in message


def test_a_broker_that_is_away_is_reported_and_not_waited_for(settings: Settings) -> None:
    broker.set_up(settings)
    app = make_app(settings, _INSTALL)

    assert ring_all(app, _INSTALL) is False


def test_nothing_is_rung_on_a_full_disk(start_tree: TreeStart) -> None:
    tree = start_tree(environ={"REAL": "beat"}, free_disk_min_bytes=1 << 60)
    tree.wait_ready()
    first = heartbeat.read(heartbeat.heartbeat_file(tree.settings.run_dir, "beat"))

    wait_until(
        lambda: heartbeat.read(heartbeat.heartbeat_file(tree.settings.run_dir, "beat")) != first,
        limits.RING_SECONDS + 3,
    )

    with redis.Redis.from_url(broker.broker_url(tree.settings)) as client:
        assert client.keys("*") == []


def test_a_drain_of_the_tree_ends_pool_and_beat_cleanly(start_tree: TreeStart) -> None:
    tree = start_tree(environ={"REAL": "pool,beat"})
    tree.wait_ready()

    tree.process.terminate()

    assert tree.process.wait(60) == 0
    ended = {record["child"]: record["code"] for record in tree.logged("child_ended")}
    assert ended == {"web": 0, "beat": 0, "pool": 0, "writer": 0, "broker": 0}
