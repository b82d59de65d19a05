"""`python -m workers.pool.foreground`: claims until nothing is due, then ends; what `memoryd work` shows.

One slot, no doorbells, no log file: what happens is told on standard output, one JSON object a line (`event` is `begun`,
`claimed`, `progress`, `trouble`, `ended` or `over`). The first SIGINT or SIGTERM hands the job in hand back.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import signal
import sys
import threading
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from memory_core import bootstrap, config
from memory_core.clock import Clock, SystemClock
from memory_core.config import Settings
from memory_core.errors import CoreError, Forbidden, Invalid, NotFound
from memory_core.job_kind import kinds
from workers import data_dir, exit_codes, logs
from workers.pool.claiming import Claim, ClaimedJob, claim
from workers.pool.gate import PoolGate
from workers.pool.killable import ComputeChild, Nursery
from workers.pool.remote import gate_of, install_at, queues_of
from workers.pool.running import Pace, Report, Run
from workers.pool.slots import AWAY, Slots

#: What becomes of a job is told by these of its log records; their texts hold nothing that anybody wrote.
_TROUBLES = frozenset(
    {
        "compute_failed",
        "compute_killed",
        "compute_died",
        "compute_unstarted",
        "gate_away",
        "job_unreported",
        "lease_lost",
        "pool_forbidden",
    }
)
_WORKING, _NOTHING, _STOPPED, _GATE_AWAY = "", "nothing is due", "stopped", "the gate is away"


class Foreground:
    """Works in the calling thread; `stop` may come from any, also from a signal."""

    def __init__(self, settings: Settings, clock: Clock, gate: PoolGate, *, kind: str = "") -> None:
        self._clock = clock
        self._settings = settings
        self._gate = gate
        self._closing = threading.Event()
        self._pace = Pace()
        self._begun_at = clock.monotonic()
        child = ComputeChild(Nursery().spawn, clock)
        self._slots = Slots(
            "work",
            [child],
            claim_next=partial(
                claim,
                gate,
                list(queues_of(settings)),
                worker=settings.worker_name or "work",
                on_data_host=not settings.off_data_host,
                seconds=self._pace.claim_seconds,
                pause=self._pause,
                kind=kind,
            ),
            make_run=self._run_of,
            ring=lambda: None,
            # One job a look: between two of them it is told what became of the first.
            ring_now=lambda: True,
            closing=self._closing,
            clock=clock,
        )

    def work(self) -> int:
        """Until nothing is due, or until it is stopped; the exit code."""
        why = _WORKING
        while not why:
            report = self._slots.look()
            if report.job:
                seconds = round(self._clock.monotonic() - self._begun_at, 3)
                _tell("ended", **report.shown(), seconds=seconds, stopping=self._closing.is_set())
            why = self._why_over(report)
        self._slots.kill_children()
        self._gate.close()
        _tell("over", why=why)
        return exit_codes.UNAVAILABLE if why == _GATE_AWAY else exit_codes.OK

    def stop(self) -> None:
        """Hand the job in hand back; a second time end at once, and leave it to its lease."""
        if self._closing.is_set():
            self._slots.kill_children()
            os._exit(exit_codes.OK)
        self._closing.set()
        self._slots.stop()

    def _why_over(self, report: Report) -> str:
        if self._closing.is_set():
            return _STOPPED
        if report is AWAY:
            return _GATE_AWAY
        return _WORKING if report.job or report.more else _NOTHING

    def _run_of(self, job: ClaimedJob, claimed: Claim, lease: str, child: ComputeChild) -> Run:
        self._begun_at = self._clock.monotonic()
        _tell("claimed", job=job.id, kind=job.kind, queue=job.queue, project=job.project, attempt=job.attempt)
        return Run(
            job,
            claimed,
            lease,
            gate=self._gate,
            child=child,
            clock=self._clock,
            pace=self._pace,
            pause=self._pause,
            data=None if self._settings.off_data_host else self._settings,
        )

    def _pause(self, seconds: float) -> bool:
        return not self._closing.wait(seconds)


class _Teller(logging.Handler):
    """Records about the job in hand become events."""

    def emit(self, record: logging.LogRecord) -> None:
        action = getattr(record, "action", "")
        if action == "job_progress":
            _tell("progress", text=record.getMessage())
        elif action in _TROUBLES:
            _tell(
                "trouble",
                action=action,
                text=record.getMessage(),
                exception=getattr(record, "exception", None),
            )


def check_server(settings: Settings, gate: PoolGate) -> None:
    """Whether it lets this worker in, and is the one whose data directory this is. Raises the errors of `PoolGate`."""
    found = install_at(settings, gate)
    if not settings.off_data_host and found != config.install_id(settings):
        raise Invalid(
            f"the server at {settings.effective_gate_url} is not the one of {settings.data_dir}; "
            "name its data directory with --data-dir, or give --token-file to work without one"
        )


def _queue_of(kind: str) -> str:
    """Raises `NotFound` that names the kinds there are."""
    bootstrap.load_jobs()
    return kinds.get(kind).queue


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="workers.pool.foreground")
    parser.add_argument("--kind", default="")
    kind = str(parser.parse_args(arguments).kind)
    settings, clock = config.load(), SystemClock()
    if not settings.off_data_host:
        # Temporary files of computations lie where those of every other worker do.
        os.environ.update(data_dir.environment(settings, os.environ))
    logs.configure_terminal(settings, "work", terminal_level=logging.CRITICAL)
    logging.getLogger().addHandler(_Teller())
    try:
        if kind:
            settings = replace(settings, pool_queues=(_queue_of(kind),))
        gate = gate_of(settings, clock)
        check_server(settings, gate)
        work = Foreground(settings, clock, gate, kind=kind)
    except CoreError as error:
        _tell("over", why=str(error), code=error.code)
        return (
            exit_codes.REFUSED
            if isinstance(error, Invalid | Forbidden | NotFound)
            else exit_codes.UNAVAILABLE
        )
    for number in (signal.SIGTERM, signal.SIGINT):
        # From a thread of its own: the handler may interrupt whoever holds the slots' lock.
        signal.signal(number, lambda *_: threading.Thread(target=work.stop, daemon=True).start())
    _tell("begun")
    return work.work()


def _tell(event: str, **facts: Any) -> None:
    sys.stdout.write(json.dumps({"event": event, **facts}, ensure_ascii=False) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
