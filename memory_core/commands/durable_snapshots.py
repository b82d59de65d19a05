"""With which configuration and authority a durable session works: said once, before its first event, and never changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

import msgspec

from memory_core import limits
from memory_core.commands import Answer, command
from memory_core.commands.durable_lease import held, refusing
from memory_core.domain.command import Refusal
from memory_core.domain.directory import DirectoryId
from memory_core.errors import Invalid, SnapshotMismatch
from memory_core.store import durable_sessions
from memory_core.store.transaction import Transaction

#: Of the authority: the path of the directory, which may change while device and inode stay.
PATH_FIELD: Final = "workspace_root"
#: What the database holds.
_SCHEMA_VERSION_MAX: Final = 2**63 - 1


@dataclass(frozen=True, kw_only=True)
class PutSnapshot:
    session: bytes
    lease_hash: bytes
    directory: DirectoryId
    schema_version: int
    config: Any
    authority: Any


@command(PutSnapshot, name="put_durable_snapshot")
@refusing
def put(body: PutSnapshot, tx: Transaction) -> Answer | Refusal:
    """Answer: `{"revision", "changed"}`. The same one again changes nothing; another one is `SnapshotMismatch`."""
    config, authority = _text("config", body.config), _text("authority", body.authority)
    if not 1 <= body.schema_version <= _SCHEMA_VERSION_MAX:
        raise Invalid(f"schema_version: a whole number from 1 to {_SCHEMA_VERSION_MAX}")
    session = held(tx, body.session, body.lease_hash, body.directory)
    stored = durable_sessions.snapshot(tx, session.id)
    if stored is None:
        if session.last_sequence:
            raise SnapshotMismatch(
                "this session has a history and no snapshot: only an empty session begins with one"
            )
        durable_sessions.add_snapshot(
            tx,
            session.id,
            revision=1,
            schema_version=body.schema_version,
            config_json=config,
            authority_json=authority,
        )
        return {"revision": 1, "changed": True}
    known = msgspec.json.decode(stored["authority_json"])
    if stored["schema_version"] != body.schema_version or not _is_same(
        msgspec.json.decode(stored["config_json"]), msgspec.json.decode(config)
    ):
        raise SnapshotMismatch
    told = msgspec.json.decode(authority)
    if _is_same(known, told):
        return {"revision": stored["revision"], "changed": False}
    if not (isinstance(known, dict) and isinstance(told, dict)) or not _is_same(
        _without_path(known), _without_path(told)
    ):
        raise SnapshotMismatch
    durable_sessions.set_authority(tx, session.id, stored["revision"], authority)
    return {"revision": stored["revision"], "changed": True}


def _without_path(authority: Any) -> Mapping[str, Any]:
    return {name: value for name, value in cast("dict[str, Any]", authority).items() if name != PATH_FIELD}


def _is_same(one: Any, other: Any) -> bool:
    """Whether two values are the same JSON: `1`, `1.0` and `true` are three."""
    return msgspec.json.encode(one, order="deterministic") == msgspec.json.encode(
        other, order="deterministic"
    )


def _text(name: str, value: Any) -> str:
    if not isinstance(value, dict):
        raise Invalid(f"{name}: a JSON object")
    text = msgspec.json.encode(value)
    if len(text) > limits.SNAPSHOT_PART_MAX_BYTES:
        raise Invalid(f"{name}: at most {limits.SNAPSHOT_PART_MAX_BYTES} bytes as JSON; this has {len(text)}")
    return text.decode()
