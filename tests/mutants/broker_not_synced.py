"""The embedded broker answers before what it appended is on the disk."""

from __future__ import annotations

from typing import Any

TARGET = "workers.broker"


def patch(module: Any) -> None:
    configuration = module.configuration

    def unsynced(settings: Any, endpoint: Any) -> str:
        text = configuration(settings, endpoint)
        assert "appendfsync always" in text
        return text.replace("appendfsync always", "appendfsync no")

    module.configuration = unsynced
