"""The writer's process over a real broker: it drains by itself, stays alone, and ends in order."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest
from redis import Redis

from memory_core.config import Settings
from tests.stack.conftest import wait_until
from tests.writer.conftest import RunningWriter
from tests.writer.engines import envelope
from workers import exit_codes
from workers.broker import broker_url
from workers.celery_app import make_app, ring
from workers.queue.keys import Keys

pytestmark = pytest.mark.stack


@pytest.fixture
def writer(settings: Settings, start_broker, start_writer) -> RunningWriter:
    start_broker(settings)
    return start_writer()


def test_commands_are_applied_without_any_doorbell(writer):
    writer.append(*(envelope(str(n)) for n in range(20)))

    writer.drained()

    assert writer.notes() == [str(n) for n in range(20)]


def test_a_doorbell_runs_the_drain_task(writer, settings):
    install = writer.keys.install
    sender = make_app(settings, install)

    def rang() -> bool:
        ring(sender, install, "writer")
        return writer.metrics()["drain_tasks"] > 0

    writer.append(envelope("a"))
    wait_until(lambda: (settings.run_dir / "writer.metrics.json").exists())
    wait_until(rang)
    sender.close()

    assert writer.notes() == ["a"]


def test_who_waits_hears_of_the_commit(writer):
    with writer.client() as client, client.pubsub() as channel:
        channel.subscribe(writer.keys.replies)
        assert channel.get_message(timeout=60)["type"] == "subscribe"
        asked = envelope("a", wants_reply=True)
        writer.append(asked)

        heard = channel.get_message(timeout=60)

    assert asked.id in heard["data"]
    assert writer.notes() == ["a"]


def test_an_entry_that_nobody_can_read_becomes_a_dead_letter_and_holds_nothing_up(writer):
    with writer.client() as client:
        client.xadd(writer.keys.commands, {b"e": b"garbage"})
    writer.append(envelope("a"))

    writer.drained()

    assert writer.notes() == ["a"]
    assert [row["name"] for row in writer.rows("SELECT name FROM dead_letters")] == ["unreadable"]


def test_a_second_writer_is_refused_and_names_the_first(writer, start_writer):
    code, said = start_writer(lives=False).ended()

    assert code == exit_codes.NOT_ALONE
    assert f"process {writer.process.pid}" in said


def test_it_ends_in_order_and_leaves_no_wal(writer, settings):
    writer.append(envelope("a"))
    writer.drained()

    assert writer.stop() == 0

    wal = settings.database.with_name(settings.database.name + "-wal")
    assert not wal.exists() or wal.stat().st_size == 0
    assert writer.rows("PRAGMA integrity_check")[0][0] == "ok"


def test_a_broker_that_restarts_is_found_again(settings, start_broker, start_writer):
    first = start_broker(settings)
    writer = start_writer()
    writer.append(envelope("a"))
    writer.drained()

    first.kill()
    first.wait()
    start_broker(settings)
    writer.append(envelope("b"))

    writer.drained()
    assert writer.notes() == ["a", "b"]


def test_a_writer_whose_stream_another_one_owns_ends_and_deletes_nothing(writer):
    with writer.client() as client:
        client.set(writer.keys.owner, "99:somebody")
    writer.append(envelope("a"))

    code, _ = writer.ended()

    assert code == exit_codes.NOT_ALONE
    with writer.client() as client:
        assert client.get(writer.keys.owner) == b"99:somebody"
        assert client.xlen(writer.keys.commands) == 1


def test_a_copied_data_directory_touches_nothing_until_told_what_it_is(
    settings, start_broker, start_writer, tmp_path
):
    start_broker(settings)
    original = start_writer()
    install = original.keys.install
    original.append(envelope("a"))
    original.drained()
    copy = replace(settings, data_dir=tmp_path / "copy", broker_url=broker_url(settings))
    shutil.copytree(settings.data_dir, copy.data_dir, ignore=shutil.ignore_patterns("broker"))
    (copy.broker_dir).mkdir()

    code, said = start_writer(copy, lives=False).ended()
    assert code == exit_codes.REFUSED
    assert "--take-over" in said
    assert "--new-install" in said
    assert original.rows("SELECT epoch FROM install")[0][0] == 1
    with Redis.from_url(broker_url(settings)) as client:
        assert client.get(Keys(install).owner).startswith(b"1:")

    of_its_own = start_writer(replace(copy, new_install=True))
    assert of_its_own.keys.install != install
    original.append(envelope("b"))
    original.drained()
    assert original.notes() == ["a", "b"]
    assert of_its_own.notes() == ["a"]


def test_a_database_that_vanished_is_missed_and_not_made_anew(settings, start_broker, start_writer):
    start_broker(settings)
    start_writer().stop()
    for file in settings.database.parent.glob("memory.sqlite*"):
        file.unlink()

    code, said = start_writer(lives=False).ended()

    assert code == exit_codes.REFUSED
    assert "is gone" in said
    assert not settings.database.exists()


def test_the_owners_token_is_known_after_the_first_start(writer, settings):
    (token,) = writer.rows("SELECT public_id, principal, scope FROM tokens WHERE scope = 'admin'")

    assert settings.token_file.read_text().startswith(f"mdt_{token['public_id']}")
    assert (token["principal"], token["scope"]) == ("owner", "admin")
