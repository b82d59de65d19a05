"""docker-compose.yml: it is valid, and safe by what it says. `test_compose_running` runs it."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from memory_core import limits
from memory_core.config import Settings
from tests.stack import compose
from tests.stack.conftest import ROOT
from workers import broker

POOLS = ("compaction", "distillation", "lint", "forget", "embeddings")
OURS = ("writer", "web", "beat", "flower", *POOLS)


@pytest.fixture(scope="module")
def services() -> dict[str, dict[str, Any]]:
    return compose.read()["services"]


def test_the_file_is_valid_by_the_compose_specification() -> None:
    for file in ("docker-compose.yml", "ops/monitoring.yml"):
        argv = [
            sys.executable,
            "-m",
            "check_jsonschema",
            "--builtin-schema",
            "vendor.compose-spec",
            str(ROOT / file),
        ]
        checked = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
        assert checked.returncode == 0, checked.stdout


def test_it_has_every_service_and_one_image_of_ours(services: dict[str, Any]) -> None:
    assert set(services) == {"broker", "prometheus", *OURS}
    assert {service["image"] for name, service in services.items() if name in OURS} == {
        f"memoryd:{_version()}"
    }
    for name in OURS:
        assert services[name]["build"] == {"context": ".", "dockerfile": "ops/Dockerfile"}
        assert services[name]["entrypoint"] == ["python", "-P", "-m", "workers.supervisor"], name


def _version() -> str:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]


def test_every_container_gives_up_what_it_does_not_need(services: dict[str, Any]) -> None:
    for name, service in services.items():
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert "no-new-privileges:true" in service["security_opt"], name
        assert "privileged" not in service, name
        assert service["restart"] == "unless-stopped", name
        assert service["logging"]["options"]["max-size"], name
        # Prometheus runs as nobody by its image.
        user = "10002:10001" if name == "flower" else "10001:10001"
        assert service.get("user") in {user, "valkey"} or name == "prometheus", name


def test_no_container_may_make_processes_without_end(services: dict[str, Any]) -> None:
    assert {name: service.get("pids_limit") for name, service in services.items()} == dict.fromkeys(
        services, 512
    )
    assert [services[name].get("mem_limit") for name in ("beat", "flower")] == ["512m", "512m"]


def test_images_of_others_are_named_by_an_exact_version(services: dict[str, Any]) -> None:
    for name in ("broker", "prometheus"):
        assert re.fullmatch(r"[\w/]+:v?\d+\.\d+\.\d+(-alpine)?", services[name]["image"]), name


def test_the_gate_alone_is_published_and_on_loopback_by_default(services: dict[str, Any]) -> None:
    assert {name: service["ports"] for name, service in services.items() if "ports" in service} == {
        "web": ["127.0.0.1:49374:49374"]
    }
    elsewhere = compose.read(environ={"MEMORYD_BIND": "192.0.2.7", "MEMORYD_PUBLISHED_PORT": "80"})
    assert elsewhere["services"]["web"]["ports"] == ["192.0.2.7:80:49374"]


def test_the_broker_and_the_writer_have_no_way_out(services: dict[str, Any]) -> None:
    networks = compose.read()["networks"]
    assert networks["queue"]["internal"] is True
    assert services["broker"]["networks"] == services["writer"]["networks"] == ["queue"]


def test_no_secret_stands_in_the_file() -> None:
    text = (ROOT / "docker-compose.yml").read_text() + (ROOT / "ops" / "env.example").read_text()
    assert not re.search(r"mdt_|password\s*[:=]|secret\s*[:=]|api_key\s*[:=]\s*\S", text, re.I)


def test_keys_of_vendors_reach_the_workers_alone_and_settings_reach_all_of_ours(
    services: dict[str, Any],
) -> None:
    files = {
        name: [file["path"] for file in service.get("env_file", ())] for name, service in services.items()
    }
    assert {name for name, read in files.items() if "models.env" in read} == set(POOLS)
    assert {name for name, read in files.items() if "memoryd.env" in read} == set(OURS)
    assert not any(file["required"] for service in services.values() for file in service.get("env_file", ()))


def test_what_is_stopped_has_the_time_to_drain(services: dict[str, Any]) -> None:
    for name in OURS:
        assert compose.seconds(services[name]["stop_grace_period"]) > limits.DRAIN_TREE_SECONDS, name


def test_every_service_says_how_its_health_is_asked_and_waits_for_what_it_needs(
    services: dict[str, Any],
) -> None:
    for name, service in services.items():
        assert service["healthcheck"]["test"][0] == "CMD", name
        for need, how in service.get("depends_on", {}).items():
            assert how == {"condition": "service_healthy"}, (name, need)


def test_readers_of_the_database_may_write_beside_it(services: dict[str, Any]) -> None:
    on_data = [
        name for name, service in services.items() if any(v.startswith("data:") for v in service["volumes"])
    ]
    assert sorted(on_data) == ["forget", "lint", "web", "writer"]
    for name in on_data:
        assert "data:/data" in services[name]["volumes"], name


def test_each_service_is_handed_what_it_reads_and_nothing_else(services: dict[str, Any]) -> None:
    handed = {
        name: sorted(
            mount.removeprefix("handout-").split(":")[0]
            for mount in service["volumes"]
            if mount.startswith("handout")
        )
        for name, service in services.items()
    }
    on_data, off_data = ["common", "pool"], ["pool"]
    assert handed == {
        "broker": [],
        "writer": ["common", "flower", "metrics", "pool"],
        "web": ["metrics"],
        **dict.fromkeys(("lint", "forget"), on_data),
        **dict.fromkeys(("compaction", "distillation", "embeddings"), off_data),
        "beat": ["common"],
        "flower": ["common", "flower"],
        "prometheus": ["metrics"],
    }
    for name, service in services.items():
        for mount in service["volumes"]:
            if mount.startswith("handout"):
                kind = mount.removeprefix("handout-").split(":")[0]
                rights = "" if name == "writer" else ":ro"
                assert mount == f"handout-{kind}:/handout/{kind}{rights}", name


def test_the_brokers_file_keeps_what_the_embedded_broker_keeps() -> None:
    embedded = _settings_of(broker.configuration(Settings(data_dir=Path("/d")), broker.Endpoint(path="/s")))
    own = _settings_of((ROOT / "ops" / "valkey.conf").read_text())

    assert own.pop("maxmemory") == "256mb"
    assert int(embedded.pop("maxmemory")) == 256 * 1024 * 1024
    places = {"dir", "port", "bind", "protected-mode", "unixsocket", "unixsocketperm", "logfile"}
    looks = {"always-show-logo", "set-proc-title"}
    assert {k: v for k, v in own.items() if k not in places} == {
        k: v for k, v in embedded.items() if k not in places | looks
    }


def _settings_of(text: str) -> dict[str, str]:
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return {line.split(" ", 1)[0]: line.split(" ", 1)[1] for line in lines}


@pytest.mark.parametrize(
    ("text", "environ", "made"),
    [
        ("${A:-x}${A-y}", {"A": ""}, "x"),
        ("a-${A:-${B:-c}}/$B$$", {"B": "b"}, "a-b/b$"),
        ("${A:+set}${B:+set}", {"A": "1"}, "set"),
    ],
)
def test_variables_are_read_as_compose_reads_them(text: str, environ: dict[str, str], made: str) -> None:
    assert compose.interpolated(text, environ) == made


def test_the_image_copies_what_the_checkout_has_and_the_context_lets_in() -> None:
    lines = (ROOT / "ops" / "Dockerfile").read_text().splitlines()
    copied = [
        name
        for line in lines
        if line.startswith("COPY ") and "--from" not in line
        for name in line.split()[1:-1]
    ]
    let_in = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert set(copied) == let_in
    assert all((ROOT / name).exists() for name in copied)
    assert {"client", "memory_core", "web", "workers"} <= set(copied)
