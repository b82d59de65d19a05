"""What must hold of files and table at every moment, also in the middle of things."""

from __future__ import annotations

import hashlib
import json

from tests.books import Books


def unexplained(books: Books) -> list[str]:
    """Pages whose file is neither that of their latest version nor explained by an outbox row, and files of no page."""
    latest = {
        f"{row['folder']}/{row['path']}": row["sha256"]
        for row in books.query(
            "SELECT p.path, v.sha256, coalesce(j.folder, w.name || '/' || j.name) AS folder FROM pages p"
            " JOIN page_versions v ON v.id = p.version_id JOIN projects j ON j.id = p.project_id"
            " JOIN workspaces w ON w.id = j.workspace_id WHERE p.tombstoned_at IS NULL"
        )
    }
    latest |= {
        f"{row['folder']}/{row['name']}": row["sha256"]
        for row in books.query(
            "SELECT r.name, r.sha256, coalesce(j.folder, w.name || '/' || j.name) AS folder FROM rendered_files r"
            " JOIN projects j ON j.id = r.project_id JOIN workspaces w ON w.id = j.workspace_id"
            " WHERE r.sha256 IS NOT NULL"
        )
    }
    rows = {row["file"]: row for row in books.query("SELECT * FROM file_outbox")}
    on_disk = {
        file: hashlib.sha256(content).digest()
        for file, content in books.files().items()
        if not file.rsplit("/", 1)[-1].startswith((".t-", ".x-"))
    }
    wrong: list[str] = []
    for file in latest.keys() | on_disk.keys():
        found, wanted = on_disk.get(file), latest.get(file)
        if found == wanted:
            continue
        row = rows.get(file)
        states = (
            {*json.loads(row["expected"]), row["sha256"].hex() if row["sha256"] else "absent"}
            if row
            else set()
        )
        if row is None or row["sha256"] != wanted or (found.hex() if found else "absent") not in states:
            wrong.append(file)
    return wrong
