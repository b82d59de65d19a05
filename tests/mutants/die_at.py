"""A pool worker that is killed, once, at the step that the file `DIE_AT` names: just after it, before anything else happens."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

TARGET = "workers.pool.claiming"


def _at(step: str) -> None:
    file = Path(os.environ["DIE_AT"])
    try:
        if file.read_text().strip() != step:
            return
        file.unlink()  # of two workers only one dies
    except FileNotFoundError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


def patch(module: Any) -> None:
    from workers.pool.running import PoolGate, Run

    claim, report, insist = module.claim, Run._report, PoolGate.insist

    def claimed(*args: Any, **more: Any) -> Any:
        found = claim(*args, **more)
        if found[0].job is not None:
            _at("claimed")
        return found

    def computed(self: Any, ending: Any) -> Any:
        _at("computed")
        return report(self, ending)

    def finished(self: Any, path: str, *args: Any, **more: Any) -> Any:
        answer = insist(self, path, *args, **more)
        if path == "/pool/finish":
            _at("finished")
        return answer

    module.claim, Run._report, PoolGate.insist = claimed, computed, finished
