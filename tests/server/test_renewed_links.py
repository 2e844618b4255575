"""Sessions of two seconds between nodes, and between a client and a node, over real sockets.

A node counts logins, logins that renew a session, and connections that it closes because they sent
a request after the end of their session. The first number stays, the last one stays 0.
"""

import re
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import pbkdf2_hmac
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from kraft_wire.client import BrokerConnection, BrokerConnectionError
from kraft_wire.client import connection as client_connection
from kraft_wire.login.client_config import Credentials, Security
from kraft_wire.wire.generated.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from kraft_wire.wire.generated.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kraft_wire.wire.generated.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from kraft_wire.wire.generated.metadata import MetadataRequest, MetadataResponse
from tests.apache.secured_node import ACCOUNTS, SecuredNode, sasl_settings
from tests.cluster_command import kraft_wire
from tests.ports import free_port
from tests.process import KraftWireServer
from tests.server.linked_nodes import CLUSTER_ID, MECHANISM, Member
from tests.waiting import HANG_S, until

SESSION_MS = 2_000
PREFIX = "kafka_server_socketservermetrics_"
RENEWED = "successful_reauthentication_total"
LOGGED_IN = "successful_authentication_total"
CLOSED = "expired_connections_killed_count_total"


def counts(node: KraftWireServer) -> dict[tuple[str, str], float]:
    """Return the counters of a node's logins, by name and listener."""
    found = re.search(r"address=(http://\S+)", node.log.read_text())
    assert found is not None
    with urllib.request.urlopen(found[1], timeout=HANG_S) as answer:
        text = answer.read().decode()
    return {
        (sample.name.removeprefix(PREFIX), sample.labels["listener"]): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name.startswith(PREFIX) and "listener" in sample.labels
    }


@contextmanager
def two_brokers(directory: Path) -> Iterator[tuple[Member, Member]]:
    """Run a broker that is the controller too, and a broker; they log in to each other."""
    ports = {node: [free_port() for _ in range(2)] for node in (1, 2)}
    controller = f"127.0.0.1:{free_port()}"
    members = []
    for node, (plain, inside) in ports.items():
        listeners = f"PLAINTEXT://127.0.0.1:{plain},INSIDE://127.0.0.1:{inside}"
        of_controller = {
            "process.roles": "broker,controller",
            "listeners": f"{listeners},CONTROLLER://{controller}",
        }
        properties = {
            "process.roles": "broker",
            "listeners": listeners,
            **(of_controller if node == 1 else {}),
            "controller.quorum.voters": f"1@{controller}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:SASL_PLAINTEXT,INSIDE:SASL_PLAINTEXT,"
            "PLAINTEXT:PLAINTEXT",
            "inter.broker.listener.name": "INSIDE",
            **{f"sasl.mechanism.{link}.protocol": name for link, name in MECHANISM.items()},
            **sasl_settings("CONTROLLER"),
            **sasl_settings("INSIDE"),
            "connections.max.reauth.ms": str(SESSION_MS),
            "replica.lag.time.max.ms": "600000",
            "metrics.port": "-1",
        }
        members.append(Member(directory, node, properties))
    for member in members:
        scram = f"SCRAM-SHA-256=[name=broker,password={ACCOUNTS['broker']}]"
        done = kraft_wire("format", "-t", CLUSTER_ID, "-c", str(member.file), "--add-scram", scram)
        assert done.returncode == 0, done.stderr
    with members[0], members[1]:
        yield members[0], members[1]


def create_replicated(node: Member) -> None:
    """Create a topic of which each broker leads a partition and follows another."""
    with BrokerConnection(node.ready["listeners"]["PLAINTEXT"]) as connection:
        topic = CreatableTopic(name="t", num_partitions=2, replication_factor=2)
        request = CreateTopicsRequest(topics=[topic], timeout_ms=30_000)
        answer = connection.send(request, CreateTopicsResponse)
    assert [each.error_code for each in answer.topics] == [0], answer


def test_links_of_every_kind_outlive_their_sessions(tmp_path: Path) -> None:
    """SEC-ENV-03: raft and forwarded requests by PLAIN, fetches of replicas by SCRAM."""
    places = ((0, "CONTROLLER"), (0, "INSIDE"), (1, "INSIDE"))
    with two_brokers(tmp_path) as nodes:
        create_replicated(nodes[0])

        def renewed(times: int) -> Callable[[], bool]:
            return lambda: all(counts(nodes[at])[RENEWED, name] >= times for at, name in places)

        until(renewed(2))
        before, written = [counts(node) for node in nodes], [len(node.text) for node in nodes]
        until(renewed(6))
        after = [counts(node) for node in nodes]
        later = [node.text[size:] for node, size in zip(nodes, written, strict=True)]
    assert [line for text in later for line in text.splitlines() if "peer_" in line] == []
    for at, name in places:
        assert after[at][LOGGED_IN, name] == before[at][LOGGED_IN, name] > 0
        assert after[at][CLOSED, name] == 0
        assert after[at]["failed_reauthentication_total", name] == 0


def alter_scram(node: Member, request: AlterUserScramCredentialsRequest) -> None:
    with BrokerConnection(node.ready["listeners"]["PLAINTEXT"]) as connection:
        answer = connection.send(request, AlterUserScramCredentialsResponse)
    assert [each.error_code for each in answer.results] == [0], answer


def test_a_refused_second_login_closes_the_link_and_its_requests_are_sent_again(
    tmp_path: Path,
) -> None:
    """SEC-ENV-03: the nodes' credential is gone for a while; open sessions end, nothing is lost."""
    gone = ScramCredentialDeletion(name="broker", mechanism=1)
    salted = pbkdf2_hmac("sha256", ACCOUNTS["broker"].encode(), b"salt", 4096)
    again = ScramCredentialUpsertion(
        name="broker", mechanism=1, iterations=4096, salt=b"salt", salted_password=salted
    )
    words = "Authentication failed during re-authentication due to invalid credentials"

    def refusals(node: Member) -> list[str]:
        lines = [line for line in node.text.splitlines() if "peer_login_failed" in line]
        return [line for line in lines if words in line]

    with two_brokers(tmp_path) as nodes:
        create_replicated(nodes[0])
        until(lambda: all(counts(each)[RENEWED, "INSIDE"] for each in nodes))
        alter_scram(nodes[0], AlterUserScramCredentialsRequest(deletions=[gone]))
        until(lambda: all(refusals(each) for each in nodes))
        failed = [counts(each)["failed_reauthentication_total", "INSIDE"] for each in nodes]
        assert min(failed) >= 1
        alter_scram(nodes[0], AlterUserScramCredentialsRequest(upsertions=[again]))
        bootstrap = nodes[0].ready["listeners"]["PLAINTEXT"]
        for number in range(8):  # acks=all: both replicas of both partitions
            done = kraft_wire("produce", "t", "-k", str(number), "-v", "v", "-b", bootstrap)
            assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredNode]:
    """A node with a listener whose sessions last for two seconds."""
    settings = {
        "metrics.port": "-1",
        "connections.max.reauth.ms": str(SESSION_MS),
        **sasl_settings("SECURE"),
    }
    node = SecuredNode(tmp_path_factory.mktemp("node"), "SASL_PLAINTEXT", settings)
    node.format()
    with node:
        yield node


def dialled(node: SecuredNode, mechanism: str) -> BrokerConnection:
    credentials = Credentials(mechanism, "ann", ACCOUNTS["ann"])
    return BrokerConnection(node.secure, security=Security(credentials=credentials))


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_the_connection_of_a_command_outlives_its_session(
    node: SecuredNode, mechanism: str
) -> None:
    """SEC-ENV-03: a command that runs for long, as consume --follow."""
    before = counts(node)
    with dialled(node, mechanism) as connection:

        def asks() -> bool:
            answer = connection.send(MetadataRequest(topics=[]), MetadataResponse)
            assert answer.brokers
            return counts(node)[RENEWED, "SECURE"] >= before[RENEWED, "SECURE"] + 2

        until(asks)
    after = counts(node)
    assert after[LOGGED_IN, "SECURE"] == before[LOGGED_IN, "SECURE"] + 1
    assert after[CLOSED, "SECURE"] == before[CLOSED, "SECURE"]


def slow_fetch() -> FetchRequest:
    """Return a request whose answer takes its time."""
    partition = FetchPartition(partition=0, partition_max_bytes=1)
    topics = [FetchTopic(topic="slow", partitions=[partition])]
    return FetchRequest(max_wait_ms=300, min_bytes=1, max_bytes=1, topics=topics)


def test_a_client_s_answers_in_flight_come_before_the_login(
    node: SecuredNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SEC-ENV-03: each answer reaches who asked for it."""
    with BrokerConnection(node.bootstrap) as plain:
        topic = CreatableTopic(name="slow", num_partitions=1, replication_factor=1)
        plain.send(CreateTopicsRequest(topics=[topic], timeout_ms=30_000), CreateTopicsResponse)
    began = client_connection.monotonic()
    with dialled(node, "PLAIN") as connection:
        until(lambda: client_connection.monotonic() > began + 1.1)  # the server's pause
        before = counts(node)
        connection.post(slow_fetch(), version=12)
        connection.post(slow_fetch(), version=12)
        monkeypatch.setattr(client_connection, "monotonic", lambda: began + SESSION_MS)
        connection.post(MetadataRequest(topics=[]))
        answers = [connection.answer(each) for each in (FetchResponse, FetchResponse)]
        assert [each.error_code for each in answers] == [0, 0]
        assert connection.answer(MetadataResponse).brokers
        assert counts(node)[RENEWED, "SECURE"] == before[RENEWED, "SECURE"] + 1


def test_a_client_whose_second_login_is_refused_says_so(
    node: SecuredNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SEC-ENV-03: as at the first login, without the password."""
    began = client_connection.monotonic()
    with dialled(node, "PLAIN") as connection:
        until(lambda: client_connection.monotonic() > began + 1.1)
        connection._credentials = Credentials("PLAIN", "bob", ACCOUNTS["bob"])
        monkeypatch.setattr(client_connection, "monotonic", lambda: began + SESSION_MS)
        words = "Cannot change principals during re-authentication from User.ann: User.bob"
        with pytest.raises(BrokerConnectionError, match=f"no login at {node.secure}: {words}"):
            connection.send(MetadataRequest(topics=[]), MetadataResponse)
