"""Apache's tools for quotas, SCRAM credentials, access-control entries and features, over the wire.

Each test runs against Apache's node as well, which shows that the test asks for nothing that Apache
does not do. Both nodes name the standard authorizer, with everybody as its super user.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.apache.node import ApacheNode
from tests.apache.tools import run_tool
from tests.clients.running import Broker
from tests.server_process import ServerProcess

pytestmark = [pytest.mark.java, pytest.mark.slow]

AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
PREFIXED = ("--resource-pattern-type", "prefixed")
KINDS = {"apache": ApacheNode, "ours": ServerProcess}


@pytest.fixture(scope="module", params=KINDS)
def broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Broker]:
    directory: Path = tmp_path_factory.mktemp(request.param)
    with KINDS[request.param](directory, overrides=AUTHORIZER) as running:
        yield running


def tool(broker: Broker, name: str, *arguments: str) -> str:
    """Run a tool against the broker, insist that it ended well, and return what it printed."""
    done = run_tool(name, ["--bootstrap-server", broker.bootstrap, *arguments])
    assert done.exit_code == 0, done.text
    return done.text


def configs(broker: Broker, *arguments: str) -> str:
    """Run kafka-configs."""
    return tool(broker, "kafka-configs", *arguments)


def test_kafka_configs_sets_shows_and_removes_quotas(broker: Broker) -> None:
    user = ["--entity-type", "users", "--entity-name", "quota-user"]
    client = ["--entity-type", "clients", "--entity-default"]
    configs(broker, "--alter", *user, *client, "--add-config", "producer_byte_rate=1024")
    configs(broker, "--alter", *user, "--add-config", "request_percentage=12.5")
    shown = configs(broker, "--describe", *user)
    assert "request_percentage=12.5" in shown
    assert "producer_byte_rate=1024.0" in configs(broker, "--describe", *user, *client)
    configs(broker, "--alter", *user, "--delete-config", "request_percentage")
    assert "request_percentage" not in configs(broker, "--describe", *user)
    address = ["--entity-type", "ips", "--entity-name", "127.0.0.1"]
    configs(broker, "--alter", *address, "--add-config", "connection_creation_rate=20")
    assert "connection_creation_rate=20.0" in configs(broker, "--describe", *address)


def test_kafka_configs_sets_shows_and_removes_scram_credentials(broker: Broker) -> None:
    user = ["--entity-type", "users", "--entity-name", "scram-user"]
    secret = "SCRAM-SHA-256=[iterations=8192,password=secret]"
    configs(broker, "--alter", *user, "--add-config", secret)
    shown = configs(broker, "--describe", *user)
    assert "SCRAM-SHA-256=iterations=8192" in shown
    configs(broker, "--alter", *user, "--delete-config", "SCRAM-SHA-256")
    assert "SCRAM-SHA-256" not in configs(broker, "--describe", *user)


def test_kafka_acls_adds_lists_and_removes_entries(broker: Broker) -> None:
    who = ["--allow-principal", "User:reader", "--operation", "Read"]
    tool(broker, "kafka-acls", "--add", *who, "--topic", "acl-topic")
    tool(broker, "kafka-acls", "--add", *who, "--group", "acl-", *PREFIXED)
    listed = tool(broker, "kafka-acls", "--list", "--principal", "User:reader")
    assert "resourceType=TOPIC, name=acl-topic, patternType=LITERAL" in listed
    assert "resourceType=GROUP, name=acl-, patternType=PREFIXED" in listed
    assert "principal=User:reader, host=*, operation=READ, permissionType=ALLOW" in listed
    tool(broker, "kafka-acls", "--remove", "--force", *who, "--topic", "acl-topic")
    listed = tool(broker, "kafka-acls", "--list")
    assert "acl-topic" not in listed
    assert "name=acl-" in listed


def test_kafka_features_refuses_to_lose_metadata_and_says_why(broker: Broker) -> None:
    arguments = ["--bootstrap-server", broker.bootstrap, "downgrade", "--metadata", "4.2"]
    done = run_tool("kafka-features", arguments)
    assert done.exit_code != 0
    assert "Refusing to perform the requested downgrade because it might delete" in done.text


def test_kafka_features_tries_an_upgrade_without_doing_it(broker: Broker) -> None:
    shown = tool(broker, "kafka-features", "upgrade", "--feature", "metadata.version=30")
    assert "metadata.version was upgraded to 30" in shown
    described = tool(broker, "kafka-features", "describe")
    assert "FinalizedVersionLevel: 4.3-IV0" in described
