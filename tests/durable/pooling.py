"""A worker of the pool as its requests, for races with whoever works on a session."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import Any

import msgspec

from memory_core import job_kind
from memory_core.domain.job import Failure
from tests.jobs.compacting import Tools
from tests.web.house import House


@dataclass
class PoolWorker:
    """One slot; every method is one request, and gives its answer."""

    house: House
    queue: str = "compaction"
    name: str = "worker-1"
    lease: str = field(default="", repr=False)
    job: str = ""
    #: As it would finish: what was computed from the input that the claim gave.
    output: Any = None
    digest: str = ""

    def __post_init__(self) -> None:
        self._token = {"Authorization": f"Bearer {self.house.add_token('pool')}"}

    def ask(self, route: str, **body: Any) -> Any:
        return self.house.post(f"/pool/{route}", {"lease": self.lease, **body}, **self._token)

    def take(self) -> bool:
        """Claim and compute; whether there was something to do."""
        self.lease = secrets.token_urlsafe(32)
        answer = self.ask("claim", queues=[self.queue], worker=self.name, on_data_host=True)
        assert answer.status_code == 200, answer.get_json()
        given = answer.get_json()
        if given["job"] is None:
            return False
        kind = job_kind.kinds.get(given["job"]["kind"])
        self.job, self.digest = given["job"]["id"], given["input_digest"]
        # The stream keeps numbers and texts as they are, so the value read again is the input.
        source = kind.read_input(msgspec.json.encode(given["input"]))
        self.output = msgspec.to_builtins(kind.compute(source, Tools()))  # type: ignore[arg-type]
        return True

    def finish(self) -> Any:
        return self.ask("finish", job=self.job, input_digest=self.digest, output=self.output)

    def renew(self) -> Any:
        return self.ask("renew", job=self.job)

    def fail(self) -> Any:
        return self.ask("fail", job=self.job, error=Failure.PROVIDER.value)
