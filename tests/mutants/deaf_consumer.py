"""The consumer of a pool worker listens to a queue that nobody rings, as one does that lost its subscription in a restart."""

from __future__ import annotations

from typing import Any

TARGET = "workers.pool.worker"


def patch(module: Any) -> None:
    made = module.worker_of

    def deaf(app: Any, install: str, queues: tuple[str, ...], **more: Any) -> Any:
        return made(app, install, tuple(f"not-{queue}" for queue in queues), **more)

    module.worker_of = deaf
