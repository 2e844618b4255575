"""The suites: what each of them is, the node that it needs, and how it runs there."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Protocol

from tests.apache.node import ApacheNode
from tests.process import KRAFT_WIRE
from tests.scoreboard.go_suite import GoSuite
from tests.scoreboard.java_suite import OWN_TESTS
from tests.scoreboard.python_suite import run_kafka_python, sources
from tests.scoreboard.results import FAILED, PASSED, SKIPPED, Results
from tests.server_process import ServerProcess

__all__ = ["RACING", "SUITES", "Suite"]

Node = ApacheNode | ServerProcess
ACLS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
    "super.users": "User:ANONYMOUS",
}
SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")
LOGINS = {
    "listeners": "PLAINTEXT://localhost:9092,SASL_PLAINTEXT://localhost:9093,"
    "CONTROLLER://127.0.0.1:9094",
    "advertised.listeners": "PLAINTEXT://localhost:9092,SASL_PLAINTEXT://localhost:9093",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,"
    "SASL_PLAINTEXT:SASL_PLAINTEXT",
    "controller.quorum.voters": "1@127.0.0.1:9094",
    "sasl.enabled.mechanisms": ",".join(("PLAIN", *SCRAM)),
    "message.max.bytes": "200000000",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        'username="adminplain" password="admin-secret" user_adminplain="admin-secret";'
    ),
    **{
        f"listener.name.sasl_plaintext.{each.lower()}.sasl.jaas.config": (
            "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        )
        for each in SCRAM
    },
}
"""As kafka-go's own CI sets its broker up."""

KAFKA_PYTHON = {
    "node.id": "0",
    "advertised.listeners": "PLAINTEXT://127.0.0.1:9092",
    "group.min.session.timeout.ms": "1000",
}
"""What its tests expect of a broker that they start."""


class Suite(Protocol):
    """One suite."""

    def title(self) -> str:
        """Return how the table names it."""

    def prepare(self) -> object:
        """Fetch and compile, while there is a network."""

    def run_on(self, make: str, home: Path) -> Results:
        """Run the tests on one make; what they and the nodes write stays in the folder."""


@dataclass(frozen=True)
class NodeSuite:
    """A suite for a node that runs already."""

    title: Callable[[], str]
    run: Callable[[Node, Path], Results]
    settings: Mapping[str, str] = field(default_factory=dict)
    prepare: Callable[[], object] = lambda: None
    is_at_9092: bool = False

    def run_on(self, make: str, home: Path) -> Results:
        """Run it on a new node."""
        with self.node(make, home) as node:
            return self.run(node, home / "suite.log")

    def node(self, make: str, home: Path) -> Node:
        """Return a node of a make, not started."""
        settings = {"num.partitions": "4", "group.initial.rebalance.delay.ms": "0", **self.settings}
        port = 9092 if self.is_at_9092 else 0
        if make == "kraft-wire":
            ours = {key: value for key, value in settings.items() if "quorum" not in key}
            return ServerProcess(home, overrides=ours, port=port)
        return ApacheNode(home, overrides=settings, port=port)


def run_conform(node: Node, log: Path) -> Results:
    """The conformance suite; a row is a test."""
    report = log.with_suffix(".json")
    command = [KRAFT_WIRE, "conform", "-b", node.bootstrap, "--json", str(report)]
    with log.open("a") as output:
        subprocess.run(command, stdout=output, stderr=output, check=False)
    verdicts = {"passed": PASSED, "not supported": SKIPPED}
    return {
        f"{each['name']}/{each['version']}": verdicts.get(each["verdict"], FAILED)
        for each in json.loads(report.read_text())["rows"]
    }


FRANZ = GoSuite(
    "github.com/twmb/franz-go",
    "pkg/kgo",
    ("getSeedBrokers(", "KGO_SEEDS", "scramSeeds"),
    lambda bootstrap: {
        "KGO_SEEDS": bootstrap,
        "KGO_TEST_RF": "1",
        "KGO_TEST_RECORDS": "20000",
        "KGO_LOG_LEVEL": "none",
    },
)
KAFKA_GO = GoSuite(
    "github.com/segmentio/kafka-go",
    "",
    ("localhost:9092", "127.0.0.1:9093", "localhost:9093"),
    lambda bootstrap: {"KAFKA_VERSION": "4.3.1", "KAFKA_SKIP_NETTEST": "1"},
)

RACING = ("TestConsumerGroupWithTopic", "TestConsumerGroupWithGroupTopicsSingle")
"""Tests of kafka-go that need a slow broker, so that they fail on Apache's too, but less often.

A reader joins for a topic that does not exist, and its request for metadata creates it. The reader
sees the change only if it asks once more before the topic is there.
"""

SUITES: dict[str, Suite] = {
    "conform": NodeSuite(lambda: "`kraft-wire conform`", run_conform),
    "franz-go": NodeSuite(
        lambda: f"franz-go {FRANZ.version()}, `pkg/kgo`",
        lambda node, log: FRANZ.run(node.bootstrap, log),
        prepare=FRANZ.build,
    ),
    "kafka-go": NodeSuite(
        lambda: f"kafka-go {KAFKA_GO.version()}",
        lambda node, log: KAFKA_GO.run(node.bootstrap, log),
        settings={**ACLS, **LOGINS},
        prepare=KAFKA_GO.build,
        is_at_9092=True,
    ),
    "kafka-python": NodeSuite(
        lambda: f"kafka-python {version('kafka-python')}, `test/integration`",
        lambda node, log: run_kafka_python(node.bootstrap, log),
        settings={**ACLS, **KAFKA_PYTHON},
        prepare=sources,
        is_at_9092=True,
    ),
    **OWN_TESTS,
}
