"""Every limit of the system, a module for each side of it, all of them here by name: `limits.PROMPT_MAX_BYTES`.

Units are in the names; the reference page is `docs/limits.md`. A new module needs its line below.
"""

from __future__ import annotations

from memory_core.limits.sizes import *  # isort: skip
from memory_core.limits.budget import *
from memory_core.limits.capture import *
from memory_core.limits.client import *
from memory_core.limits.compaction import *
from memory_core.limits.durable import *
from memory_core.limits.jobs import *
from memory_core.limits.knowledge import *
from memory_core.limits.models import *
from memory_core.limits.pool import *
from memory_core.limits.recall import *
from memory_core.limits.serving import *
from memory_core.limits.vectors import *
from memory_core.limits.wiki import *
from memory_core.limits.writing import *
