"""Language models and embedders against servers on loopback that speak each vendor's wire format."""

import pytest

# What these find wrong should say what it was.
pytest.register_assert_rewrite("tests.models.fakes", "tests.models.server")
