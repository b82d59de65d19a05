"""The writer does not look whether a command took effect before."""

from __future__ import annotations

from typing import Any

TARGET = "workers.writer.applying"


def patch(module: Any) -> None:
    record = module.command_ids.record

    def record_again(tx: Any, envelope: Any, status: str, result: str | None) -> None:
        module.command_ids.forget(tx, envelope.principal, envelope.id)
        record(tx, envelope, status, result)

    module.command_ids.record = record_again
    module.settled = lambda reading, envelope, now: None
