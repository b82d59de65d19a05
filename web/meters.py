"""What this process counts, and the page of all metrics: the gate's own, the backlog's, and the writer's."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from memory_core.errors import CoreError

logger = logging.getLogger(__name__)

#: Values of labels, and the figure.
Samples = Iterable[tuple[Sequence[str], float]]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


class Meters:
    """Counters of the gate. One per process; no label ever holds what somebody wrote."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry(auto_describe=False)
        self._accepted = Counter(
            "memoryd_accepted", "Commands appended to the queue.", registry=self.registry
        )
        self._duplicate = Counter(
            "memoryd_duplicate", "Deliveries that had taken effect before.", registry=self.registry
        )
        self._refused = Counter(
            "memoryd_refused", "Commands not kept, by reason.", ["reason"], registry=self.registry
        )
        self._searches = Counter("memoryd_searches", "Searches answered.", registry=self.registry)
        self._tools = Histogram(
            "memoryd_tool_seconds", "Time of tool calls.", ["tool"], buckets=_SECONDS, registry=self.registry
        )

        self._reranks = Histogram(
            "memoryd_rerank_seconds",
            "Time of judging hits once more, by outcome.",
            ["outcome"],
            buckets=(*_SECONDS, 10.0, 20.0),
            registry=self.registry,
        )

    def reranked(self, outcome: str, seconds: float) -> None:
        """`outcome` is `ok` or the code of an error; `busy` where too many were at it."""
        self._reranks.labels(outcome).observe(seconds)

    def accepted(self, count: int) -> None:
        if count:
            self._accepted.inc(count)

    def duplicate(self, count: int) -> None:
        self._duplicate.inc(count)

    def refused(self, reason: str, count: int) -> None:
        self._refused.labels(reason).inc(count)

    def tool_called(self, name: str, seconds: float) -> None:
        """`name` is a registered tool's."""
        self._tools.labels(name).observe(seconds)
        if name == "memory_query":
            self._searches.inc()

    def page(self, *more: Callable[[], Iterable[Metric]]) -> bytes:
        """The text page of this process's counters and what `more` reads at this moment."""
        registry = CollectorRegistry(auto_describe=False)
        registry.register(_Readings(more))
        return generate_latest(self.registry) + generate_latest(registry)


class _Readings:
    def __init__(self, readings: Iterable[Callable[[], Iterable[Metric]]]) -> None:
        self._readings = tuple(readings)

    def collect(self) -> Iterator[Metric]:
        for reading in self._readings:
            try:
                yield from reading()
            except CoreError as error:
                logger.warning(
                    "Metrics are missing a part.", extra={"action": "metrics_part", "code": error.code}
                )


def gauges(values: dict[str, float], help_text: str) -> Iterator[Metric]:
    for name, value in sorted(values.items()):
        yield GaugeMetricFamily(f"memoryd_{name}", help_text, value=value)


def gauge(name: str, help_text: str, labels: Sequence[str], samples: Samples) -> Metric:
    """A gauge with labels; `name` without the prefix."""
    family = GaugeMetricFamily(f"memoryd_{name}", help_text, labels=labels)
    for values, value in samples:
        family.add_metric(values, value)
    return family


def counter(name: str, help_text: str, labels: Sequence[str], samples: Samples) -> Metric:
    """The same for what only grows."""
    family = CounterMetricFamily(f"memoryd_{name}", help_text, labels=labels)
    for values, value in samples:
        family.add_metric(values, value)
    return family


def writer_figures(run_dir: Path) -> dict[str, Any]:
    """What the writer last left in its file of figures; empty where there is none yet."""
    try:
        figures: Any = json.loads((run_dir / "writer.metrics.json").read_bytes())
    except (OSError, ValueError):
        return {}
    return figures if isinstance(figures, dict) else {}


def writer_gauges(run_dir: Path) -> Callable[[], Iterable[Metric]]:
    """The writer's figures as gauges; nested objects join their names with `_`."""
    return lambda: gauges(dict(_flat("writer", writer_figures(run_dir))), "A figure of the writer.")


def _flat(prefix: str, value: Any) -> Iterator[tuple[str, float]]:
    if isinstance(value, bool | int | float):
        yield prefix, float(value)
    elif isinstance(value, dict):
        for name, item in value.items():
            word = "".join(c if c.isascii() and c.isalnum() else "_" for c in str(name))
            yield from _flat(f"{prefix}_{word}", item)
