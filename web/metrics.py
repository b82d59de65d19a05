"""`GET /metrics`: Prometheus text, for tokens that may read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from flask import Blueprint, Response
from prometheus_client.core import Metric

from memory_core.config import Settings
from web import job_metrics, model_state
from web.auth import needs
from web.line import Line
from web.meters import CONTENT_TYPE, gauges, writer_gauges
from web.parts import Parts


def blueprint(parts: Parts) -> Blueprint:
    routes = Blueprint("metrics", __name__)
    of_writer, models = writer_gauges(parts.settings.run_dir), model_state.Configured(parts.settings)

    @routes.get("/metrics")
    @needs("metrics")
    def _metrics() -> Response:
        page = parts.meters.page(
            lambda: _backlog(parts.line),
            lambda: _files(parts.settings),
            of_writer,
            lambda: job_metrics.readings(parts.database, parts.presence, parts.clock),
            lambda: model_state.metrics(parts.database, models, parts.clock),
        )
        return Response(page, content_type=CONTENT_TYPE, headers={"Cache-Control": "no-store"})

    return routes


def _backlog(line: Line) -> Iterable[Metric]:
    waiting = line.backlog()
    figures = {
        "backlog_entries": float(waiting.entries),
        "backlog_bytes": float(waiting.bytes),
        "backlog_oldest_age_seconds": waiting.oldest_age_seconds,
    }
    return gauges(figures, "What waits in the writer queue.")


def _files(settings: Settings) -> Iterator[Metric]:
    for name, path in (
        ("database_bytes", settings.database),
        ("wal_bytes", settings.database.with_name(settings.database.name + "-wal")),
    ):
        try:
            size = path.stat().st_size
        except OSError:
            continue
        yield from gauges({name: float(size)}, "Size of a file of the database.")
