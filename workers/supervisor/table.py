"""The table of children of `memoryd up`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from memory_core import limits
from memory_core.clock import Clock
from memory_core.config import Settings
from memory_core.errors import Invalid
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
                access="owns",
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
            access="owns",
            depends_on=needs_broker,
            stop_rank=2,
        ),
        ChildSpec(
            name="web",
            argv=("-m", "gunicorn", "--config", "python:web.gunicorn_conf", "web.app:create_app()"),
            probe=by_http(settings.host, settings.effective_probe_port, "/livez", clock),
            listens=((settings.host, settings.port), (settings.host, settings.effective_probe_port)),
            probe_seconds=limits.PROBE_SECONDS,
            depends_on=("writer",),
            stop_rank=1,
            stop_seconds=limits.WEB_STOP_SECONDS + 2.0,
        ),
        ChildSpec(
            name="pool",
            argv=("-m", "workers.pool"),
            probe=by_heartbeat(run, "pool"),
            access="none" if settings.off_data_host else "opens",
            may_live_apart=True,
            depends_on=(*needs_broker, "writer"),
            hang_seconds=limits.POOL_HANG_SECONDS,
            # Before the gate, through which it hands back what it cannot finish.
            stop_seconds=limits.POOL_STOP_SECONDS + 1.0,
        ),
        ChildSpec(
            name="beat",
            argv=("-m", "workers.beat"),
            probe=by_heartbeat(run, "beat"),
            access="none" if settings.off_data_host else "opens",
            may_live_apart=True,
            depends_on=(*needs_broker, "writer"),
            stop_seconds=5.0,
        ),
        *([_flower(settings, needs_broker)] if settings.flower else []),
    ]


def _flower(settings: Settings, needs_broker: tuple[str, ...]) -> ChildSpec:
    return ChildSpec(
        name="flower",
        argv=("-m", "workers.flower"),
        probe=by_heartbeat(settings.run_dir, "flower"),
        access="none",
        is_optional=True,
        may_live_apart=True,
        listens=((settings.flower_host, settings.effective_flower_port),),
        # It beats when it hears an event; where nobody works there is nothing to hear.
        depends_on=(*needs_broker, "writer", "beat"),
        hang_seconds=limits.POOL_HANG_SECONDS,
        stop_seconds=5.0,
    )


def some_of(rows: Sequence[ChildSpec], only: Sequence[str]) -> list[ChildSpec]:
    """The rows with these names, in the table's order; what they depend on beyond them is others' affair, and what is
    named is not optional.

    No names: all rows. Raises `Invalid` for a name that no row has.
    """
    if not only:
        return list(rows)
    names = [row.name for row in rows]
    for name in only:
        if name not in names:
            raise Invalid(f"there is no process {name!r} to start here; there are: {', '.join(names)}")
    return [
        replace(row, is_optional=False, depends_on=tuple(name for name in row.depends_on if name in only))
        for row in rows
        if row.name in only
    ]
