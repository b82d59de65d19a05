"""A page written over MCP: from the request to the answer that it is committed and indexed."""

from __future__ import annotations

import random
import statistics
import time

from scripts.bench_parts import verify
from scripts.bench_parts.figures import Result, at_most, quantile
from scripts.bench_parts.parts import Bench, parts
from scripts.bench_parts.talk import Talk
from scripts.bench_parts.texts import Words

P50 = at_most(12)
PAGE_BYTES = 2_000
#: The writer puts a page's file in place after it has answered; a next write that is already there waits for that.
WRITES_PER_SECOND = 10
_PROJECT = "bench-writes"


class PageWriter:
    """Writes pages and remembers them."""

    def __init__(self, talk: Talk) -> None:
        self._talk = talk
        self._words, self._chance = Words(), random.Random(3)
        self.written: dict[str, str] = {}
        self.complaints: list[str] = []

    def times(self, count: int, writes_per_second: float = 0.0) -> list[float]:
        """Write so many pages, at that pace or one right after the other; milliseconds of each."""
        took: list[float] = []
        start = time.monotonic()
        for number in range(count):
            if writes_per_second:
                time.sleep(max(0.0, start + number / writes_per_second - time.monotonic()))
            took.append(self._write())
        return took

    def _write(self) -> float:
        number = len(self.written)
        path = f"notes/write-{number:05d}.md"
        body = f"# Write {number}\n\n{self._words.text(self._chance, PAGE_BYTES)}\n"
        self.written[path] = body
        began = time.monotonic()
        answer = self._talk.mcp_tool("memory_write_page", project=_PROJECT, path=path, body=body)
        took = (time.monotonic() - began) * 1000
        if answer.get("index_status") != "indexed":
            self.complaints.append(f"{path}: answered {answer}")
        return took


@parts.add("mcp")
def mcp(bench: Bench) -> Result:
    """`memory_write_page` through `POST /mcp`."""
    result = Result(part="mcp")
    with bench.stack() as stack:
        with Talk(stack) as talk:
            writer = PageWriter(talk)
            writer.times(3)
            paced = writer.times(bench.sizes.page_writes, WRITES_PER_SECOND)
            busy = writer.times(bench.sizes.page_writes // 3 + 1)
        stack.wait_quiet()
        result.complaints += writer.complaints + verify.pages(stack.data_dir, writer.written)
    result.verified.append(f"{len(writer.written):,} pages: in table, index and file as they were sent")
    result.add("memory_write_page over MCP p50", statistics.median(paced), "ms", P50)
    result.add("memory_write_page over MCP p99", quantile(paced, 0.99), "ms")
    result.add("one right after the other, p50", statistics.median(busy), "ms")
    return result
