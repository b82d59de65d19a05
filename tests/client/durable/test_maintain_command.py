"""`memoryd maintain`, against the real gate."""

from __future__ import annotations

from tests.client.prompt import Prompt


def test_a_paused_queue_is_said_and_not_waited_for(person: Prompt):
    queue = next(s["queue"] for s in person.asks("schedule", "list") if s["kind"] == "maintenance")
    person.says("jobs", "pause", queue)

    person.says("maintain", code=1)

    assert f"memoryd jobs resume {queue}" in person.err
    (job,) = person.asks("jobs", "list", "--kind", "maintenance")["jobs"]
    assert job["state"] == "pending"
    person.says("jobs", "resume", queue)


def test_what_does_not_end_in_time_is_named_and_goes_on(person: Prompt):
    person.says("maintain", "--wait", "1", code=1)

    assert "memoryd jobs show" in person.err
    assert person.asks("jobs", "list", "--kind", "maintenance")["jobs"][0]["state"] == "pending"
