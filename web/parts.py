"""The parts of one web process and how they are put together; made before the fork, started after it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as package_version
from typing import Any

from memory_core import bootstrap
from memory_core.clock import Clock, SystemClock
from memory_core.commands.unseen_edits import UnseenEdits
from memory_core.config import Settings
from memory_core.errors import CoreError, Unavailable
from memory_core.ids import IdSource
from memory_core.recall.search import turns
from memory_core.redaction.server import Redactor
from memory_core.store.database import Database
from memory_core.store.install import marked_install, read_install
from memory_core.store.principals import token_by_public_id
from memory_core.tools import call_tool
from web import events, readiness
from web.accesses import Accesses
from web.auth import Caller, TokenRecord, Tokens, file_token, first_of
from web.calls import CALLER, CallContext
from web.catalog import ToolEntry, load_catalog
from web.gate import Gate
from web.line import Line
from web.meters import Meters
from web.names import Names
from web.presence import Presence
from web.probes import Probes, Progress
from web.question_vectors import QuestionVectors
from web.reranking import Reranking
from web.search_processes import SearchProcesses, spare_cores
from web.vitals import Vitals
from workers.queue.disk import DiskGauge


@dataclass(kw_only=True)
class Parts:
    settings: Settings
    clock: Clock
    version: str
    database: Database
    line: Line
    gate: Gate
    tokens: Tokens
    names: Names
    progress: Progress
    probes: Probes
    meters: Meters
    disk: DiskGauge
    vitals: Vitals
    accesses: Accesses
    presence: Presence
    question_vectors: QuestionVectors
    reranking: Reranking
    search_processes: SearchProcesses
    catalog: Mapping[str, ToolEntry]

    def call(self, name: str, arguments: Mapping[str, Any], environ: Mapping[str, Any]) -> Mapping[str, Any]:
        """Call a tool for the caller that the route left in `environ`. Raises the errors of `memory_core.errors`."""
        context = self.context(environ[CALLER], environ)
        begun = self.clock.monotonic()
        try:
            return call_tool(name, arguments, context)
        finally:
            self.meters.tool_called(
                name if name in self.catalog else "unknown", self.clock.monotonic() - begun
            )

    def context(self, caller: Caller, environ: Mapping[str, Any]) -> CallContext:
        """What a request of `caller` may do; `environ` says in which session and directory it was made."""
        return CallContext(
            gate=self.gate,
            database=self.database,
            vitals=self.vitals,
            accesses=self.accesses,
            question_vectors=self.question_vectors,
            reranking=self.reranking,
            edits=UnseenEdits(self.settings.wiki, self.database, self.gate.clock),
            caller=caller,
            environ=environ,
        )

    def start(self) -> None:
        """Once per process, after the last fork."""
        self.line.start()
        self.probes.start()
        turns.somebody_waited = self.search_processes.somebody_waited

    def stop(self) -> None:
        self.probes.stop()
        self.search_processes.close()
        self.accesses.stop()
        self.line.close()


def build(settings: Settings, clock: Clock | None = None, redactor: Redactor | None = None) -> Parts:
    """Put a web process together. Opens no connection. Builds the secret scanner unless one is given: half a
    second, and some seconds on the first start, when its rules are compiled."""
    clock = clock or SystemClock()
    events.load_clients()
    bootstrap.load_jobs()
    key = install_key(settings)
    database = Database(settings.database)
    disk = DiskGauge(settings, clock)
    line = Line(settings, clock, disk, lambda: install_id(settings, database))
    meters = Meters()
    scanner = redactor or Redactor(key, settings.cache_dir)
    gate = Gate(
        queue=line,
        replies=line,
        database=database,
        scan=scanner.redact_value,
        hash_key=key,
        ids=IdSource(clock),
        clock=clock,
        meters=meters,
        ring=line.ring,
    )
    names = Names(settings.host, settings.allowed_hosts)
    progress = Progress(clock)
    return Parts(
        settings=settings,
        clock=clock,
        version=own_version(),
        database=database,
        line=line,
        gate=gate,
        tokens=_tokens(settings, clock, database),
        names=names,
        progress=progress,
        probes=Probes(
            address=(settings.host, settings.effective_probe_port),
            names=names,
            progress=progress,
            checks=readiness.checks(settings, clock, line, database, disk),
            clock=clock,
        ),
        meters=meters,
        disk=disk,
        vitals=Vitals(
            settings=settings, clock=clock, line=line, disk=disk, database=database, version=own_version()
        ),
        accesses=Accesses(gate, clock),
        presence=Presence(clock),
        question_vectors=QuestionVectors.configured(settings, database, clock),
        reranking=Reranking.configured(settings, clock, gate, meters),
        search_processes=SearchProcesses(turns, spare_cores()),
        catalog=load_catalog(),
    )


def install_key(settings: Settings) -> bytes:
    """The 32 bytes of the install's key; `Unavailable` where it was never made."""
    try:
        descriptor = os.open(settings.install_key_file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            key = file.read(64)
    except OSError as error:
        raise Unavailable(
            f"cannot read {settings.install_key_file}: {error.strerror}; run `memoryd up`"
        ) from error
    if len(key) != 32:
        raise Unavailable(f"{settings.install_key_file} does not hold a key of 32 bytes")
    return key


def install_id(settings: Settings, database: Database) -> str:
    """The install's id in hexadecimal: as told, as the marker file has it, or as the database says; else empty."""
    if settings.install:
        return settings.install
    marked = marked_install(settings.marker_file)
    if marked:
        return marked
    try:
        with database.snapshot() as reading:
            found = read_install(reading)
    except CoreError:
        return ""
    return found.text if found is not None else ""


def own_version() -> str:
    try:
        return package_version("memoryd")
    except PackageNotFoundError:
        return "unpackaged"


def _tokens(settings: Settings, clock: Clock, database: Database) -> Tokens:
    of_metrics = file_token(
        lambda: settings.metrics_token_file.read_text(encoding="ascii"), principal="metrics", scope="metrics"
    )
    of_owner = file_token(lambda: settings.token_file.read_text(encoding="ascii"))
    return Tokens(first_of(of_metrics, _find_token(database)), clock, of_owner)


def _find_token(database: Database) -> Callable[[str], TokenRecord | None]:
    def find(public_id: str) -> TokenRecord | None:
        with database.snapshot() as reading:
            row = token_by_public_id(reading, public_id)
        if row is None:
            return None
        return TokenRecord(
            public_id=public_id,
            principal=row["principal"],
            scope=row["scope"],
            digest=row["digest"],
            project_id=row["project_id"],
            expires_at=row["expires_at"],
            revoked_at=row["revoked_at"],
        )

    return find
