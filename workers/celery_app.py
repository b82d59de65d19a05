"""The Celery application. Its messages are doorbells: they say "look", and the truth is elsewhere.

Every name on the broker carries the install id, so that two installs may share one broker.
"""

from __future__ import annotations

from typing import Final

from celery import Celery

from memory_core import limits
from memory_core.config import Settings
from memory_core.domain import job
from workers.broker import broker_url, kombu_url

WRITER: Final = "writer"
POOL_QUEUES: Final = job.QUEUES
QUEUES: Final = (WRITER, *POOL_QUEUES)

DRAIN_TASK: Final = "writer.drain"
LOOK_TASK: Final = "pool.look"

_VISIBILITY_SECONDS = 60


def queue_name(install: str, queue: str) -> str:
    """The name of a queue on the broker: `m.<install>.<queue>`."""
    return f"m.{install}.{queue}"


def make_app(settings: Settings, install: str, *, consumer: str = "sender") -> Celery:
    """An application for one install (its id in hexadecimal).

    `consumer` names the process that takes messages ("writer", "pool"): each has its own list of
    messages under way, so that one never redelivers another's. Connects to nothing yet.
    """
    app = Celery("memoryd", set_as_current=False)
    names = f"m.{install}"
    app.conf.update(
        broker_url=kombu_url(broker_url(settings)),
        broker_transport_options=_transport_options(install, consumer),
        broker_connection_retry=True,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        broker_pool_limit=4,
        accept_content=["json"],
        task_serializer="json",
        event_serializer="json",
        result_accept_content=["json"],
        result_backend=None,
        task_ignore_result=True,
        task_store_errors_even_if_ignored=False,
        task_acks_late=True,
        # A failed task must not be acknowledged as done.
        task_acks_on_failure_or_timeout=False,
        task_reject_on_worker_lost=True,
        task_publish_retry=False,
        task_create_missing_queues=True,
        task_default_queue=queue_name(install, WRITER),
        task_default_exchange=names,
        task_default_exchange_type="direct",
        worker_prefetch_multiplier=1,
        worker_enable_remote_control=False,
        worker_send_task_events=True,
        worker_hijack_root_logger=False,
        worker_redirect_stdouts=False,
        control_exchange=f"{names}.control",
        control_queue_prefix=f"{names}.control",
        event_exchange=f"{names}.events",
        event_queue_prefix=f"{names}.events",
        event_queue_expires=60.0,
        enable_utc=True,
        timezone="UTC",
    )
    return app


def ring(app: Celery, install: str, queue: str) -> None:
    """Say "look" at a queue, once and without a retry; the message is void after some seconds.

    Raises `kombu.exceptions.OperationalError` when the broker does not take it.
    """
    task = DRAIN_TASK if queue == WRITER else LOOK_TASK
    app.send_task(
        task,
        args=[] if queue == WRITER else [queue],
        queue=queue_name(install, queue),
        expires=limits.DOORBELL_EXPIRES_SECONDS,
        ignore_result=True,
        retry=False,
    )


def worker_of(
    app: Celery,
    install: str,
    queues: tuple[str, ...],
    *,
    name: str,
    threads: int,
    pool: str | type = "threads",
):
    """A Celery worker for those queues with a pool of threads; the caller starts it. No gossip, no remote control."""
    return app.Worker(
        hostname=f"{name}@{install[:8]}",
        queues=[queue_name(install, queue) for queue in queues],
        pool=pool,
        concurrency=threads,
        without_gossip=True,
        without_mingle=True,
        quiet=True,
        task_events=True,
    )


def _transport_options(install: str, consumer: str) -> dict[str, object]:
    unacked = f"m:{install}:unacked:{consumer}"
    return {
        "visibility_timeout": _VISIBILITY_SECONDS,
        "unacked_key": unacked,
        "unacked_index_key": f"{unacked}:index",
        "unacked_mutex_key": f"{unacked}:mutex",
        # The default of 300 s lets a dead holder block every redelivery for as long.
        "unacked_mutex_expire": 15,
        # Each sweep takes a lock on the broker, which is a synced write: not every second, day and night.
        "unacked_restore_interval": 5,
        "unacked_restore_throttle": 1,
        "socket_connect_timeout": limits.BROKER_CONNECT_SECONDS if consumer == "sender" else 1.0,
        # A consumer blocks for a second at a time in BRPOP.
        "socket_timeout": limits.BROKER_APPEND_SECONDS if consumer == "sender" else 5.0,
        "health_check_interval": 5,
        "max_retries": 0,
    }
