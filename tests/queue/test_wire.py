from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core.errors import Invalid
from tests.queue.conftest import make_envelope
from workers.queue.incoming import Incoming
from workers.queue.wire import FORMAT, BodyReference, pack, unpack


@given(
    body=st.binary(max_size=2_000),
    principal=st.text(max_size=40),
    is_foreign=st.booleans(),
    not_after=st.none() | st.integers(0, 2**62),
)
def test_an_envelope_comes_back_as_it_was(
    body: bytes, principal: str, is_foreign: bool, not_after: int | None
):
    envelope = make_envelope(body, principal=principal, is_foreign=is_foreign, not_after=not_after)

    assert unpack(pack(envelope)) == envelope


@given(st.binary(max_size=200))
def test_any_other_bytes_are_refused_by_name(raw: bytes):
    with pytest.raises(Invalid):
        unpack(raw)


def test_a_newer_format_is_refused_and_a_new_last_field_is_not():
    fields = msgspec.msgpack.decode(pack(make_envelope()))

    with pytest.raises(Invalid):
        unpack(msgspec.msgpack.encode([FORMAT + 1, *fields[1:]]))
    assert unpack(msgspec.msgpack.encode([*fields, "new"])).name == "record_observation"


@pytest.mark.parametrize("name", ["../token", "/etc/passwd", "", "a" * 32, "." * 49])
def test_an_entry_cannot_name_a_file_elsewhere(tmp_path, name: str):
    (tmp_path / "token").write_bytes(b"0123456789")
    incoming = Incoming(tmp_path / "incoming")
    incoming.put(b"1" * 16, b"body")

    with pytest.raises(Invalid):
        incoming.get(BodyReference(name=name, size=10))
    incoming.remove(name)
    assert (tmp_path / "token").exists()


def test_a_link_in_the_place_of_a_body_is_not_followed(tmp_path):
    incoming = Incoming(tmp_path)
    reference = incoming.put(b"1" * 16, b"body")
    secret = tmp_path / "token"
    secret.write_bytes(b"1234")
    (tmp_path / reference.name).unlink()
    (tmp_path / reference.name).symlink_to(secret)

    with pytest.raises(Exception, match="could not be read"):
        incoming.get(reference)
