"""The table of children of `memoryd up`."""

from __future__ import annotations

from memory_core import limits
from memory_core.clock import Clock
from memory_core.config import Settings
from workers import broker
from workers.supervisor.spec import ChildSpec, by_heartbeat, by_http, by_ping


def table(settings: Settings, endpoint: broker.Endpoint | None, clock: Clock) -> list[ChildSpec]:
    """Every child, in the order of their start; without an endpoint the broker is somebody else's."""
    run = settings.run_dir
    broker_rows: list[ChildSpec] = []
    if endpoint is not None:
        broker_rows.append(
            ChildSpec(
                name="broker",
                argv=broker.argv(settings),
                probe=by_ping(endpoint, clock),
                before_start=lambda: broker.lay_out(settings, endpoint),
                probe_seconds=limits.PROBE_SECONDS,
                stop_rank=3,
                stop_seconds=5.0,
                captured=True,
            )
        )
    needs_broker = tuple(row.name for row in broker_rows)
    return [
        *broker_rows,
        ChildSpec(
            name="writer",
            argv=("-m", "workers.writer"),
            probe=by_heartbeat(run, "writer"),
            depends_on=needs_broker,
            stop_rank=2,
        ),
        ChildSpec(
            name="web",
            argv=("-m", "gunicorn", "--config", "python:web.gunicorn_conf", "web.app:create_app()"),
            probe=by_http(settings.host, settings.effective_probe_port, "/livez", clock),
            probe_seconds=limits.PROBE_SECONDS,
            depends_on=("writer",),
            stop_seconds=limits.WEB_STOP_SECONDS + 2.0,
        ),
        ChildSpec(
            name="pool",
            argv=("-m", "workers.pool"),
            probe=by_heartbeat(run, "pool"),
            # Doorbells reach it through broker and beat; where one of them is away, its silence says nothing.
            depends_on=(*needs_broker, "writer"),
            hang_seconds=limits.POOL_HANG_SECONDS,
            stop_rank=1,
            stop_seconds=5.0,
        ),
        ChildSpec(
            name="beat",
            argv=("-m", "workers.beat"),
            probe=by_heartbeat(run, "beat"),
            depends_on=(*needs_broker, "writer"),
            stop_rank=1,
            stop_seconds=5.0,
        ),
    ]
