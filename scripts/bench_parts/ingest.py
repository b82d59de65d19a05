"""Single events and batches through the gate, with the writer draining beside it as in real life."""

from __future__ import annotations

import os
import statistics
from collections import Counter

from scripts.bench_parts import load
from scripts.bench_parts.figures import Result, at_least, quantile
from scripts.bench_parts.load import Plan, Report
from scripts.bench_parts.parts import Bench, parts
from scripts.bench_parts.sizes import Sizes
from scripts.bench_parts.stack import Stack
from scripts.bench_parts.texts import Events
from scripts.bench_parts.verify import Sent

SINGLE_BYTES = 1_200
BATCHED_BYTES = 1_000
RATIO = at_least(0.7)
BATCH_RATIO = at_least(4)
_BASELINE = "scripts.bench_parts.ingest_baseline:create_app()"
_WARM_SECONDS = 0.5
_ROLES = {
    "web": "the gate",
    "guest": "the gate that keeps nothing",
    "broker": "the broker",
    "writer": "the writer",
}
#: Less is what a role spends while the other side is measured.
_IDLE_MS = 0.03


class _Clients:
    """Sends load to a stack and writes it into the stack's book."""

    def __init__(self, stack: Stack, sizes: Sizes) -> None:
        self._stack = stack
        self._sizes = sizes
        self.statuses: Counter[str] = Counter()

    def single(self, seconds: float, port: int | None = None) -> Report:
        plan = self._plan(SINGLE_BYTES, port, connections=self._sizes.connections, seconds=seconds)
        return self._run(plan, is_kept=port is None)

    def burst(self) -> Report:
        sizes = self._sizes
        plan = self._plan(
            BATCHED_BYTES,
            None,
            connections=sizes.batch_connections,
            requests=sizes.burst_requests,
            items=sizes.batch_items,
        )
        return self._run(plan, is_kept=True)

    def _plan(self, size_bytes: int, port: int | None, **more) -> Plan:
        return Plan(
            port=port or self._stack.port,
            token=self._stack.token,
            run=os.urandom(3).hex(),
            size_bytes=size_bytes,
            **more,
        )

    def _run(self, plan: Plan, *, is_kept: bool) -> Report:
        report = load.run(plan)
        self.statuses.update(report.statuses)
        if is_kept:
            self._stack.sent.append(
                Sent(
                    events=Events(plan.run, plan.size_bytes),
                    count=report.accepted + len(report.others),
                    others=frozenset(report.others),
                )
            )
            self._stack.wait_drained()
        return report

    def check(self, result: Result) -> None:
        self._stack.verify(result)
        other = {status: count for status, count in self.statuses.items() if status != "202"}
        if other:
            result.complaints.append(f"answers other than 202: {other}")


def _cost(before: dict[str, float], after: dict[str, float], report: Report) -> dict[str, float]:
    """CPU milliseconds per accepted event that each role spent; a machine that does other things hardly changes it."""
    return {
        role: (spent - before.get(role, 0.0)) * 1000 / max(1, report.accepted)
        for role, spent in after.items()
    }


@parts.add("ingest")
def ingest(bench: Bench) -> Result:
    """Single events at 64 connections, against the same gate that keeps nothing."""
    result, sizes = Result(part="ingest"), bench.sizes
    with bench.stack() as stack, stack.second_web(_BASELINE) as baseline_port:
        clients = _Clients(stack, sizes)
        kept, dropped = [], []
        costs: list[dict[str, float]] = []
        for port in (None, baseline_port):
            clients.single(_WARM_SECONDS, port)
        for number in range(sizes.rounds):
            bench.say(f"ingest: round {number + 1} of {sizes.rounds}")
            order = (None, baseline_port) if number % 2 == 0 else (baseline_port, None)
            for port in order:
                before = stack.cpu_seconds()
                report = clients.single(sizes.ingest_seconds, port)
                (kept if port is None else dropped).append(report)
                costs.append(_cost(before, stack.cpu_seconds(), report))
        clients.check(result)
    result.add_median("kept by the gate", [report.rate for report in kept], "events/s")
    result.add_median("the same gate that keeps nothing", [report.rate for report in dropped], "events/s")
    # Round by round: what else the machine does hits both sides of one round alike.
    ratios = [one.rate / other.rate for one, other in zip(kept, dropped, strict=True)]
    result.add_median("ratio", ratios, "", RATIO)
    for role, name in _ROLES.items():
        spent = [cost[role] for cost in costs if cost.get(role, 0.0) > _IDLE_MS]
        if spent:
            result.add_median(f"CPU of an event: {name}", spent, "ms")
    latencies = [value for report in kept for value in report.latencies]
    result.add("answer p50", statistics.median(latencies), "ms")
    result.add("answer p99", quantile(latencies, 0.99), "ms")
    return result


@parts.add("batch")
def batch(bench: Bench) -> Result:
    """`/hook/batch` in bursts, against single events."""
    result, sizes = Result(part="batch"), bench.sizes
    with bench.stack() as stack:
        clients = _Clients(stack, sizes)
        clients.single(_WARM_SECONDS)
        clients.burst()
        singles, bursts = [], []
        for number in range(sizes.rounds):
            bench.say(f"batch: round {number + 1} of {sizes.rounds}")
            singles.append(clients.single(sizes.ingest_seconds).rate)
            bursts.append(statistics.median(clients.burst().rate for _ in range(sizes.bursts)))
        clients.check(result)
    result.add_median("single events", singles, "events/s")
    name = f"bursts of {sizes.burst_requests} batches of {sizes.batch_items} × 1 KB"
    result.add_median(name, bursts, "events/s")
    ratios = [one / other for one, other in zip(bursts, singles, strict=True)]
    result.add_median("ratio", ratios, "", BATCH_RATIO)
    return result
