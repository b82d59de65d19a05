"""`python -m workers.local_models list|add|verify|remove …`: what `memoryd models` does, beside the data directory.

It needs no running server: files and their lock are the truth, and the database is asked read-only who refers to a model. One JSON
object goes to standard output; with exit code 1 it is an error, `{"error": code, "message"}`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from memory_core import config, limits
from memory_core.config import Settings
from memory_core.errors import CoreError, Corrupt, Invalid
from memory_core.models import local_files
from memory_core.models.local_files import BUILT_IN, MODEL_FILE, TOKENIZER_FILE, VOCABULARY_FILE, LocalModel
from memory_core.models.settings import LOCAL, read_settings
from memory_core.store import model_references
from memory_core.store.database import Database
from memory_core.store.schema import check_schema


def listed(settings: Settings) -> dict[str, Any]:
    return {
        "directory": str(settings.models),
        "models": [
            {**_shape(model), "in_use": _in_use(settings, model)}
            for model in local_files.listed(settings.models)
        ],
    }


def add(settings: Settings, name: str, model: str, tokenizer: str, max_tokens: int) -> dict[str, Any]:
    """Raises `Invalid` for what is no model."""
    if not local_files.can_run():
        raise Invalid("what runs local models is not installed; install it: pip install 'memoryd[local]'")
    kind = VOCABULARY_FILE if tokenizer.endswith(".txt") else TOKENIZER_FILE
    files = {MODEL_FILE: Path(model), kind: Path(tokenizer)}
    return _shape(local_files.add(settings.models, name, files, max_tokens=max_tokens, measure=_measured))


def verify(settings: Settings, name: str | None) -> dict[str, Any]:
    """Raises `Corrupt` where one is damaged."""
    models = (
        local_files.listed(settings.models) if name is None else [local_files.find(settings.models, name)]
    )
    found = [{**_shape(model), "faults": local_files.faults(model)} for model in models]
    if damaged := [one for one in found if one["faults"]]:
        raise Corrupt("; ".join(f"{one['name']}: {fault}" for one in damaged for fault in one["faults"]))
    return {"models": found}


def remove(settings: Settings, name: str) -> dict[str, Any]:
    """Raises `Conflict` where something refers to it, `Unavailable` where nobody can say."""
    return _shape(local_files.remove(settings.models, name, lambda model: references(settings, model)))


def references(settings: Settings, model: LocalModel) -> list[str]:
    """Who refers to it, by the configuration and by the database; a database that was never made has nobody.

    Raises a `CoreError` where one of the two cannot be read.
    """
    said: list[str] = []
    read = read_settings(settings)
    if read.embed_provider == LOCAL and (read.embed_model or BUILT_IN.name) == model.name:
        said.append("it is configured as embed_model under [models]")
    if settings.database.exists():
        database = Database(settings.database)
        try:
            with database.snapshot() as reading:
                check_schema(reading)
                said += model_references.of(reading, model.name, model.identity)
        finally:
            database.close()
    return said


def _in_use(settings: Settings, model: LocalModel) -> list[str]:
    try:
        return references(settings, model)
    except CoreError as error:
        return [f"unknown: {error}"]


def _measured(model: LocalModel) -> int:
    # Hundreds of MB and a second: only here.
    from memory_core.models.local_runner import LocalRunner

    try:
        length = len(LocalRunner(model).vector("How long is a vector of this model?"))
    except CoreError:
        raise
    except Exception as error:  # whatever the libraries raise for a file that is no model
        raise Invalid(
            f"these files are no sentence model that can be run ({type(error).__name__}: {str(error)[:200]})"
        ) from error
    if not 1 <= length <= limits.EMBED_DIMENSIONS_MAX:
        raise Invalid(f"its vectors have {length} dimensions; 1 to {limits.EMBED_DIMENSIONS_MAX} can be kept")
    return length


def _shape(model: LocalModel) -> dict[str, Any]:
    return {
        "name": model.name,
        "revision": model.manifest.revision,
        "dimensions": model.manifest.dimensions,
        "max_tokens": model.manifest.max_tokens,
        "bytes": sum(file.bytes for file in model.manifest.files.values()),
        "built_in": model.is_built_in,
    }


def main(arguments: list[str]) -> int:
    asked: dict[str, Any] = json.loads(arguments[1]) if len(arguments) > 1 else {}
    what = {"list": listed, "add": add, "verify": verify, "remove": remove}[arguments[0]]
    try:
        answer, code = what(config.load(), **asked), 0
    except CoreError as error:
        answer, code = {"error": error.code, "message": str(error)}, 1
    sys.stdout.write(json.dumps(answer))
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
