from __future__ import annotations

import pytest

from memory_core.redaction.server import Redactor


@pytest.fixture(scope="session")
def gate(tmp_path_factory: pytest.TempPathFactory) -> Redactor:
    """The gate's redactor; building it takes seconds while its rule cache is cold."""
    return Redactor(bytes(range(32)), tmp_path_factory.mktemp("rules"))
