"""Mutants: small patches to product code that a test must notice. `MEMORYD_TEST_MUTANT` names one; see `sitecustomize.py` in `loader/`."""
