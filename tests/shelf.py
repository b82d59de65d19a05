"""Pages of an invented project, as somebody would find them after some weeks: for pictures and for tests of the browser's side."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

PROJECT = {"workspace": "default", "project": "lighthouse"}
PAGES: dict[str, str] = {
    "decisions/rounding.md": """---
tags: [billing, money]
---
# Round half to even

Every amount is a whole number of **minor units**; a fraction appears only where tax is worked out, and is rounded
there, once, half to even. See [[concepts/money]] and the [test plan](../notes/test-plan.md).

## Why

> The monthly report was off by three cents after 1,204 invoices. Rounding half *up* adds the same way every time.

| Method | Error over 1,204 invoices |
|---|---|
| half up | +3.02 |
| half to even | +0.01 |

```python
def tax(net: int, rate: Decimal) -> int:
    return int((net * rate).quantize(Decimal(1), ROUND_HALF_EVEN))
```

## What follows

1. No `float` in `billing/`; the linter refuses it.
2. The report adds what was rounded, never what was not.
3. Old invoices stay as they are: [[decisions/old-invoices]].
""",
    "concepts/money.md": "# Money\n\nAn amount and its currency; two currencies never meet in one sum. Rounding: [[decisions/rounding]].\n",
    "notes/test-plan.md": "# Test plan for invoices\n\nEach rounding rule has a table of cases; see [[decisions/rounding|rounding]].\n",
    "gotchas/time-zones.md": "# An invoice belongs to the day of its customer\n\nNot to the server's: [[concepts/money]].\n",
    "procedures/release.md": "# Release\n\nTag, build, read the changelog aloud, then push.\n",
    "_rules/style.md": "# Names say the unit\n\n`amount_minor`, `timeout_seconds`.\n",
}


def fill(tool: Callable[..., Any]) -> None:
    """Write them all; `tool(name, **arguments)` calls a tool."""
    for path, body in PAGES.items():
        tool("memory_write_page", path=path, body=body, **PROJECT)
    tool(
        "memory_handoff_begin",
        summary="Rounding is done and tested; the monthly report still adds unrounded amounts.",
        next_steps=["Make the report add rounded amounts", "Run the report for October again"],
        open_questions=["Do credit notes round the same way?"],
        files_touched=["billing/report.py", "billing/tax.py"],
        **PROJECT,
    )
