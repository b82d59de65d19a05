"""Assets over HTTP, through the real gate and the real engine."""

from __future__ import annotations

import hashlib
import secrets
from typing import Any

import pytest

from memory_core import limits
from tests.durable.working import Client, message
from tests.web.house import House

PICTURE = b"\x89PNG\r\n" + bytes(range(256))


def upload(house: House, data: bytes, kind: str = "image") -> Any:
    return house.client().post(f"/api/v1/assets?kind={kind}", data=data, headers=house.bearer)


def shown(client: Client, asset: dict[str, Any], **change: Any) -> dict[str, Any]:
    """An event that says something and shows an asset."""
    return {"kind": "user_message", "payload": message("look"), "assets": [{**asset, **change}]}


def with_picture(house: House) -> tuple[Client, dict[str, Any]]:
    asset = upload(house, PICTURE).get_json()
    client = Client(house)
    client.claim()
    assert client.append(shown(client, asset)).status_code == 200
    (link,) = house.get(f"{client.root}/assets").get_json()
    return client, link


def test_atomic_turn_can_reference_content_addressed_asset(house: House):
    answer = upload(house, PICTURE)
    assert answer.status_code == 201
    asset = answer.get_json()
    assert asset == {"sha256": hashlib.sha256(PICTURE).hexdigest(), "bytes": len(PICTURE), "kind": "image"}

    client = Client(house)
    client.claim()
    assert client.append(shown(client, asset)).status_code == 200

    (link,) = house.get(f"{client.root}/assets").get_json()
    got = house.get(f"{client.root}/events/{link['event_id']}/assets/0")
    assert (got.status_code, got.get_data()) == (200, PICTURE)
    assert got.headers["Content-Disposition"].startswith("attachment")


def test_event_asset_reads_require_exact_link_kind_and_ordinal(house: House):
    client, link = with_picture(house)
    other = Client(house)
    route = f"events/{link['event_id']}/assets"

    assert house.get(f"{client.root}/{route}/0?kind=image").status_code == 200
    for path in (
        f"{client.root}/{route}/1",
        f"{client.root}/{route}/0?kind=audio",
        f"{other.root}/{route}/0",
        f"{client.root}/events/{client.id}/assets/0",
    ):
        assert house.get(path).status_code == 404, path


def test_a_turn_that_names_an_unknown_asset_or_another_size_is_refused_whole(house: House):
    asset = upload(house, PICTURE).get_json()
    client = Client(house)
    client.claim()

    for change in ({"sha256": "0" * 64}, {"bytes": 1}, {"kind": "smell"}):
        assert client.append(shown(client, asset, **change)).status_code == 400, change

    assert house.rows("SELECT count(*) AS n FROM session_events") == [{"n": 0}]


def test_the_same_bytes_are_one_row_whatever_they_are_called(house: House):
    first, second = upload(house, PICTURE).get_json(), upload(house, PICTURE, "other").get_json()

    assert first["sha256"] == second["sha256"]
    assert house.rows("SELECT count(*) AS n FROM assets") == [{"n": 1}]


def test_a_damaged_file_is_an_error_and_not_half_an_answer(house: House):
    client, link = with_picture(house)
    (house.settings.assets / link["sha256"]).write_bytes(b"x" * len(PICTURE))

    answer = house.get(f"{client.root}/events/{link['event_id']}/assets/0")

    assert answer.get_json()["code"] == "corrupt"
    assert upload(house, PICTURE).status_code == answer.status_code


def test_a_text_is_redacted_before_it_has_a_digest(house: House):
    secret = secrets.token_hex(20)
    text = f"export API_TOKEN={secret}\n".encode()

    answer = upload(house, text, "other").get_json()

    assert answer["sha256"] != hashlib.sha256(text).hexdigest()
    kept = (house.settings.assets / answer["sha256"]).read_bytes()
    assert secret.encode() not in kept
    assert b"[REDACTED:" in kept


def test_a_text_that_is_too_long_to_be_looked_through_is_refused_and_media_are_not(house: House):
    long = b"word " * (limits.ASSET_TEXT_MAX_BYTES // 4)

    assert upload(house, long, "other").status_code == 400
    assert upload(house, long + b"\xff", "other").status_code == 201
    assert [p.name for p in house.settings.assets.glob(".asset-*")] == []


@pytest.mark.parametrize("query", ["", "?kind=", "?kind=smell"])
def test_a_kind_that_nobody_knows_is_refused(house: House, query: str):
    answer = house.client().post(f"/api/v1/assets{query}", data=PICTURE, headers=house.bearer)

    assert answer.status_code == 400
    assert "image" in answer.get_json()["error"]


def test_more_than_the_limit_is_refused_before_it_is_read(house: House):
    answer = house.client().post(
        "/api/v1/assets?kind=video",
        data=b"",
        headers=house.bearer,
        environ_overrides={"CONTENT_LENGTH": str(limits.ASSET_MAX_BYTES + 1)},
    )

    assert answer.status_code == 413


def test_an_asset_wants_a_token_that_may_write(house: House):
    reader = house.add_token("read")

    answer = house.client().post(
        "/api/v1/assets?kind=image", data=PICTURE, headers={"Authorization": f"Bearer {reader}"}
    )

    assert answer.status_code == 403
    assert list(house.settings.assets.iterdir()) == []
