"""For every test: no embedder unless it asks for one. The local one is installed here, and is on by default where it is."""

from __future__ import annotations

import os

# Also for the processes that tests start, most of which inherit this environment.
os.environ.setdefault("MEMORYD_MODELS__EMBED_PROVIDER", "none")
