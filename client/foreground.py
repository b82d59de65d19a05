"""Showing a worker in the foreground: it is a process of its own that tells one JSON object a line; here they become lines
for people and a report."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import click
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from client import jobs
from client.output import visible
from memory_core.config import Settings

NOTHING_DUE = "nothing is due"
#: What the worker ends with where the server cannot be reached.
AWAY_CODE = 69
_STOPPED = "stopped"
#: Ways to end that nobody may pass over; the others are the job's own states.
_WRONG = frozenset({"failed", "unreported", "refused", "forbidden"})
#: A job as it is after its turn, by its id; empty where it cannot be looked at.
Look = Callable[[str], dict[str, Any]]


@dataclass(kw_only=True)
class Done:
    """What the worker did. `why` it ended, and with which code."""

    jobs: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    why: str = "the worker ended without a word"
    code: int = 0
    #: The code of the error for which it did not begin.
    refusal: str = ""

    @property
    def was_stopped(self) -> bool:
        return self.why == _STOPPED

    @property
    def went_wrong(self) -> bool:
        return any(job["outcome"] in _WRONG for job in self.jobs)

    def counts(self) -> dict[str, int]:
        return dict(Counter(job["became"] for job in self.jobs))

    def as_json(self) -> dict[str, Any]:
        return {"jobs": self.jobs, "counts": self.counts(), "why": self.why}


def run(settings: Settings, *, kind: str, due: int, quiet: bool, about: Look) -> Done:
    """Work until nothing is due. The first Ctrl-C has the job in hand handed back, a second one ends at once."""
    done = Done()
    argv = ["-P", "-m", "workers.tether", str(os.getpid()), "-m", "workers.pool.foreground"]
    process = subprocess.Popen(
        [sys.executable, *argv, *(["--kind", kind] if kind else [])],
        env={**os.environ, **settings.environment(), "PYTHONDONTWRITEBYTECODE": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        # A terminal's Ctrl-C reaches this process alone, which passes it on: once is once.
        start_new_session=True,
        text=True,
    )
    with _passing_on(process), _Screen(due, quiet=quiet) as screen:
        for event in _events(process):
            _take(event, done, screen, about)
        done.code = process.wait()
    return done


def _take(event: dict[str, Any], done: Done, screen: _Screen, about: Look) -> None:
    name = event["event"]
    if name == "claimed":
        screen.begins(event)
    elif name == "progress":
        screen.says(event["text"])
    elif name == "trouble":
        screen.troubled(event)
    elif name == "ended":
        job = {**screen.job, **event}
        del job["event"], job["stopping"]
        after = about(job["job"])
        job |= {"became": became(event, after), "last_error": after.get("last_error")}
        job["result"] = after.get("result")
        done.jobs.append(job)
        screen.ends(job)
    elif name == "over":
        done.why, done.refusal = event["why"], event.get("code", "")


def became(event: dict[str, Any], after: dict[str, Any]) -> str:
    """What a turn came to, in words: a job that is pending again failed, was handed back, or goes on with its next slice."""
    outcome = event["outcome"]
    if outcome == "lost":
        return "lost to another worker"
    if outcome != "pending":
        return outcome
    if after.get("waits_for") == "retry" or after.get("failures"):
        return "to be tried again"
    if event["stopping"]:
        return "handed back"
    return "waiting again" if after.get("waits_for") else "going on"


class _Screen:
    """One line a job; on a terminal also a bar with the job in hand."""

    def __init__(self, due: int, *, quiet: bool) -> None:
        self.job: dict[str, Any] = {}
        self._quiet = quiet
        self._done = 0
        self._due = due
        self._console = Console()
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=self._console,
            disable=quiet or not self._console.is_terminal,
            transient=True,
        )
        self._task: TaskID = self._bar.add_task("looking", total=due or None)

    def __enter__(self) -> _Screen:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def begins(self, event: dict[str, Any]) -> None:
        self.job = {name: event[name] for name in ("job", "kind", "queue", "project", "attempt")}
        self.says("")

    def says(self, text: str) -> None:
        words = [self.job.get("kind", ""), self.job.get("project") or "", text]
        self._bar.update(self._task, description=escape(visible(" · ".join(word for word in words if word))))

    def troubled(self, event: dict[str, Any]) -> None:
        """What nobody else would keep: this worker has no log file."""
        exception = event.get("exception") or {}
        stack = exception.get("stack") or [""]
        where = f" ({exception['type']} at {stack[-1]})" if exception else ""
        self._bar.console.file.flush()
        click.echo(visible(f"{self.job.get('job', '')} {event['text']}{where}".strip()), err=True)

    def ends(self, job: dict[str, Any]) -> None:
        self._done += 1
        self._bar.update(self._task, completed=self._done, total=max(self._due, self._done))
        if self._quiet:
            return
        counts = jobs.result_in_words(job["result"])
        cells = (
            job["became"],
            job["kind"],
            job["project"] or "",
            f"{job['seconds']:.1f} s",
            job["last_error"] or counts,
            job["job"],
        )
        line = visible(("  " if self._console.is_terminal else "\t").join(cell for cell in map(str, cells)))
        if self._console.is_terminal:
            self._bar.console.print(escape(line), highlight=False, soft_wrap=True)
        else:
            click.echo(line)


def _events(process: subprocess.Popen[str]) -> Iterator[dict[str, Any]]:
    if process.stdout is None:
        return
    for line in process.stdout:
        try:
            event = json.loads(line)
        except ValueError:
            continue  # a library that prints
        if isinstance(event, dict) and "event" in event:
            yield event


@contextmanager
def _passing_on(process: subprocess.Popen[str]) -> Generator[None]:
    """Signals that would end this process go to the worker, which ends in order; then so does this."""

    def pass_on(number: int, _: object) -> None:
        if process.poll() is None:
            process.send_signal(number)

    before = {number: signal.signal(number, pass_on) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if process.poll() is None:
            process.kill()
            process.wait()
