"""Names of what an editor is still writing, or keeps beside a file that it has open: the one list of them.

A name is looked at with and without the suffix of a page: `x.md~` is no page, nor does it become `x.md~.md`.
"""

from __future__ import annotations

import re

_SUFFIX = ".md"
_FAMILIES = (
    r"~.+",  # Microsoft Office, Word, Syncthing and others: who has a document open, what is being saved or is on its way
    r".+\.tmp",  # many: what is written before it is renamed
    # git mergetool: the sides of a conflict. In capitals only: `knowledge_base_2.md` is a page.
    r"(?-i:.+[_.](?:BACKUP|BASE|LOCAL|REMOTE)[_.]\d+(?:\..+)?)",
    r"\.~lock\..*#",  # LibreOffice: who has a document open
    r"#.*#",  # Emacs: what is not saved yet
    r"\.#.*",  # Emacs, mcedit: who has a file open
    r".+\.\w+~",  # Emacs, vim, gedit, kate: the text before the last save
    r".+\.~\d+~",  # Emacs: numbered ones
    r"\..*\.(?:sw[a-z]|kate-swp)",  # vim, nano, kate: what is not saved yet
    r".+\.sb-[0-9a-f]{8}-\w{6}",  # macOS: a folder in which a save is prepared
    r".+___jb_(?:tmp|old)___",  # JetBrains
)
_DRAFT = re.compile("|".join(f"(?:{family})" for family in _FAMILIES), re.IGNORECASE)


def is_draft(name: str) -> bool:
    """Whether a file or folder name is one that an editor gives to a draft, a lock or a backup."""
    bare = name[: -len(_SUFFIX)] if name.casefold().endswith(_SUFFIX) else name
    return any(_DRAFT.fullmatch(each) for each in (name, bare))
