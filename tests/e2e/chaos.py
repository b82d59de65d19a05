"""The full sizes of the fault tests: `scripts/chaos`. Exit code 1 on any complaint."""

from __future__ import annotations

import json
import os
import platform
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import click

from tests.e2e.durable_soak import CONDITIONS, ENVIRON, Soak
from tests.e2e.kills import ROLES, Storm
from tests.e2e.running import MUTANT, ROOT, Running
from tests.e2e.test_mutants import CATCHES, SLOW_CATCHES, run_mutant
from tests.faults.preload import preloaded

CONTEXT = {"help_option_names": ["-h", "--help"], "show_default": True}


@click.command(context_settings=CONTEXT)
@click.option("--kills", default=40, help="Counted kills: those with a request in flight.")
@click.option(
    "--seed", type=int, help="Repeat the kills of an earlier run. By default a new one, which is printed."
)
@click.option(
    "--role", "roles", multiple=True, type=click.Choice(ROLES), help="Kill only these; may be repeated."
)
@click.option("--each", is_flag=True, help="One run of all kills per role instead of one run over all roles.")
@click.option(
    "--slow-ms", default=1, help="Milliseconds by which each write of the database's log is slowed down."
)
@click.option("--mutant", help="Run the kills against this mutant of tests/mutants; it should be caught.")
@click.option(
    "--mutants", is_flag=True, help="Run each mutant against the test that must catch it, instead of kills."
)
@click.option(
    "--wiki",
    is_flag=True,
    help="Instead: an editor and git beside page writes, and kills of the writer among them.",
)
@click.option(
    "--sessions",
    is_flag=True,
    help="Instead: two agents do 600 turns in durable sessions while their programs and memoryd's processes are killed.",
)
@click.option(
    "--log", type=click.Path(path_type=Path), help="With --mutants: keep what each test said in this folder."
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="One JSON object on standard output; progress goes to standard error.",
)
def main(
    kills: int,
    seed: int | None,
    roles: tuple[str, ...],
    each: bool,
    slow_ms: int,
    mutant: str | None,
    mutants: bool,
    wiki: bool,
    sessions: bool,
    log: Path | None,
    as_json: bool,
) -> None:
    """Kill memoryd's processes under load, and hold every promise against what is left.

    A load of 50 events and 4 page writes a second runs meanwhile. Everything lies in a temporary directory.
    """

    def say(text: str) -> None:
        click.echo(text, err=as_json)

    began = time.monotonic()
    if mutants:
        report = _mutants(say, log)
    elif wiki:
        report = _wiki(kills, random.randrange(1, 1 << 31) if seed is None else seed, say)
    elif sessions:
        report = _sessions(random.randrange(100_000) if seed is None else seed, say)
    else:
        if mutant:
            os.environ[MUTANT] = mutant
        chosen = [(role,) for role in roles or ROLES] if each else [roles or ROLES]
        seed = random.randrange(100_000) if seed is None else seed
        report = {"runs": [_storm(kills, seed, names, slow_ms, say) for names in chosen]}
        report["complaints"] = [said for run in report["runs"] for said in run["complaints"]]
    report |= {"seconds": round(time.monotonic() - began), "machine": _machine()}
    if as_json:
        click.echo(json.dumps(report))
    for said in report["complaints"]:
        say(f"COMPLAINT: {said}")
    say(f"{len(report['complaints'])} complaints in {report['seconds']} s")
    sys.exit(1 if report["complaints"] else 0)


def _storm(kills: int, seed: int, roles: tuple[str, ...], slow_ms: int, say: Any) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="chaos-") as folder:
        home = Path(folder)
        with Running(home, environ=preloaded(home / "faults", slow_ms=slow_ms)) as memoryd:
            storm = Storm(memoryd, seed, roles=tuple(roles), say=say)
            complaints = storm.run(kills)
        return {
            "seed": seed,
            "roles": roles,
            "kills": [str(kill) for kill in storm.kills],
            "uncounted": storm.uncounted,
            "events": len(storm.ledger.events),
            "pages": len(storm.ledger.pages),
            "answers": storm.ledger.statuses,
            "recovery_seconds_max": max((kill.recovery_seconds for kill in storm.kills), default=0.0),
            "complaints": complaints,
        }


def _sessions(seed: int, say: Any) -> dict[str, Any]:
    """The soak of durable sessions, at full size."""
    os.environ.update(ENVIRON)
    with tempfile.TemporaryDirectory(prefix="chaos-") as folder:
        home = Path(folder)
        with Running(home / "home", environ=ENVIRON, conditions=CONDITIONS) as memoryd:
            say(f"seed {seed}: two agents, 600 turns")
            soak = Soak(memoryd, home / "agents", seed, turns=300, seconds_max=1200, say=say)
            return {"seed": seed, "complaints": soak.run(), "kills": dict(soak.kills), "jobs": soak.jobs}


def _wiki(kills: int, seed: int, say: Any) -> dict[str, Any]:
    """The storm of `tests/writer/test_storm.py` with so many kills."""
    test = ROOT / "tests" / "writer" / "test_storm.py"
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-k",
            "no_edit_is_lost",
            "-rA",
            test,
        ],
        env={**os.environ, "STORM_KILLS": str(kills), "STORM_SEED": str(seed), "PYTHONPATH": str(ROOT)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    told = next((line for line in done.stdout.splitlines() if "in flight at the kills" in line), "")
    say(f"seed {seed}: {told}")
    wrong = [line for line in done.stdout.splitlines() if line.startswith("E  ")][:5]
    return {
        "seed": seed,
        "kills": kills,
        "told": told,
        "complaints": [] if done.returncode == 0 else wrong or [done.stdout[-500:]],
    }


def _mutants(say: Any, log: Path | None) -> dict[str, Any]:
    caught: dict[str, str] = {}
    complaints: list[str] = []
    for mutant, test, verdict in (*CATCHES, *SLOW_CATCHES):
        code, said = run_mutant(mutant, test)
        line = next((text for text in said.splitlines() if verdict in text and text.startswith("E ")), "")
        if log is not None:
            log.mkdir(parents=True, exist_ok=True)
            (log / f"{mutant}.log").write_text(said, encoding="utf-8")
        if code == 1 and line:
            caught[mutant] = line.removeprefix("E").strip()
            say(f"{mutant}: caught by {test}\n    {caught[mutant][:300]}")
        else:
            complaints.append(f"{mutant} was not caught by {test} (exit code {code})")
    return {"caught": caught, "complaints": complaints}


def _machine() -> str:
    return f"{os.cpu_count()} cores, {platform.system()} {platform.release()}, Python {platform.python_version()}"


if __name__ == "__main__":
    main()
