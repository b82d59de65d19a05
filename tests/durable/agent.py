"""A client that journals its turns over HTTP."""

from __future__ import annotations

from typing import Any

from memory_core.domain import audit_event, tool_steps
from memory_core.domain.agent_message import Message, Role, ToolCall, call_payload, payload, said
from memory_core.domain.audit_event import AuditEvent, ModelCompleted, ModelStarted, TurnCompleted, TurnFailed
from memory_core.domain.tool_steps import Round
from tests.durable.journals import asks, new_id, prompt, request
from tests.durable.working import HERE, Client


class Agent(Client):
    """A client that journals its turns. Every method gives the answer of one request."""

    turn = ""
    rounds = 0

    def step(self, route: str, body: dict[str, Any] | None = None, **headers: str) -> Any:
        return self.post(route, {"directory": self.directory, **(body or {})}, **headers)

    def begin(self, message: Message | None = None) -> Any:
        self.turn, self.rounds = new_id(), 0
        return self.step("active-turn", {"turn_id": self.turn, "input": payload(message or prompt())})

    def opening(self, *calls: ToolCall) -> list[dict[str, Any]]:
        told = Round(turn_id=self.turn, number=self.rounds + 1, usage={"input_tokens": 123_456})
        return [audit_event.payload(event) for event in tool_steps.opening(told, calls)]

    def plan(self, *calls: ToolCall, **overrides: Any) -> Any:
        body = {"turn_id": self.turn, "message": payload(asks(*calls)), "audit": self.opening(*calls)}
        return self.step("tool-batch", body | overrides)

    def audit(self, of: ToolCall, event: AuditEvent) -> Any:
        return self.step(f"tool-batch/calls/{of.id}/audit", {"event": audit_event.payload(event)})

    def ask(self, of: ToolCall, **overrides: Any) -> Any:
        place = {f"workspace_{name}": HERE[name] for name in ("host", "device", "inode")}
        return self.audit(of, request(of, **place | {"workspace_root": HERE["path"]} | overrides))

    def start(self, of: ToolCall, named: ToolCall | None = None, *, key: str = "") -> Any:
        """`named`: the call that is told instead of it; `key`: the request's own."""
        told = {"Idempotency-Key": key} if key else {}
        return self.step(f"tool-batch/calls/{of.id}/start", {"call": call_payload(named or of)}, **told)

    def complete(
        self, of: ToolCall, content: str = "3 passed", *, is_error: bool = False, **more: Any
    ) -> Any:
        output = {"content": content, "is_error": is_error}
        return self.step(f"tool-batch/calls/{of.id}/complete", {"output": output, **more})

    def checkpoint(self, **headers: str) -> Any:
        answer = self.step("checkpoint", {"turn_id": self.turn, "terminal": False}, **headers)
        self.rounds += answer.status_code == 200
        return answer

    def end(self, text: str = "All tests pass.") -> Any:
        number = self.rounds + 1
        audit: list[AuditEvent] = [
            ModelStarted(turn_id=self.turn, round=number),
            ModelCompleted(turn_id=self.turn, round=number, finish_reason="stop"),
            TurnCompleted(turn_id=self.turn, model_rounds=number),
        ]
        return self.finish(message=payload(said(Role.ASSISTANT, text)), audit=audit)

    def finish(self, audit: list[AuditEvent], **more: Any) -> Any:
        told = [audit_event.payload(event) for event in audit]
        return self.step("checkpoint", {"turn_id": self.turn, "terminal": True, "audit": told, **more})

    def fail(self, error: str) -> Any:
        return self.finish([TurnFailed(turn_id=self.turn, message=error)], failed=error)

    def recover(self, *, accept: bool = False, **headers: str) -> Any:
        return self.step("recover", {"accept_unknown_effects": accept}, **headers)

    def journal(self) -> dict[str, Any]:
        answer = self.house.get(f"{self.root}/journal")
        assert answer.status_code == 200, answer.get_json()
        return answer.get_json()

    def come_back(self) -> Agent:
        """Another process of the same program, after this one vanished; it has replayed."""
        self.house.connection.raw.execute("UPDATE durable_sessions SET lease_until = 1 WHERE lease_until > 1")
        other = Agent(self.house, self.id)
        assert other.claim().status_code == 200
        other.resume()
        return other

    def events(self) -> list[dict[str, Any]]:
        return self.house.get(f"{self.root}/events").get_json()


def ok(answer: Any) -> dict[str, Any]:
    assert answer.status_code == 200, answer.get_json()
    return answer.get_json()


def refused(answer: Any, code: str, status: int = 409) -> dict[str, Any]:
    told = answer.get_json()
    assert (answer.status_code, told["code"]) == (status, code), told
    return told
