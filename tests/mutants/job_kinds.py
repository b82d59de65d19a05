"""No mutant but an addition: kinds of jobs for tests, known to every process that loads it.

`probe` does what its input says, also what no kind should; `probe_inline` the same in the worker's own thread.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

TARGET = "memory_core.jobs"


@dataclass(frozen=True, kw_only=True)
class Probe:
    """`what` is a name of the table below."""

    what: str = "echo"
    text: str = ""
    #: Where to note what happened: one line each time.
    notes: str = ""


@dataclass(frozen=True, kw_only=True)
class Found:
    text: str


def note(probe: Probe, line: str) -> None:
    if probe.notes:
        with open(probe.notes, "a", encoding="utf-8") as file:
            file.write(line + "\n")


def _hang() -> None:
    while True:
        time.sleep(60)


def _raise(probe: Probe, _: Any) -> None:
    raise ValueError(probe.text)


def _deaf(probe: Probe, _: Any) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    note(probe, f"pid {os.getpid()}")
    _hang()


def _obey(probe: Probe, tools: Any) -> None:
    note(probe, f"pid {os.getpid()}")
    while not tools.cancelled():
        time.sleep(0.01)
    note(probe, "obeyed")


def _litter(probe: Probe, _: Any) -> None:
    left = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    note(probe, f"pid {left.pid}")
    if probe.text == "hang":
        _hang()


def _stop(probe: Probe, _: Any) -> None:
    note(probe, f"pid {os.getpid()}")
    os.kill(os.getpid(), signal.SIGSTOP)


def _wait(probe: Probe, _: Any) -> None:
    note(probe, f"pid {os.getpid()}")
    while not Path(probe.text).exists():
        time.sleep(0.01)


def _shout(_: Probe, tools: Any) -> None:
    sys.stdout.write("x" * 200_000)
    sys.stdout.flush()
    os.write(1, b"\x00\x00\x00\x05hello")
    tools.progress("half of it")


def _look_around(probe: Probe, _: Any) -> None:
    """What can be reached from here: the directory and the port that `text` names."""
    directory, _, port = probe.text.partition(";")
    note(probe, f"uid {os.getuid()}")
    for name, reach in (
        ("data", lambda: list(Path(directory).iterdir())),
        ("probe port", lambda: socket.create_connection(("127.0.0.1", int(port)), 5)),
    ):
        try:
            reach()
            note(probe, f"{name} reached")
        except OSError as error:
            note(probe, f"{name} {type(error).__name__}")
    note(probe, f"interfaces {[name for _, name in socket.if_nameindex()]}")


def _ask_twice(probe: Probe, tools: Any) -> None:
    from memory_core.models.port import ask

    for _ in range(2):
        tools.model.complete(ask("Say fine."))
        note(probe, "asked")


_WHAT: dict[str, Any] = {
    "echo": lambda *_: None,
    "raise": _raise,
    "exit": lambda *_: os._exit(3),
    "die": lambda *_: os.kill(os.getpid(), signal.SIGKILL),
    "kill the worker": lambda *_: os.kill(os.getppid(), signal.SIGKILL),
    "deaf": _deaf,
    "obey": _obey,
    "litter": _litter,
    "stop": _stop,
    "wait for a file": _wait,
    "shout": _shout,
    "ask twice": _ask_twice,
    "look around": _look_around,
}


def prepare(_: Any, job: Any) -> Probe:
    """What the job's subject says: `what|text|notes`."""
    what, text, notes = (*job.subject.split("|"), "", "")[:3]
    return Probe(what=what, text=text, notes=notes)


def compute(probe: Probe, tools: Any) -> Any:
    note(probe, "computing")
    _WHAT[probe.what](probe, tools)
    return probe if probe.text == "another type" else Found(text=probe.text)


def apply(found: Found, job: Any, tx: Any) -> Any:
    from memory_core.domain.job import Done
    from memory_core.store import audit

    audit.record(tx, "probe_applied", detail={"subject": job.subject})
    return Done(result={"chars": len(found.text)})


@dataclass(frozen=True, kw_only=True)
class EnqueueProbes:
    """One job of `kind` for each of `subjects`."""

    kind: str
    subjects: tuple[str, ...]


def _enqueue(body: EnqueueProbes, tx: Any) -> dict[str, int]:
    from memory_core.job_kind import digest_of, enqueue

    made = [enqueue(tx, body.kind, subject=one, source_digest=digest_of(one)) for one in body.subjects]
    return {"created": sum(is_new for _, is_new in made)}


def register() -> None:
    from memory_core import commands
    from memory_core.job_kind import JobKind, kinds
    from memory_core.job_kind import register as add

    if "enqueue_probes" not in commands.registry:
        commands.command(EnqueueProbes, name="enqueue_probes")(_enqueue)

    kind = JobKind(
        name="probe",
        queue="lint",
        input=Probe,
        output=Found,
        prepare=prepare,
        compute=compute,
        apply=apply,
        run_seconds=float(os.environ.get("PROBE_RUN_SECONDS", "30")),
    )
    for more in (
        kind,
        replace(kind, name="probe_inline", is_inline=True),
        replace(kind, name="probe_forget", queue="forget"),
        replace(kind, name="probe_data", on_data_host=True),
        replace(kind, name="probe_model", queue="compaction", uses_model=True),
    ):
        if more.name not in kinds:
            add(more)


def patch(_: Any) -> None:
    register()
