"""docker-compose.yml without Docker: its commands and variables, started as plain processes.

What a process needs differently from a container is changed, and nothing else: directories become
temporary ones, ports become free ones, and 0.0.0.0 becomes 127.0.0.1.
"""

import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.apache.java_process import java_command, run_java
from tests.ending import end
from tests.server_process import free_port
from tests.tidiness import CHECKOUT

COMPOSE: dict[str, Any] = yaml.safe_load((CHECKOUT / "docker-compose.yml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
DOCKERFILE = (CHECKOUT / "Dockerfile").read_text(encoding="utf-8")
READY_SECONDS_MAX = 60

Environment = Mapping[str, str]


def as_process(environment: Environment, directory: Path) -> tuple[dict[str, str], dict[str, int]]:
    """A service's variables outside a container, and the free port that stands for each port."""
    ports = {port: free_port() for port in ("9092", "9192", "9193")}
    changed = {}
    for name, value in environment.items():
        changed[name] = str(directory / "data") if name == "KAFKA_LOG_DIRS" else value
        changed[name] = changed[name].replace("0.0.0.0", "127.0.0.1")
        for port, free in ports.items():
            changed[name] = changed[name].replace(f":{port}", f":{free}")
    return changed, ports


@contextmanager
def running(command: list[str], environment: Environment, log: Path) -> Iterator[None]:
    """A process with exactly these variables, until the block ends."""
    with log.open("wb") as output:
        process = subprocess.Popen(command, env=dict(environment), stdout=output, stderr=output)
    try:
        yield
    finally:
        code = end(process, signal.SIGTERM, READY_SECONDS_MAX)
        assert code in (0, 143), log.read_text(errors="replace")


def wait_for_port(port: int, log: Path) -> None:
    """Wait until somebody listens."""
    deadline = time.monotonic() + READY_SECONDS_MAX
    while True:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        assert time.monotonic() < deadline, log.read_text(errors="replace")[-4000:]
        time.sleep(0.05)


def test_every_service_has_a_health_check_and_loopback_ports() -> None:
    assert set(SERVICES) == {"kraft-wire", "apache-kafka"}
    for service in SERVICES.values():
        assert service["healthcheck"]["test"][0] == "CMD"
        assert all(port.startswith("127.0.0.1:") for port in service["ports"])


def test_image_and_service_agree_on_variables_and_health_check() -> None:
    environment = SERVICES["kraft-wire"]["environment"]
    for name in ("KAFKA_LISTENERS", "KAFKA_ADVERTISED_LISTENERS", "KAFKA_LOG_DIRS"):
        assert f"{name}={environment[name]}" in DOCKERFILE
    health = ", ".join(f'"{word}"' for word in SERVICES["kraft-wire"]["healthcheck"]["test"][1:])
    assert f"CMD [{health}]" in DOCKERFILE
    assert 'ENTRYPOINT ["kraft-wire"]' in DOCKERFILE
    assert SERVICES["kraft-wire"]["command"] == ["server"]


def test_our_service_serves_and_its_health_check_passes(tmp_path: Path) -> None:
    service = SERVICES["kraft-wire"]
    environment, ports = as_process(service["environment"], tmp_path)
    program = str(Path(sys.executable).parent / "kraft-wire")
    log = tmp_path / "log"
    health = [word.replace(":9092", f":{ports['9092']}") for word in service["healthcheck"]["test"]]
    assert health[:2] == ["CMD", "kraft-wire"]
    with running([program, *service["command"]], environment, log):
        wait_for_port(ports["9092"], log)
        checked = subprocess.run([program, *health[2:]], capture_output=True, timeout=30)
        assert checked.returncode == 0, checked.stderr.decode()
    meta = (tmp_path / "data" / "meta.properties").read_text()
    assert f"cluster.id={environment['CLUSTER_ID']}" in meta
    refused = subprocess.run([program, *health[2:]], capture_output=True, timeout=30)
    assert refused.returncode != 0, "the health check passes without a server"


@pytest.mark.java
@pytest.mark.slow
def test_apache_service_serves_and_its_health_check_passes(tmp_path: Path) -> None:
    """The image turns KAFKA_A_B into a.b and formats before it starts; so does this test."""
    service = SERVICES["apache-kafka"]
    environment, ports = as_process(service["environment"], tmp_path)
    properties = {
        name.removeprefix("KAFKA_").lower().replace("_", "."): value
        for name, value in environment.items()
        if name.startswith("KAFKA_")
    }
    file = tmp_path / "server.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
    formatted = run_java(
        "kafka.tools.StorageTool", ["format", "-t", environment["CLUSTER_ID"], "-c", str(file)]
    )
    assert formatted.exit_code == 0, formatted.text
    log = tmp_path / "log"
    with running(java_command("kafka.Kafka", [str(file)]), {"PATH": "/usr/bin:/bin"}, log):
        wait_for_port(ports["9192"], log)
        test = service["healthcheck"]["test"]
        assert test[1].endswith("kafka-broker-api-versions.sh")
        arguments = [word.replace(":9192", f":{ports['9192']}") for word in test[2:]]
        checked = run_java("org.apache.kafka.tools.BrokerApiVersionsCommand", arguments)
        assert checked.exit_code == 0, checked.text


def test_compose_client_accepts_the_file() -> None:
    """Listed as not run where Docker or its compose plugin is missing."""
    docker = shutil.which("docker")
    if docker is None:
        pytest.skip("not run: docker is missing")
    probe = subprocess.run([docker, "compose", "version"], capture_output=True, timeout=30)
    if probe.returncode != 0:
        pytest.skip("not run: docker has no compose plugin")
    checked = subprocess.run(
        [docker, "compose", "config", "--quiet"], cwd=CHECKOUT, capture_output=True, timeout=60
    )
    assert checked.returncode == 0, checked.stderr.decode()
