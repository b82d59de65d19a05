"""Older bytes of a page found in its file: an edit of a person, or a write of ours that a power cut took back?

Files are synced before their row is cleared, but a disk may lie. After an unclean stop an older state of the page's
own chain counts as such a lost write, if every version since was written after the last commit that is synced: what
git holds was on disk long before. Anything else, an older `git checkout` above all, is an edit and becomes the newest
version.
"""

from __future__ import annotations

from memory_core.store import git_batches, pages
from memory_core.store.transaction import Reading

#: For `lost_before`: the last stop was in order, nothing was lost.
NOTHING_LOST = 0


def is_own_lost_write(reading: Reading, page_id: bytes, found: bytes | None, *, lost_before: int) -> bool:
    """Whether a file that holds `found` (its SHA-256) is to get its newest version again.

    `lost_before` is the newest row of `page_versions` when this writer started after an unclean stop, else `NOTHING_LOST`.
    """
    synced = git_batches.synced_version(reading)
    if lost_before == NOTHING_LOST or found is None or not synced:
        return False
    chain = pages.chain(reading, page_id)
    older = [place for place, (_, sha256) in enumerate(chain) if sha256 == found]
    if not older or older[-1] + 1 >= len(chain):
        return False
    latest, successor = chain[-1][0], chain[older[-1] + 1][0]
    return successor > synced and latest <= lost_before
