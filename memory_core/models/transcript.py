"""Showing a transcript to a model, where there is one that may be asked and takes so much."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from memory_core.domain.excerpt import Excerpt
from memory_core.domain.transcript_window import output_tokens, source_max_bytes
from memory_core.models.errors import TooLong
from memory_core.models.metered import BudgetReached
from memory_core.models.port import LanguageModel, StructuredCompletion
from memory_core.models.prompt import Prompt, Stored
from memory_core.models.schema import Schema


def shown(excerpts: Sequence[Excerpt]) -> str:
    """One JSON object a line: no text can take another's voice."""
    return "\n".join(_line(excerpt) for excerpt in excerpts)


def room_bytes(model: LanguageModel) -> int:
    """How much of a transcript the model is shown at most."""
    return source_max_bytes(model.context_tokens, _output_tokens(model))


def ask(
    model: LanguageModel | None, prompt: Prompt, excerpts: Sequence[Excerpt], schema: Schema, **values: Any
) -> StructuredCompletion | None:
    """What the model makes of a transcript by `prompt`, which takes it as `transcript` beside `values`.

    None where a rule has to do: no model is configured, the budget is used up or closed, or the transcript is more than the model
    takes. Raises what `complete_structured` raises for anything else; while others hold the rest of the budget `BudgetReached`, since
    that passes.
    """
    if model is None or not excerpts:
        return None
    text = shown(excerpts)
    if len(text.encode()) > room_bytes(model):
        return None
    stored = Stored(text=text, source="transcript of a session")
    request = prompt.render(transcript=stored, **values).request(max_output_tokens=_output_tokens(model))
    try:
        return model.complete_structured(request, schema)
    except TooLong:
        return None
    except BudgetReached as error:
        if error.reason == "reserved":
            raise
        return None


def _output_tokens(model: LanguageModel) -> int:
    return output_tokens(model.context_tokens, model.max_output_tokens)


def _line(excerpt: Excerpt) -> str:
    fields: dict[str, Any] = {"n": excerpt.sequence, "voice": excerpt.voice.value}
    if excerpt.tool:
        fields["tool"] = excerpt.tool
    if excerpt.is_error:
        fields["failed"] = True
    if excerpt.paths:
        fields["files"] = excerpt.paths
    return json.dumps(fields | {"text": excerpt.text}, ensure_ascii=False, separators=(",", ":"))
