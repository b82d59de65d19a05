from __future__ import annotations

import hashlib
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core.domain import token
from memory_core.errors import Invalid


def test_a_minted_token_parses_to_its_id_and_digest() -> None:
    minted = token.mint()

    public_id, digest = token.parse(minted.text)

    assert public_id == minted.public_id
    assert token.digests_equal(digest, minted.digest)


def test_only_the_digest_of_the_secret_is_kept() -> None:
    source = random.Random(7)
    drawn: list[bytes] = []

    def draw(count: int) -> bytes:
        drawn.append(source.randbytes(count))
        return drawn[-1]

    minted = token.mint(draw)

    assert minted.digest == hashlib.sha256(drawn[-1]).digest()
    assert minted.text not in repr(minted)


def test_two_tokens_differ() -> None:
    assert token.mint().text != token.mint().text


@given(position=st.integers(0, 66), letter=st.sampled_from("abcXYZ019-_ é"))
def test_a_mistyped_token_is_refused_before_any_look_up(position: int, letter: str) -> None:
    text = token.mint().text
    changed = text[:position] + letter + text[position + 1 :]

    if changed == text:
        assert token.parse(changed)
    else:
        with pytest.raises(Invalid) as refused:
            token.parse(changed)
        assert text[13:40] not in str(refused.value)


@given(st.text())
def test_any_other_text_is_refused(text: str) -> None:
    with pytest.raises(Invalid):
        token.parse(text)
