"""Looks whether what is kept is whole: the database, the full-text indexes, the wiki's files, and its history.

It mends nothing: what it finds stands in the job's result, in kinds and names, and a person decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from memory_core import limits
from memory_core.clock import Clock, SystemClock
from memory_core.config import Settings
from memory_core.domain.job import Done, Job, as_json
from memory_core.domain.project import Project
from memory_core.errors import Unavailable
from memory_core.job_kind import Applied, Cancelled, JobKind, Tools, register
from memory_core.store import integrity, projects, wiki_files
from memory_core.store.database import Database
from memory_core.store.transaction import Reading, Transaction
from memory_core.wiki.git import Git, GitBusy, GitFailed, GitMissing, GitRefused, GitStorage
from memory_core.wiki.layout import project_directory
from memory_core.wiki.walk import WikiTree


@dataclass(frozen=True, kw_only=True)
class Nothing:
    """An audit needs no input: it reads the data directory itself."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """`what` is wrong: the name of a table or file."""

    kind: str
    what: str


@dataclass(kw_only=True)
class Audit:
    """What was looked at, how much is wrong, and the first of that."""

    tables: int = 0
    projects: int = 0
    files: int = 0
    #: The wiki's history: `absent`, `looked_at`, or `busy` (git could not look now).
    history: str = "absent"
    wrong: int = 0
    findings: list[Finding] = field(default_factory=list[Finding])

    def found(self, kind: str, what: str) -> None:
        self.wrong += 1
        if len(self.findings) < limits.AUDIT_FINDINGS_MAX:
            self.findings.append(Finding(kind=kind, what=what[: limits.AUDIT_NAME_MAX_CHARS]))


def prepare(_reading: Reading, _job: Job) -> Nothing:
    return Nothing()


def compute(_nothing: Nothing, tools: Tools) -> Audit:
    if tools.data is None:
        raise Unavailable("an integrity audit runs beside the data directory")
    return audited(tools.data, SystemClock(), tools)


def apply(output: Audit, _job: Job, _tx: Transaction) -> Applied:
    return Done(result=_bounded(output))


def audited(settings: Settings, clock: Clock, tools: Tools) -> Audit:
    """Everything, in some minutes at most. Raises `Cancelled`."""

    def go_on(text: str) -> None:
        if tools.cancelled():
            raise Cancelled
        tools.progress(text)

    audit = Audit()
    _look_at_tables(settings, audit, go_on)
    _look_at_files(settings, audit, clock, go_on)
    _look_at_history(settings, audit, clock, go_on)
    return audit


def _look_at_tables(settings: Settings, audit: Audit, go_on: Callable[[str], None]) -> None:
    for seen in integrity.look(settings.database):
        audit.tables += seen.kind != "references"
        if not seen.is_whole:
            audit.found(seen.kind, seen.table)
        go_on(f"table {seen.table}")


def _look_at_files(settings: Settings, audit: Audit, clock: Clock, go_on: Callable[[str], None]) -> None:
    """Files that are not as the tables say. A change that is just being taken in, or a file that is just being written, is seen
    again a little later; what then still differs is wrong."""
    database, tree = Database(settings.database), WikiTree(settings.wiki)
    try:
        with database.snapshot() as reading:
            rows = projects.listed(reading, limit=limits.PROJECTS_LOOKED_AT_MAX)
        for project in map(Project.from_row, rows):
            go_on(f"project {audit.projects + 1} of {len(rows)}")
            audit.projects += 1
            wrong, count = _differing(database, tree, project, None)
            audit.files += count
            for pause in limits.AUDIT_PAUSES_SECONDS:
                if not wrong:
                    break
                clock.sleep(pause)
                go_on("files that differ, once more")
                wrong, _ = _differing(database, tree, project, wrong)
            for file, kind in sorted(wrong.items()):
                audit.found(kind, file)
    finally:
        database.close()


def _differing(
    database: Database, tree: WikiTree, project: Project, only: Iterable[str] | None
) -> tuple[dict[str, str], int]:
    """Files (relative to the wiki) that are missing or differ, and how many were looked at; of `only` those, if given."""
    with database.snapshot() as reading:
        expected = integrity.expected_files(reading, project.id)
        promised = wiki_files.promised_files(reading, project.id)
    directory = project_directory(project)
    files = {f"{directory}/{name}": sha256 for name, sha256 in expected.items()}
    looked_at = files.keys() if only is None else files.keys() & set(only)
    found: dict[str, str] = {}
    for file in looked_at - promised:
        read = tree.read(file, 0)
        if read is None:
            found[file] = "file_missing"
        elif read.sha256 != files[file]:
            found[file] = "file_differs"
    return found, len(looked_at)


def _look_at_history(settings: Settings, audit: Audit, clock: Clock, go_on: Callable[[str], None]) -> None:
    go_on("the wiki's history")
    git = Git(settings.wiki, settings.tmp_dir)
    audit.history = _history_of(git)
    if audit.history == "broken":
        # A commit that is just being made can look like a broken one.
        clock.sleep(limits.AUDIT_PAUSES_SECONDS[0])
        audit.history = _history_of(git)
    if audit.history == "broken":
        audit.history = "looked_at"
        audit.found("history", ".git")


def _history_of(git: Git) -> str:
    try:
        if not git.is_there():
            return "absent"
        git.run(
            "fsck", "--connectivity-only", "--no-dangling", "--no-progress", seconds=limits.GIT_REPAIR_SECONDS
        )
    except (GitBusy, GitMissing, GitRefused, GitStorage):
        return "busy"
    except GitFailed:
        return "broken"
    return "looked_at"


def _bounded(audit: Audit) -> dict[str, Any]:
    """The result, with as many findings as fit beside the counts."""
    result: dict[str, Any] = {
        "tables": audit.tables,
        "projects": audit.projects,
        "files": audit.files,
        "history": audit.history,
        "wrong": audit.wrong,
        "findings": [],
    }
    for finding in audit.findings:
        more = [*result["findings"], {"kind": finding.kind, "what": finding.what}]
        if len(as_json({**result, "findings": more}).encode()) > limits.JOB_RESULT_MAX_BYTES:
            break
        result["findings"] = more
    return result


register(
    JobKind(
        name="integrity_audit",
        queue="lint",
        input=Nothing,
        output=Audit,
        prepare=prepare,
        compute=compute,
        apply=apply,
        schedule="cron 30 3 * * *",
        on_data_host=True,
    )
)
