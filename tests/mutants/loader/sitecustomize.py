"""Loaded by every interpreter whose PYTHONPATH names this directory: patches the modules that mutants target.

`MEMORYD_TEST_MUTANT` names files of the folder above, separated by commas.

The product has no seam for this: the patch is applied from outside, right after the module was
executed, so that the very same unchanged test runs against a broken product.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import sys
from pathlib import Path
from typing import Any


def _load(name: str) -> Any:
    path = Path(__file__).resolve().parents[1] / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"mutant_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


class _Patching:
    """Finds only the targeted module, and patches it after its own loader is done."""

    def __init__(self, mutant: Any) -> None:
        self._mutant = mutant

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != self._mutant.TARGET:
            return None
        # Through the finders behind this one: another mutant may target the same module.
        behind = sys.meta_path[sys.meta_path.index(self) + 1 :]
        spec = next((s for f in behind if (s := f.find_spec(name, path, target)) is not None), None)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def executed(module: Any) -> None:
            execute(module)
            self._mutant.patch(module)

        spec.loader.exec_module = executed  # type: ignore[method-assign]
        return spec


for _name in filter(None, os.environ.get("MEMORYD_TEST_MUTANT", "").split(",")):
    sys.meta_path.insert(0, _Patching(_load(_name)))
