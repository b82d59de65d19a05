"""The figures in `docs/performance.md`: written between two markers, so that the words around them stay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from scripts.bench_parts.figures import Result, shown
from scripts.bench_parts.machine import ROOT

PAGE = ROOT / "docs" / "performance.md"
BEGIN = "<!-- figures: written by scripts/bench --write-docs -->"
END = "<!-- end of figures -->"


def write(results: Sequence[Result], facts: Mapping[str, str], size: str, page: Path = PAGE) -> None:
    """Replace the block of figures; raises `ValueError` when the page has no markers."""
    text = page.read_text(encoding="utf-8")
    head, found, rest = text.partition(BEGIN)
    _, closed, tail = rest.partition(END)
    if not found or not closed:
        raise ValueError(f"{page} has no block of figures")
    page.write_text(f"{head}{BEGIN}\n\n{block(results, facts, size)}\n{END}{tail}", encoding="utf-8")


def block(results: Sequence[Result], facts: Mapping[str, str], size: str) -> str:
    """Markdown: where it was measured, one table of all figures, what was checked, what was wrong."""
    lines = [f"Sizes: {size}. Medians of the rounds of one run.", ""]
    lines += [f"- {name}: {value}" for name, value in facts.items()]
    lines += ["", "| part | what | value | target | verdict | rounds |", "|---|---|---:|---:|---|---|"]
    for result in results:
        for figure in result.figures:
            value = f"{shown(figure.value)} {figure.unit}".strip()
            rounds = " ".join(shown(one) for one in figure.rounds)
            cells = (result.part, figure.name, value, str(figure.target or ""), figure.verdict, rounds)
            lines.append("| " + " | ".join(cells) + " |")
    lines += ["", "Checked after the measuring:", ""]
    lines += [f"- {result.part}: {line}" for result in results for line in result.verified]
    lines += [f"- **{result.part}: {line}**" for result in results for line in result.complaints]
    for result in results:
        if result.appendix:
            lines += ["", result.appendix]
    return "\n".join(lines) + "\n"
