"""Which clients do transactions here, and how the driver of each is started."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

from tests.apache import jars
from tests.apache.java_process import LEAN_FLAGS, compiled_classes
from tests.clients.registry import Client, go_harness, node_harness

__all__ = ["CANNOT_WHERE_BROKERS_RESTART", "CLIENTS", "OLD_RELEASE", "READ_BY"]

OLD_RELEASE = "3.9.1"
"""Whose client knows nothing of transaction.version 2: it adds partitions before it produces."""
HEAP_MB = 128


def java_driver(release: str) -> Callable[[], list[str]]:
    """The driver over a release's own client; it is compiled against the newest one."""

    def command() -> list[str]:
        path = os.pathsep.join([str(compiled_classes()), jars.classpath(release)])
        flags = [*LEAN_FLAGS, f"-Xmx{HEAP_MB}m"]
        return ["java", *flags, "-cp", path, "judge.TransactionDriver"]

    return command


def python_driver(client: str) -> Callable[[], list[str]]:
    """The driver of a client written in Python."""
    return lambda: [sys.executable, "-m", "tests.clients.transactions.python", client]


def go_driver(client: str) -> Callable[[], list[str]]:
    """The Go program of all scenarios, told to do transactions."""
    return lambda: [*go_harness(client)(), "transactions"]


def node_driver(client: str) -> Callable[[], list[str]]:
    """The Node.js program that does transactions with one of two libraries."""

    def command() -> list[str]:
        node, harness = node_harness()
        return [node, str(Path(harness).with_name("transactions.mjs")), client]

    return command


READ_BY = {"platformatic": "confluent-kafka"}
"""1.35.0 hands out aborted records at READ_COMMITTED, from Apache's brokers too."""
PLATFORMATIC_CANNOT = {
    "fence": "1.35.0 initialises an id as producer 0 of epoch 0, which Apache refuses too",
    "timeout": "as fence: an id that is known cannot be initialised again",
}

CANNOT_WHERE_BROKERS_RESTART = {
    ("kafka-python", "move"): "3.0.12 may wait for ever for the offsets that it has sent to a "
    "coordinator that moves, with Apache's brokers too",
    ("kafka-python", "timeout"): "3.0.12 forgets an EndTxn request whose connection fails as it is "
    "sent, and waits for its answer for ever, with Apache's brokers too",
    ("platformatic", "move"): "1.35.0 throws where nobody can catch it when a coordinator is not "
    "among the brokers that it knows",
}


CLIENTS: dict[str, Client] = {
    client.name: client
    for client in (
        Client(f"java-{jars.RELEASE}", java_driver(jars.RELEASE), "java"),
        Client(f"java-{OLD_RELEASE}", java_driver(OLD_RELEASE), "java"),
        Client("confluent-kafka", python_driver("confluent-kafka")),
        Client("kafka-python", python_driver("kafka-python")),
        Client("aiokafka", python_driver("aiokafka")),
        Client("franz-go", go_driver("franz-go"), "go"),
        Client("sarama", go_driver("sarama"), "go"),
        Client("kafkajs", node_driver("kafkajs"), "node"),
        Client("platformatic", node_driver("platformatic"), "node", PLATFORMATIC_CANNOT),
    )
}
