"""A controller and a broker, as processes, that authorize users who have logged in.

The nodes are `User:broker`, a super user; `ann` logs in by PLAIN; others are ANONYMOUS.
"""

from pathlib import Path

import pytest

from kraft_wire.client import BrokerConnection
from kraft_wire.login.client_config import read_client_config
from kraft_wire.wire.generated.create_acls import (
    AclCreation,
    CreateAclsRequest,
    CreateAclsResponse,
)
from kraft_wire.wire.generated.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kraft_wire.wire.generated.metadata import MetadataRequest, MetadataResponse
from tests.apache.secured_node import ACCOUNTS
from tests.certificates import Authority
from tests.process import write_properties
from tests.server.linked_nodes import members, shared
from tests.waiting import until

AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
NO_TOPIC, NO_CLUSTER = 29, 31


def logged_in(directory: Path, address: str, user: str) -> BrokerConnection:
    """Connect as a user."""
    file = directory / f"{user}.properties"
    write_properties(
        file,
        {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": "org.apache.kafka.common.security.plain.PlainLoginModule required "
            f'username="{user}" password="{ACCOUNTS[user]}";',
        },
    )
    security, _ = read_client_config(file)
    return BrokerConnection(address, security=security)


def create(connection: BrokerConnection, name: str) -> int:
    """Ask the broker, which forwards it, for a topic; return the error."""
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    request = CreateTopicsRequest(topics=[topic], timeout_ms=30_000)
    (made,) = connection.send(request, CreateTopicsResponse).topics
    return made.error_code


def grant(connection: BrokerConnection) -> int:
    """Allow `ann` topics that begin with `a`; return the error."""
    entry = AclCreation(
        resource_type=2,
        resource_name="a",
        resource_pattern_type=4,
        principal="User:ann",
        host="*",
        operation=2,
        permission_type=3,
    )
    answer = connection.send(CreateAclsRequest(creations=[entry]), CreateAclsResponse)
    return answer.results[0].error_code


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


def test_users_get_what_their_entries_allow(tmp_path: Path, authority: Authority) -> None:
    """SEC-ENV-12, SEC-ENV-13, SEC-ENV-04: a forwarded request is the user's, not the broker's."""
    settings = shared("SASL_PLAINTEXT", authority) | {
        "authorizer.class.name": AUTHORIZER,
        "super.users": "User:broker",
    }
    controller, broker = members(tmp_path, settings, settings)
    with controller, broker:
        plain, inside = (broker.ready["listeners"][name] for name in ("PLAINTEXT", "INSIDE"))
        with (
            BrokerConnection(plain) as nobody,
            logged_in(tmp_path, inside, "ann") as ann,
            logged_in(tmp_path, inside, "broker") as root,
        ):
            assert [create(each, "abc") for each in (nobody, ann)] == [NO_TOPIC, NO_TOPIC]
            assert [grant(each) for each in (nobody, ann, root)] == [NO_CLUSTER, NO_CLUSTER, 0]
            until(lambda: create(ann, "abc") != NO_TOPIC, lambda: controller.text)
            assert create(nobody, "abd") == NO_TOPIC
            assert create(ann, "other") == NO_TOPIC
            assert create(root, "other") == 0

            def names(connection: BrokerConnection) -> list[str | None]:
                found = connection.send(MetadataRequest(topics=None), MetadataResponse)
                return [topic.name for topic in found.topics]

            until(lambda: names(root) == ["abc", "other"], lambda: broker.text)
            assert names(ann) == ["abc"]
            assert names(nobody) == []
        assert "Principal = User:ann is Denied operation = CREATE" in controller.text
        assert "Principal = User:ANONYMOUS is Denied operation = ALTER" in controller.text
