"""A client whose tools run before the journal knows that they start."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

TARGET = "client.durable.batch"


def patch(module: Any) -> None:
    begin = module.ToolBatch._begin

    def hasty(self: Any, call: Any) -> None:
        tool, _ = self._checked(call)
        if tool is not None:
            done: Future[Any] = Future()
            done.set_result(tool.run(dict(call.given.arguments)))
            self._turn.calls.tool = lambda *_: done
        begin(self, call)

    module.ToolBatch._begin = hasty
