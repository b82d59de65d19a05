"""What is expected of the suite, scenario by scenario, and the table of it in the documentation.

`python -m tests.conformance.expected` writes the table anew.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "mcp.md"
_BEGIN, _END = "<!-- conformance: generated -->\n", "<!-- conformance: end -->\n"


def load() -> dict[str, Any]:
    """`{suite, because: {reason: sentence}, revisions: {revision: {scenario: {outcome, checks?, because?}}}}`."""
    return json.loads((HERE / "expected.json").read_text())


def outcome(checks: dict[str, str]) -> dict[str, Any]:
    """One scenario in the words of `expected.json`: what it came to, and the checks that did not pass."""
    for said, status in (("fails", "FAILURE"), ("warns", "WARNING")):
        if found := sorted(name for name, is_status in checks.items() if is_status == status):
            return {"outcome": said, "checks": found}
    return {"outcome": "passes" if "SUCCESS" in checks.values() else "does not apply"}


def table() -> str:
    """Rows of scenarios, columns of revisions, each that does not pass with its reason."""
    expected = load()
    revisions = expected["revisions"]
    scenarios = sorted({name for found in revisions.values() for name in found})
    lines = [
        f"| Scenario | {' | '.join(revisions)} | Why |",
        f"|---|{'---|' * len(revisions)}---|",
    ]
    for scenario in scenarios:
        entries = [found.get(scenario) for found in revisions.values()]
        reasons = {entry["because"] for entry in entries if entry and "because" in entry}
        cells = ["" if entry is None else entry["outcome"] for entry in entries]
        why = " ".join(expected["because"][reason] for reason in sorted(reasons))
        lines.append(f"| `{scenario}` | {' | '.join(cells)} | {why} |")
    return "\n".join(lines) + "\n"


def page_with_table(text: str) -> str:
    head, rest = text.split(_BEGIN)
    return f"{head}{_BEGIN}{table()}{_END}{rest.split(_END)[1]}"


if __name__ == "__main__":
    PAGE.write_text(page_with_table(PAGE.read_text()))
