"""Recorded hook payloads of agent clients (all data invented), and how tests load them."""

from __future__ import annotations

import json
import secrets
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
#: A result of about 160 KB.
HUGE = "\n".join(f"{n},EUR,{n / 100_000:.5f},naïve-Ω" for n in range(6_000))


def sample(client: str, name: str, *, secret: str | None = None) -> dict[str, Any]:
    """One payload; `@SECRET@` in it is replaced by `secret`, or by one made now."""
    text = (HERE / client / f"{name}.json").read_text(encoding="utf-8")
    text = text.replace("@SECRET@", secret or stripe_key())
    return json.loads(text.replace("@HUGE@", HUGE.replace("\n", "\\n")))


def names(client: str) -> list[str]:
    return sorted(path.name.removesuffix(".json") for path in (HERE / client).glob("*.json"))


def malformed(name: str) -> bytes:
    return (HERE / "malformed" / f"{name}.json").read_bytes()


def stripe_key() -> str:
    """A secret in a shape that redaction must know; made here, so that none stands in the repository."""
    return "_".join(("sk", "live", secrets.token_hex(16)))
