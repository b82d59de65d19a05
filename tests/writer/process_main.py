"""The writer's process as it is, with one more command for tests. `MEMORYD_TEST_MUTANT` loads a mutant first,
`MEMORYD_TEST_DIES_AT` makes it die at a named step, `MEMORYD_TEST_LIMITS` (`NAME=seconds,…`) shortens what it waits for."""

from __future__ import annotations

import importlib
import os
import sys

from memory_core import commands, limits
from tests.writer.engines import NOTE
from workers.writer.__main__ import main

commands.registry.add(NOTE.name)(NOTE)
mutant = os.environ.get("MEMORYD_TEST_MUTANT")
if mutant:
    importlib.import_module(f"tests.writer.mutants.{mutant}").load()
for pair in filter(None, os.environ.get("MEMORYD_TEST_LIMITS", "").split(",")):
    name, _, seconds = pair.partition("=")
    assert hasattr(limits, name), name
    setattr(limits, name, float(seconds))
step = os.environ.get("MEMORYD_TEST_DIES_AT")
if step:
    importlib.import_module("tests.writer.dying").arm(step)
sys.exit(main())
