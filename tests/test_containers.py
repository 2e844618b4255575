"""docker-compose.yml and the image in real containers, by podman, on a bridge with names.

Only published ports are changed, to free ones. Apache's image cannot be built here: its service is
a process on this machine, which listens at the bridge's address and finds the others by a file of
hosts.
"""

import json
import os
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.podman import built_image, is_healthy, network, podman, why_not, with_limits
from tests.ports import free_port
from tests.test_compose import (
    APACHE_BROKER,
    CONTROLLERS,
    OUR_BROKERS,
    SERVICES,
    Service,
    apache_command,
    wait_for_port,
)
from tests.waiting import HANG_S, until

pytestmark = [
    pytest.mark.skipif(bool(why_not()), reason=why_not()),
    pytest.mark.slow,
    pytest.mark.alone,
]
PREFIX = f"kraft-wire-{os.getpid()}"
TOPIC = "orders"
REPLICAS = [4, 5, 6]
STOPPED_IN_ORDER = "0"


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The image of the Dockerfile."""
    with built_image(f"localhost/{PREFIX}", tmp_path_factory.mktemp("image")) as name:
        yield name


class Containers:
    """Services of docker-compose.yml, each in its container."""

    def __init__(self, image: str, gateway: str) -> None:
        self.gateway = gateway
        self.ports = {name: free_port() for name in (*OUR_BROKERS, APACHE_BROKER)}
        self._image = image

    @contextmanager
    def running(self, service: str) -> Iterator[None]:
        """Run a service until the end, which must be an orderly one."""
        name = f"{PREFIX}-{service}"
        podman(*with_limits("run", "--detach", "--name", name), *self._options(service))
        try:
            yield
            podman("stop", "--time", SERVICES[service]["stop_grace_period"].rstrip("s"), name)
            code = podman("inspect", name, "--format", "{{.State.ExitCode}}").strip()
            assert code == STOPPED_IN_ORDER, podman("logs", name)
        finally:
            podman("rm", "--force", "--volumes", name)

    def _options(self, service: str) -> list[str]:
        chosen: dict[str, Any] = SERVICES[service]
        (volume,) = chosen["volumes"]
        options = [f"--network={PREFIX}", f"--network-alias={service}"]
        options += [f"--volume={volume.partition(':')[2]}"]
        for key, value in chosen["environment"].items():
            options += ["--env", f"{key}={self.with_port(service, value)}"]
        if "ports" in chosen:
            options += ["--publish", f"127.0.0.1:{self.ports[service]}:9092"]
        return [*options, self._image, *chosen["command"]]

    def with_port(self, service: str, value: str) -> str:
        """Return a variable with the free port in place of the published one."""
        return re.sub(r"(?<=EXTERNAL://127\.0\.0\.1:)\d+", str(self.ports.get(service)), value)

    def client(self, *arguments: str, stdin: str = "") -> str:
        """Run a verb in a container of its own beside the services."""
        options = with_limits("run", "--rm", "--interactive", f"--network={PREFIX}")
        return podman(*options, self._image, *arguments, stdin=stdin)

    def address(self, service: str) -> str:
        """Return a container's address on the bridge."""
        template = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}"
        return podman("inspect", f"{PREFIX}-{service}", "--format", template).strip()


@contextmanager
def apache_broker(containers: Containers, directory: Path) -> Iterator[None]:
    """Apache's service as a process, which reaches containers by their names."""
    inside = free_port()
    external = containers.ports[APACHE_BROKER]
    environment = SERVICES[APACHE_BROKER]["environment"] | {
        "KAFKA_LOG_DIRS": str(directory / "data"),
        "KAFKA_LISTENERS": f"INTERNAL://{containers.gateway}:{inside},EXTERNAL://127.0.0.1:{external}",
        "KAFKA_ADVERTISED_LISTENERS": f"INTERNAL://{containers.gateway}:{inside},"
        f"EXTERNAL://127.0.0.1:{external}",
    }
    hosts = directory / "hosts"
    names = [*CONTROLLERS, *OUR_BROKERS]
    hosts.write_text(
        "127.0.0.1 localhost\n" + "".join(f"{containers.address(each)} {each}\n" for each in names)
    )
    command = apache_command(environment, directory, f"-Djdk.net.hosts.file={hosts}")
    log = directory / "apache.log"
    with Service(command, {"PATH": "/usr/bin:/bin"}, log):
        wait_for_port(external, log)
        yield


@pytest.mark.java
def test_the_compose_file_is_a_healthy_cluster_for_clients_in_and_outside(
    image: str, tmp_path: Path
) -> None:
    with network(PREFIX) as gateway, ExitStack() as stack:
        containers = Containers(image, gateway)
        for service in CONTROLLERS:
            stack.enter_context(containers.running(service))
        for service in OUR_BROKERS:
            stack.enter_context(containers.running(service))
        stack.enter_context(apache_broker(containers, tmp_path))
        for service in (*CONTROLLERS, *OUR_BROKERS):
            await_health(f"{PREFIX}-{service}")
        records_from_a_sibling_reach_the_host(containers)


def records_from_a_sibling_reach_the_host(containers: Containers) -> None:
    """A topic is on all brokers; a sibling container and this machine write and read it."""
    inside = ["--bootstrap-server", "broker-4:19092"]
    containers.client("topics", "create", TOPIC, *inside)

    def isrs() -> list[list[int]]:
        described = json.loads(containers.client("topics", "describe", TOPIC, "--json", *inside))
        return [sorted(each["isr"]) for each in described[0]["partitions"]]

    until(lambda: isrs() == [REPLICAS] * 4, every_s=1.0)
    containers.client("produce", TOPIC, *inside, stdin="from a sibling\n")
    address = f"127.0.0.1:{containers.ports['broker-5']}"
    producer = Producer({"bootstrap.servers": address, "enable.idempotence": True})
    producer.produce(TOPIC, "from the host")
    assert producer.flush(HANG_S) == 0
    both = ["from a sibling", "from the host"]
    assert sorted(containers.client("consume", TOPIC, *inside).splitlines()) == both
    for broker in (*OUR_BROKERS, APACHE_BROKER):
        assert sorted(read_at(containers.ports[broker], len(both))) == both


def read_at(port: int, count: int) -> list[str]:
    """Read records on this machine, by librdkafka, beginning at one broker."""
    consumer = Consumer({"bootstrap.servers": f"127.0.0.1:{port}", "group.id": "host"})
    consumer.assign([TopicPartition(TOPIC, number, 0) for number in range(4)])
    found = [consumer.poll(HANG_S) for _ in range(count)]
    consumer.close()
    return [(each.value() or b"").decode() for each in found if each is not None]


def test_the_image_alone_serves_a_sibling_and_the_host(image: str) -> None:
    """`docker run` as docs/OPERATING.md has it, on a free port."""
    name = f"{PREFIX}-alone"
    port = free_port()
    with network(PREFIX):
        try:
            options = ["--detach", "--name", name, "--network", PREFIX]
            options += ["--publish", f"127.0.0.1:{port}:9092"]
            options += ["--env", f"KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://127.0.0.1:{port}"]
            podman(*with_limits("run", *options), image)
            await_health(name)
            client = with_limits("run", "--rm", "--interactive", f"--network={PREFIX}")
            sibling = ["--bootstrap-server", f"{name}:19092"]
            podman(*client, image, "topics", "create", TOPIC, "-p", "4", *sibling)
            podman(*client, image, "produce", TOPIC, *sibling, stdin="one\n")
            assert podman(*client, image, "consume", TOPIC, *sibling) == "one\n"
            assert read_at(port, 1) == ["one"]
        finally:
            podman("rm", "--force", "--volumes", name)


def await_health(name: str) -> None:
    """Run the image's health check until it passes, as a timer of systemd's does."""
    until(lambda: is_healthy(name), lambda: podman("logs", name), every_s=1.0)
