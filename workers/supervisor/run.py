"""Make the data directory ready, then keep the tree up."""

from __future__ import annotations

import argparse
import json
import logging
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from memory_core import config
from memory_core.clock import Clock, SystemClock
from memory_core.config import Settings
from memory_core.errors import CoreError, Invalid, Unavailable
from workers import broker, data_dir, exit_codes, logs, settings_check
from workers.supervisor.child import Child
from workers.supervisor.lock import Roster, TreeLock, end_leftovers
from workers.supervisor.ports import require_free
from workers.supervisor.spec import ChildSpec
from workers.supervisor.table import some_of, table
from workers.supervisor.tree import Tree
from workers.supervisor.wake import Wake

logger = logging.getLogger(__name__)

_CHECK_SECONDS = 10
_SETTINGS_CHECK_SECONDS = 60

Rows = Callable[[Settings, broker.Endpoint | None, Clock], Sequence[ChildSpec]]


def main(arguments: Sequence[str], rows: Rows = table) -> int:
    """Run until stopped; the exit code as `exit_codes` lists them.

    `--json` announces in JSON. `--only NAME[,NAME…]` runs these rows of the table and leaves the others to other supervisors
    of the same data directory.
    """
    os.umask(0o077)
    # This process imports before `environment` reaches it.
    sys.dont_write_bytecode = True
    told = _parser().parse_args(arguments)
    only = tuple(name for names in told.only for name in names.split(",") if name)
    try:
        settings = config.load({"flower": True} if "flower" in only else None)
        return _run(settings, SystemClock(), rows, only, as_json=told.json)
    except CoreError as error:
        sys.stderr.write(f"memoryd: {error}\n")
        return exit_codes.code_of(error)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m workers.supervisor", description=main.__doc__)
    parser.add_argument("--json", action="store_true", help="announce readiness as one line of JSON")
    parser.add_argument(
        "--only", metavar="NAME[,NAME…]", action="append", default=[], help="run these rows only"
    )
    return parser


def _run(settings: Settings, clock: Clock, rows: Rows, only: Sequence[str], *, as_json: bool) -> int:
    is_embedded = not settings.broker_url and (not only or "broker" in only)
    endpoint = broker.choose(settings) if is_embedded else None
    specs = some_of(rows(settings, endpoint, clock), only)
    environ = data_dir.environment(settings, _absolute_path(os.environ))
    if settings_check.tables(settings):
        _asked("workers.settings_check", environ, _SETTINGS_CHECK_SECONDS)
    if not settings.marker_file.exists():
        # Nothing of ours can hold a port yet, and a first start that cannot be leaves nothing behind.
        _require_ports(specs, clock)
    _ready_directory(settings, specs)
    names = [spec.name for spec in specs]
    lock = TreeLock(settings.run_dir, names)
    logs.configure(settings, "-".join(("supervisor", *only)))
    roster = Roster(settings.run_dir, only)
    end_leftovers(roster.read(), settings.data_dir, clock)
    _require_ports(specs, clock)
    if endpoint is not None:
        broker.lay_out(settings, endpoint)
    elif settings.broker_url and any(spec.access == "owns" for spec in specs):
        _check_broker(environ)
    children = [
        Child(spec, clock=clock, run_dir=settings.run_dir, environ=environ, cwd=settings.tmp_dir)
        for spec in specs
    ]

    def write_roster(alive: Sequence[Child]) -> None:
        roster.write([(child.spec.name, child.pid) for child in alive if child.pid is not None])

    _say(f"starting {', '.join(only) + ' ' if only else ''}with {settings.data_dir}")
    tree = Tree(
        children,
        clock=clock,
        wake=Wake(),
        on_change=write_roster,
        on_ready=lambda: _announce(settings, names, is_whole=not only, as_json=as_json),
        on_stop=lambda: _say("stopping; what was accepted is kept (once more ends it at once)"),
    )
    code = tree.run()
    lock.release()
    return code


def _require_ports(specs: Sequence[ChildSpec], clock: Clock) -> None:
    for spec in specs:
        for host, port in spec.listens:
            require_free(host, port, clock, _say)


def _ready_directory(settings: Settings, specs: Sequence[ChildSpec]) -> None:
    bound = [spec.name for spec in specs if settings.state_dir and not spec.may_live_apart]
    if bound:
        raise Invalid(
            f"state_dir is for workers that open a data directory beside others; {bound[0]} works inside of it"
        )
    accesses = {spec.access for spec in specs}
    if "owns" in accesses:
        data_dir.prepare(settings)
    elif "opens" in accesses:
        data_dir.require(settings)
    else:
        data_dir.prepare_scratch(settings)


def _say(text: str) -> None:
    sys.stderr.write(f"memoryd: {text}\n")
    sys.stderr.flush()


def _announce(settings: Settings, names: Sequence[str], *, is_whole: bool, as_json: bool) -> None:
    """Tell on stdout that everything answers, and what to do next."""
    logger.info("ready", extra={"action": "tree_ready", "url": settings.url})
    flower = f"http://{settings.flower_host}:{settings.effective_flower_port}" if "flower" in names else ""
    if as_json:
        record = {
            "ready": True,
            "pid": os.getpid(),
            "processes": list(names),
            "data_dir": str(settings.data_dir),
            "url": settings.url,
            "probe_url": f"http://{settings.host}:{settings.effective_probe_port}",
            "token_file": str(settings.token_file),
            "flower_url": flower,
        }
        sys.stdout.write(json.dumps(record) + "\n")
    elif not is_whole:
        sys.stdout.write(f"memoryd: ready: {', '.join(names)}\n")
    else:
        page = f"  flower {flower} (user and password in {settings.flower_auth_file})\n" if flower else ""
        sys.stdout.write(
            f"memoryd is ready (stop it with Ctrl-C)\n"
            f"  data   {settings.data_dir}\n"
            f"  url    {settings.url}\n"
            f"  token  in {settings.token_file}\n"
            f"{page}"
            f"  next   in another terminal: {_reach(settings)}memoryd demo, then memoryd install-hooks claude-code --apply\n"
        )
    sys.stdout.flush()


def _reach(settings: Settings) -> str:
    """What another terminal must be told first: the client looks in the usual places by itself."""
    try:
        usual = Settings(data_dir=config.default_data_dir(os.environ))
    except Invalid:
        usual = Settings(data_dir=Path())  # no home: nothing is usual
    told = [
        f"{name}={shlex.quote(value)}"
        for name, value, default in (
            ("MEMORYD_URL", settings.url, usual.url),
            ("MEMORYD_TOKEN_FILE", str(settings.token_file), str(usual.token_file)),
        )
        if value != default
    ]
    return f"export {' '.join(told)}; " if told else ""


def _check_broker(environ: Mapping[str, str]) -> None:
    answer = _asked("workers.broker_check", environ, _CHECK_SECONDS)
    for promise in answer["promises_void"]:
        logger.warning("void with this broker: %s", promise, extra={"action": "promise_void"})


def _asked(module: str, environ: Mapping[str, str], seconds: float) -> dict[str, Any]:
    """What a check found, made in a process of its own: its libraries would stay in this one for ever.

    Raises what the check refuses, as `Invalid` or `Unavailable`.
    """
    argv = [sys.executable, "-P", "-m", module]
    try:
        run = subprocess.run(
            argv, env=dict(environ), capture_output=True, text=True, timeout=seconds, check=False
        )
        answer: dict[str, Any] = json.loads(run.stdout)
    except (subprocess.TimeoutExpired, ValueError) as error:
        raise Unavailable(f"the {module.rpartition('.')[2].replace('_', ' ')} could not be made") from error
    if "message" in answer:
        raise (Invalid if answer["code"] == "invalid" else Unavailable)(answer["message"])
    return answer


def _absolute_path(inherited: Mapping[str, str]) -> dict[str, str]:
    """The environment with a PYTHONPATH that holds also from another working directory."""
    made = dict(inherited)
    if made.get("PYTHONPATH"):
        parts = made["PYTHONPATH"].split(os.pathsep)
        made["PYTHONPATH"] = os.pathsep.join(os.path.abspath(part) for part in parts if part)  # noqa: PTH100 — text in, text out
    return made
