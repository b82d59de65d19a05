"""The admission script looks at its marks, says "too much", and has appended all the same."""

from __future__ import annotations

from typing import Any

TARGET = "workers.queue.admission"


def patch(module: Any) -> None:
    source = module._APPEND.source.removeprefix("#!lua\n")
    kept = source.replace(
        "return {0, 'age', 0}",
        "for i = 5, #ARGV, 2 do redis.call('XADD', KEYS[1], '*', 'e', ARGV[i + 1]) end return {0, 'age', 0}",
    )
    assert kept != source
    module._APPEND = type(module._APPEND)(kept)
