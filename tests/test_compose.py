"""docker-compose.yml without Docker: its commands and variables, started as plain processes.

What a process needs differently from a container is changed, and nothing else: directories become
temporary ones, and each name and port, inside and published, a free port of 127.0.0.1.
"""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from confluent_kafka import Consumer, Producer, TopicPartition

from kraft_wire.cli.server.host_name import host_name
from tests.apache.java_process import java_command, run_java
from tests.ports import free_port
from tests.process import KRAFT_WIRE, Process, accepts
from tests.tidiness import CHECKOUT
from tests.waiting import HANG_S, until

COMPOSE: dict[str, Any] = yaml.safe_load((CHECKOUT / "docker-compose.yml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
DOCKERFILE = (CHECKOUT / "Dockerfile").read_text(encoding="utf-8")
IMAGE = dict(re.findall(r"(KAFKA_\w+)=(\S+)", DOCKERFILE))
METRICS_PORT = IMAGE["KAFKA_METRICS_PORT"]
"""For a hang, not for a machine that does other things too."""
CONTROLLERS = ["controller-1", "controller-2", "controller-3"]
OUR_BROKERS = ["broker-4", "broker-5"]
APACHE_BROKER = "apache-broker-6"
PUBLISHED = {
    published.split(":")[1]: (name, published.split(":")[2])
    for name, service in SERVICES.items()
    for published in service.get("ports", ())
}
"""The service and port that a port of the machine leads to."""

Environment = Mapping[str, str]


@cache
def place(service: str, port: str) -> str:
    """What stands for a port of a service."""
    return f"127.0.0.1:{free_port()}"


def translated(service: str, text: str) -> str:
    """Every address in a text, as a container sees it, as this machine does."""

    def one(found: re.Match[str]) -> str:
        host, port = found.groups()
        if host == "0.0.0.0":
            return place(service, port)
        return place(host, port) if host in SERVICES else place(*PUBLISHED[port])

    return re.sub(r"([\w.-]+):(\d+)", one, text)


def as_process(service: str, directory: Path) -> dict[str, str]:
    """A service's variables outside a container."""
    environment = {"KAFKA_LOG_DIRS": "", **SERVICES[service]["environment"]}
    if service != APACHE_BROKER:
        environment["KAFKA_METRICS_PORT"] = metrics_port(service)
    return {
        name: str(directory / service) if name == "KAFKA_LOG_DIRS" else translated(service, value)
        for name, value in environment.items()
    }


def health(service: str) -> list[str]:
    """A service's health check, whose addresses are inside its container."""
    if service != APACHE_BROKER:
        return health_of_the_image(metrics_port(service))
    words = SERVICES[service]["healthcheck"]["test"]
    assert words[0] == "CMD"
    return [translated(service, word) for word in words[1:]]


def metrics_port(service: str) -> str:
    """The port of a service of ours on which its image serves /ready."""
    return place(service, METRICS_PORT).split(":")[1]


class Service(Process):
    """A process with exactly these variables, which ends in order."""

    def __init__(self, command: list[str], environment: Environment, log: Path) -> None:
        super().__init__(log)
        self.environment = environment
        self._command = command

    def command(self) -> list[str]:
        return self._command

    def __exit__(self, *_: object) -> None:
        assert self.stop() in (0, 143), self.text


def wait_for_port(port: int, log: Path) -> None:
    """Wait until a service listens."""
    until(lambda: accepts(port), lambda: log.read_text(errors="replace")[-4000:])


def test_every_service_has_a_health_check_and_what_it_keeps() -> None:
    assert list(SERVICES) == [*CONTROLLERS, *OUR_BROKERS, APACHE_BROKER]
    for name, service in SERVICES.items():
        assert ("healthcheck" in service) is (name == APACHE_BROKER), "ours have their image's"
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ()))
        (volume,) = service["volumes"]
        assert volume.split(":")[0] == name
        assert name in COMPOSE["volumes"]
        assert service["environment"]["KAFKA_NODE_ID"] == name.rpartition("-")[2]


def test_brokers_are_stopped_before_the_controllers_that_all_know() -> None:
    voters = ",".join(f"{name.rpartition('-')[2]}@{name}:9093" for name in CONTROLLERS)
    for name, service in SERVICES.items():
        assert service["environment"]["KAFKA_CONTROLLER_QUORUM_VOTERS"] == voters
        assert service.get("depends_on", []) == ([] if name in CONTROLLERS else CONTROLLERS)


def test_our_services_are_the_image_with_its_directory_and_its_verb() -> None:
    for name in (*CONTROLLERS, *OUR_BROKERS):
        service = SERVICES[name]
        assert (service["build"], service["image"]) == (".", "kraft-wire")
        assert service["command"] == ["server"]
        folder = service["volumes"][0].split(":")[1]
        assert IMAGE["KAFKA_LOG_DIRS"].startswith(f"{folder}/")
        assert f"VOLUME {folder}" in DOCKERFILE
        assert {"KAFKA_LISTENERS", "KAFKA_ADVERTISED_LISTENERS"} <= service["environment"].keys()
    assert 'ENTRYPOINT ["kraft-wire"]' in DOCKERFILE


def test_the_image_alone_is_one_node_and_its_health_check_passes(tmp_path: Path) -> None:
    """Its second listener advertises the machine's name, which other containers know.

    Here it is bound to 127.0.0.1, and the advertised address is the one without a host.
    """
    ports = {port: str(free_port()) for port in ("9092", "19092", METRICS_PORT)}
    assert IMAGE["KAFKA_LISTENERS"] == "PLAINTEXT://0.0.0.0:9092,CONTAINERS://:19092"
    environment = IMAGE | {
        "KAFKA_LISTENERS": f"PLAINTEXT://127.0.0.1:{ports['9092']},"
        f"CONTAINERS://127.0.0.1:{ports['19092']}",
        "KAFKA_ADVERTISED_LISTENERS": f"{IMAGE['KAFKA_ADVERTISED_LISTENERS']},"
        f"CONTAINERS://:{ports['19092']}",
        "KAFKA_METRICS_PORT": ports[METRICS_PORT],
        "KAFKA_LOG_DIRS": str(tmp_path / "data"),
        "CLUSTER_ID": "kraftWireComposeBBBBBB",
    }
    check = health_of_the_image(ports[METRICS_PORT])
    log = tmp_path / "log"
    with Service([KRAFT_WIRE, "server"], environment, log):
        wait_for_port(int(ports["9092"]), log)
        until(lambda: subprocess.run(check, capture_output=True, timeout=30).returncode == 0)
        assert f"CONTAINERS on {host_name()}:{ports['19092']}\n" in log.read_text()
        assert said([KRAFT_WIRE, "topics", "list", "-b", f"127.0.0.1:{ports['9092']}"])
    meta = (tmp_path / "data" / "meta.properties").read_text()
    assert "cluster.id=kraftWireComposeBBBBBB" in meta
    refused = subprocess.run(check, capture_output=True, timeout=30)
    assert refused.returncode != 0, "the health check passes without a server"


def health_of_the_image(port: str) -> list[str]:
    """The check that stands in the Dockerfile, on another port."""
    (words,) = re.findall(r"HEALTHCHECK [^\[]*CMD (\[.*\])", DOCKERFILE)
    return [str(word).replace(f"/{METRICS_PORT}", f"/{port}") for word in json.loads(words)]


@contextmanager
def started(services: list[str], directory: Path) -> Iterator[None]:
    """Services as processes, which end one after the other."""
    with ExitStack() as stack:
        for name in services:
            environment = as_process(name, directory) | {"PATH": "/usr/bin:/bin"}
            log = directory / f"{name}.log"
            stack.enter_context(Service(command(name, directory), environment, log))
        yield


def command(service: str, directory: Path) -> list[str]:
    """Ours as it stands there; Apache's image turns KAFKA_A_B into a.b, formats, and starts."""
    if service != APACHE_BROKER:
        return [KRAFT_WIRE, *SERVICES[service]["command"]]
    return apache_command(as_process(service, directory), directory)


def apache_command(environment: Environment, directory: Path, *flags: str) -> list[str]:
    """Format a directory as Apache's image does, and return the command that starts the broker."""
    properties = {
        name.removeprefix("KAFKA_").lower().replace("_", "."): value
        for name, value in environment.items()
        if name.startswith("KAFKA_")
    }
    file = directory / "apache.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
    formatted = run_java(
        "kafka.tools.StorageTool", ["format", "-t", environment["CLUSTER_ID"], "-c", str(file)]
    )
    assert formatted.exit_code == 0, formatted.text
    return java_command("kafka.Kafka", [str(file)], flags=flags)


@pytest.mark.java
@pytest.mark.slow
def test_the_services_are_one_cluster_and_their_health_checks_pass(tmp_path: Path) -> None:
    """A topic has replicas on both makes; what is written at ours is read at Apache's."""
    brokers = [*OUR_BROKERS, APACHE_BROKER]
    with started(CONTROLLERS, tmp_path), started(brokers, tmp_path):
        for name in brokers:
            wait_for_port(int(place(name, "9092").split(":")[1]), tmp_path / f"{name}.log")
        for name in (*CONTROLLERS, *OUR_BROKERS):
            said(health(name))
        program, *arguments = health(APACHE_BROKER)
        assert program.endswith("kafka-topics.sh")
        checked = run_java("org.apache.kafka.tools.TopicCommand", arguments)
        assert checked.exit_code == 0, checked.text
        everywhere_replicated_and_read()


def everywhere_replicated_and_read() -> None:
    """A topic has all brokers in its ISR; records that ours takes are read through Apache's."""
    ours, apaches = place("broker-4", "9092"), place(APACHE_BROKER, "9092")
    said([KRAFT_WIRE, "topics", "create", "t", "-b", ours])

    def isrs() -> list[list[int]]:
        described = said([KRAFT_WIRE, "topics", "describe", "--json", "-b", ours])
        partitions = [each for topic in json.loads(described) for each in topic["partitions"]]
        return [sorted(each["isr"]) for each in partitions]

    until(lambda: isrs() == [[4, 5, 6]] * 4)
    producer = Producer({"bootstrap.servers": ours, "acks": "all"})
    for number in range(100):
        producer.produce("t", str(number), partition=number % 4)
    assert producer.flush(HANG_S) == 0
    consumer = Consumer({"bootstrap.servers": apaches, "group.id": "compose"})
    consumer.assign([TopicPartition("t", number, 0) for number in range(4)])
    found = [consumer.poll(HANG_S) for _ in range(100)]
    consumer.close()
    values = sorted(int(each.value() or b"") for each in found if each is not None)
    assert values == list(range(100))


def said(arguments: list[str]) -> str:
    """What a command of ours prints, which must not fail."""
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done
    return done.stdout


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
