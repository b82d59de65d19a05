"""What a kind of job is, which there are, and how a job of one comes to be.

A kind is one file in `memory_core/jobs` with three functions: `prepare` reads, `compute` works without the database,
`apply` writes. They run in three processes; what goes between them is JSON of two frozen dataclasses.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import msgspec

from memory_core import config, limits
from memory_core.config import Settings
from memory_core.domain import schedule
from memory_core.domain.budget import BACKLOG, day_of
from memory_core.domain.command import Refusal
from memory_core.domain.job import QUEUES, Again, Done, Job, Later, State
from memory_core.domain.schedule import Schedule
from memory_core.errors import CoreError, Invalid, NotFound
from memory_core.registry import Registry
from memory_core.store import job_counts, jobs, model_budget, model_usage
from memory_core.store.transaction import Reading, Transaction


class Cancelled(CoreError):
    """The job was cancelled, and its kind stops."""

    code = "cancelled"


class Tools(Protocol):
    """What `compute` is given. Everything here may be called from its thread only."""

    @property
    def data(self) -> Settings | None:
        """The settings of the data directory; None unless the kind is `on_data_host`."""
        ...

    @property
    def model(self) -> Any:
        """The language model (`memory_core.models.port`), under its budget; None where no provider is configured.

        Raises `NoProvider` where one is configured and cannot be had.
        """
        ...

    @property
    def embedder(self) -> Any:
        """The embedder, likewise."""
        ...

    def cancelled(self) -> bool:
        """Whether to stop, by raising `Cancelled`: ask before each long step. Does not block."""
        ...

    def progress(self, text: str) -> None:
        """Say how far it is, in a few words without any stored text. Does not block."""
        ...


#: What `apply` did: everything; a slice, and where to go on; nothing yet; or why the output is not taken. A refusal and a
#: `Later` are decided before the first write.
Applied = Done | Again | Later | Refusal


@dataclass(frozen=True, kw_only=True)
class JobKind:
    """A registered kind. `input` and `output` are the types that go between its functions."""

    name: str
    queue: str
    input: type[Any]
    output: type[Any]
    #: Web process: at most 5 s of reading, at most 4 MiB compressed. Never raises because there is much: it takes a part.
    prepare: Callable[[Reading, Job], Any]
    #: Pool: may take `run_seconds`; has neither database nor stream.
    compute: Callable[[Any, Tools], Any]
    #: Writer: at most 50 ms; looks whether what the output was made of still holds.
    apply: Callable[[Any, Job, Transaction], Applied]
    #: Writer, at a claim: until when (UTC microseconds) somebody works with what the job is about, who comes first; None: nobody.
    busy_until: Callable[[Reading, Job], int | None] | None = None
    #: Unless the configuration says otherwise; empty: only what happens makes such a job.
    schedule: str = ""
    #: `session`: of one session, made by what happens to it or is asked of it, and by no schedule.
    per: Literal["install", "project", "session"] = "install"
    #: What a person says for a job of a kind by session; empty: it comes by itself.
    asked_with: str = ""
    run_seconds: float = limits.JOB_RUN_SECONDS
    #: So quick that it runs in the worker's own thread and not in a child that can be killed.
    is_inline: bool = False
    #: Reads the data directory.
    on_data_host: bool = False
    uses_model: bool = False
    #: It can be done without: none is made while too many jobs that use a model wait.
    is_droppable: bool = False

    def __post_init__(self) -> None:
        if self.queue not in QUEUES:
            raise ValueError(f"{self.name}: there is no queue {self.queue!r}")
        if self.uses_model and self.is_inline:
            raise ValueError(f"{self.name}: a model takes long; only a child can be killed")
        if self.per == "session" and self.schedule:
            raise ValueError(f"{self.name}: a schedule knows no session")
        if self.is_droppable and not self.uses_model:
            raise ValueError(f"{self.name}: only a kind that uses a model is left out")

    def read_input(self, text: bytes | Any) -> Any:
        """An input as it was sent (JSON bytes, or already parsed). Raises `Invalid`."""
        return _read(text, self.input, f"an input of {self.name}")

    def read_output(self, text: bytes | Any) -> Any:
        """An output as it was sent. Raises `Invalid`."""
        return _read(text, self.output, f"an output of {self.name}")


kinds: Registry[JobKind] = Registry("job kind")


def register(kind: JobKind) -> JobKind:
    """Make a kind known under its name, which is that of its file."""
    return kinds.add(kind.name)(kind)


def runnable() -> tuple[str, ...]:
    """The kinds that can be run by the clock or now: those of the whole install and those by project."""
    return tuple(name for name, kind in sorted(kinds) if kind.per != "session")


def check_runnable(name: str) -> JobKind:
    """The kind. Raises `NotFound`, and `Invalid` with what to do for one that no schedule can run."""
    there_are = f"there are: {', '.join(runnable())}"
    if name not in kinds:
        raise NotFound(f"there is no job kind {name[:64]!r}; {there_are}")
    kind = kinds.get(name)
    if kind.per == "session":
        how = (
            f"ask for it with: {kind.asked_with}"
            if kind.asked_with
            else "it comes by itself at the session's end"
        )
        raise Invalid(f"{name} works on one session, not by schedule; {how}. By schedule {there_are}")
    return kind


def enqueue(
    tx: Transaction,
    name: str,
    *,
    source_digest: bytes,
    project_id: bytes | None = None,
    subject: str = "",
    is_asked_for: bool = False,
) -> tuple[bytes | None, bool]:
    """A job of that kind, in the transaction of the fact that it is about: its id, and whether it is new.

    Where there is a job of the same kind, project, subject and source already, in whatever state, it is that one. It belongs to the
    principal at hand. The id is None where a droppable kind is left out because too much waits, which is counted; what a person
    asks for (`is_asked_for`) never is. `NotFound` for an unknown kind, `Invalid` for a subject that is too long.
    """
    kind = kinds.get(name)
    if len(subject) > limits.JOB_SUBJECT_MAX_CHARS:
        raise Invalid(f"a job's subject has at most {limits.JOB_SUBJECT_MAX_CHARS} characters")
    job = Job(
        id=tx.new_id(),
        kind=kind.name,
        queue=kind.queue,
        project_id=project_id,
        subject=subject,
        source_digest=source_digest,
        on_data_host=kind.on_data_host,
        principal=tx.principal,
        token_scope=tx.token_scope,
        created_at=tx.now,
        updated_at=tx.now,
    )
    if kind.is_droppable and not is_asked_for and jobs.same(tx, job) is None and _is_full(tx):
        model_usage.refused(tx, day=day_of(tx.now), kind=kind.name, reason=BACKLOG)
        return None, False
    return jobs.add(tx, job)


def _is_full(read: Reading) -> bool:
    """Whether as many jobs that use a model wait as the budget allows."""
    most = model_budget.in_force(read).budget.backlog_max
    if most is None:
        return False
    models = {name for name, kind in kinds if kind.uses_model}
    counts = job_counts.present(read)
    return sum(c.count for c in counts if c.state is State.PENDING and c.kind in models) >= most


def digest_of(*parts: str | bytes) -> bytes:
    """SHA-256 of parts, each with its length before it: a source digest."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        digest.update(b"%d:" % len(data))
        digest.update(data)
    return digest.digest()


def schedules(settings: Settings, environ: Mapping[str, str] | None = None) -> dict[str, Schedule | None]:
    """The schedule of every kind that has one by itself or by the configuration; None where it is switched off.

    Raises `Invalid` that names the key of `[schedules]`.
    """
    told = config.section(settings, "schedules", environ)
    zone = told.pop("timezone", "UTC")
    with _naming("timezone"):
        zone = schedule.check_timezone(_text(zone))
    for name in told:
        with _naming(name):
            check_runnable(name)
    wanted = {name: kind.schedule for name, kind in kinds if kind.schedule} | told
    found: dict[str, Schedule | None] = {}
    for name, text in sorted(wanted.items()):
        with _naming(name):
            found[name] = schedule.parse(_text(text), zone)
    return found


@contextmanager
def _naming(key: str) -> Generator[None]:
    """Puts the key before what is wrong with its value."""
    try:
        yield
    except (Invalid, NotFound) as error:
        raise Invalid(f"[schedules] {key}: {error}") from None


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise Invalid("write it as text in quotes")
    return value


def _read(text: bytes | Any, wanted: type[Any], what: str) -> Any:
    try:
        if isinstance(text, bytes):
            return msgspec.json.decode(text, type=wanted)
        return msgspec.convert(text, type=wanted)
    except msgspec.MsgspecError as error:
        raise Invalid(f"{what} cannot be read: {error}") from error
