"""The real supervisor and the real broker over small children.

In the environment MODES is `name=mode,…`, and REAL names rows of the product's own table that are taken as they are.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from memory_core.clock import Clock
from memory_core.config import Settings
from workers import broker
from workers.supervisor.run import main
from workers.supervisor.spec import ChildSpec, by_heartbeat
from workers.supervisor.table import table


def tiny(settings: Settings, endpoint: broker.Endpoint | None, clock: Clock) -> Sequence[ChildSpec]:
    modes = dict(pair.split("=") for pair in os.environ.get("MODES", "").split(",") if pair)
    real = {"broker", *os.environ.get("REAL", "").split(",")}
    made = [row for row in table(settings, endpoint, clock) if row.name in real]
    listens = ((settings.host, settings.port), (settings.host, settings.effective_probe_port))
    for name, needs, rank in (("writer", ("broker",), 2), ("web", ("writer",), 0), ("beat", ("writer",), 1)):
        if name in real:
            continue
        made.append(
            ChildSpec(
                name=name,
                argv=("-m", "tests.stack.tiny_child", name, modes.get(name, "")),
                probe=by_heartbeat(settings.run_dir, name),
                is_optional=name in os.environ.get("OPTIONAL", "").split(","),
                listens=listens if name == "web" else (),
                depends_on=needs,
                hang_seconds=1.0,
                stop_rank=rank,
                stop_seconds=float(os.environ.get("STOP_SECONDS", "1")),
            )
        )
    return made


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], tiny))
