"""Events outside the closed set: a namespace, and a name of its own in it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from memory_core.domain.event import EventKind, HookEvent, changed
from memory_core.errors import Invalid
from memory_core.limits import EXTENSION_MAX_CHARS, SOURCE_EVENT_MAX_CHARS

_NAMESPACE = re.compile(rf"[A-Za-z0-9._:-]{{1,{EXTENSION_MAX_CHARS}}}")
_TITLES = ("title", "summary", "subject", "name")
_BODIES = ("body", "message", "text", "description", "summary", "details")


def extended(event: HookEvent, payload: Mapping[str, Any], query: Mapping[str, str]) -> HookEvent:
    """The event with its extension checked, and with its texts where its adapter does not know them.

    `Invalid` for a namespace of other characters than `A-Z a-z 0-9 . _ : -` or of more than 64, and for an
    event name of more than 128.
    """
    namespace = query.get("extension", "")
    if not namespace:
        return event
    if not _NAMESPACE.fullmatch(namespace):
        raise Invalid(f"extension: 1 to {EXTENSION_MAX_CHARS} characters of A-Z a-z 0-9 . _ : -")
    name = query.get("source_event") or event.source_event
    if len(name) > SOURCE_EVENT_MAX_CHARS:
        raise Invalid(f"source_event: at most {SOURCE_EVENT_MAX_CHARS} characters")
    event = changed(event, extension=namespace, source_event=name)
    if event.kind is not EventKind.OTHER or event.body:
        return event
    return changed(event, title=_first(payload, _TITLES) or event.title, body=_first(payload, _BODIES))


def _first(payload: Mapping[str, Any], names: tuple[str, ...]) -> str:
    return next(
        (value for name in names if isinstance(value := payload.get(name), str) and value.strip()), ""
    )
