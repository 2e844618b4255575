"""``cluster up --secure``: librdkafka and Apache's tools log in, and each gets what it may."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from kraft_wire.cli.cluster.files import ClusterFiles
from kraft_wire.properties import parse_properties
from tests.apache.jars import jar_directory
from tests.apache.tools import run_tool
from tests.cluster_command import ClusterCommand, kraft_wire
from tests.waiting import HANG_S

pytestmark = pytest.mark.slow
SECRET = re.compile(r'(?:password|user_\w+)="([^"]+)"')


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterCommand]:
    directory = tmp_path_factory.mktemp("home") / "cluster"
    sizes = ("--controllers", "3", "--brokers", "2")
    with ClusterCommand(directory, "--secure", *sizes) as running:
        running.until(lambda: brokers_in(running) == [4, 5])
        running.until(lambda: all(serves(running, each) for each in servers(running).split(",")))
        yield running


def serves(cluster: ClusterCommand, server: str) -> bool:
    """Whether a broker knows the user `client`: it is a broker before it has read its metadata."""
    config = str(ClusterFiles(cluster.directory).secrets.client_config)
    return kraft_wire("topics", "list", "-b", server, "--command-config", config).returncode == 0


def brokers_in(cluster: ClusterCommand) -> list[int]:
    """The brokers that are up and not fenced."""
    nodes = cluster.shown[-1]["nodes"]
    return [each["node_id"] for each in nodes if each["role"] == "Broker"]


def servers(cluster: ClusterCommand) -> str:
    """The brokers' addresses."""
    text: str = cluster.shown[-1]["bootstrap_servers"]
    return text


def librdkafka(cluster: ClusterCommand, **changed: str) -> dict[str, str]:
    """Settings of the user `client`, out of the file that the cluster has written for it."""
    files = ClusterFiles(cluster.directory)
    text = files.secrets.client_config.read_text(encoding="utf-8")
    written = {each.key: each.value for each in parse_properties(text)}
    login = re.search(r'username="(.*?)" password="(.*?)"', written["sasl.jaas.config"])
    assert login is not None
    name, password = login.groups()
    return {
        "bootstrap.servers": servers(cluster),
        "security.protocol": written["security.protocol"],
        "sasl.mechanism": written["sasl.mechanism"],
        "sasl.username": name,
        "sasl.password": password,
        "ssl.ca.location": written["ssl.truststore.location"],
        **changed,
    }


def test_librdkafka_writes_and_reads_as_client(cluster: ClusterCommand) -> None:
    settings = librdkafka(cluster)
    admin = AdminClient(settings)
    (made,) = admin.create_topics([NewTopic("orders", 3, 2)]).values()
    try:
        made.result(HANG_S)
    except KafkaException as problem:
        raise AssertionError(warnings(cluster)) from problem
    producer = Producer(settings | {"acks": "all"})
    producer.produce("orders", b"one")
    assert producer.flush(HANG_S) == 0
    consumer = Consumer(settings | {"group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe(["orders"])
    try:
        cluster.until(lambda: value_of(consumer.poll(1)) == b"one")
    finally:
        consumer.close()


def warnings(cluster: ClusterCommand) -> str:
    """What the nodes have warned of, in one line."""
    logs = [ClusterFiles(cluster.directory).log(each) for each in range(1, 6)]
    lines = [line for log in logs for line in log.read_text(encoding="utf-8").splitlines()]
    return " | ".join(line for line in lines if " WARN " in line or " ERROR " in line)


def value_of(message: Message | None) -> bytes | None:
    """What a message holds; librdkafka passes what it tries again as messages too."""
    return None if message is None or message.error() is not None else message.value()


def test_client_may_not_administer(cluster: ClusterCommand) -> None:
    files = ClusterFiles(cluster.directory)
    at = ("-b", servers(cluster), "--command-config")
    refused = kraft_wire("acls", "list", *at, str(files.secrets.client_config))
    assert refused.returncode == 1
    assert "CLUSTER_AUTHORIZATION_FAILED" in refused.stderr
    allowed = kraft_wire("acls", "list", *at, str(files.secrets.admin_config))
    assert allowed.returncode == 0, allowed
    assert "User:client" in allowed.stdout


def test_wrong_password_and_no_login_get_nothing(cluster: ClusterCommand) -> None:
    wrong = AdminClient(librdkafka(cluster, **{"sasl.password": "wrong"}))
    with pytest.raises(KafkaException):
        wrong.list_topics(timeout=5)
    assert kraft_wire("topics", "list", "-b", servers(cluster)).returncode == 2
    controllers = ",".join(
        each["address"] for each in cluster.shown[-1]["nodes"] if each["node_id"] <= 3
    )
    assert kraft_wire("quorum", "describe", "-c", controllers).returncode == 2


def test_status_follows_the_leader_through_a_kill(cluster: ClusterCommand) -> None:
    assert cluster.run("kill", "leader").returncode == 0
    cluster.until(lambda: "leader -" not in cluster.run("status").stdout)
    killed = next(each for each in cluster.shown[-1]["nodes"] if each["state"] == "down")
    assert cluster.run("start", str(killed["node_id"])).returncode == 0


def test_secrets_are_in_files_of_the_owner_only(cluster: ClusterCommand) -> None:
    files = ClusterFiles(cluster.directory)
    owned = [
        *(files.properties(each) for each in range(1, 6)),
        *(files.secrets.certificate(each) for each in range(1, 6)),
        *(files.secrets.admin_config, files.secrets.client_config),
    ]
    assert {each.stat().st_mode & 0o777 for each in owned} == {0o600}
    texts = [each.read_text(encoding="utf-8") for each in owned if each.suffix == ".properties"]
    secrets = set(SECRET.findall("".join(text.replace('\\"', '"') for text in texts)))
    assert len(secrets) == 3
    others = [files.state_file, cluster.log, *(files.log(each) for each in range(1, 6))]
    shown = "".join(each.read_text(encoding="utf-8") for each in others)
    assert [each for each in secrets if each in shown] == []
    assert "PRIVATE KEY" not in shown


@pytest.mark.java
def test_apaches_nodes_and_tools_are_part_of_it(tmp_path: Path) -> None:
    mixed = ("--controllers", "3", "--brokers", "2", "--apache-controllers", "1")
    jars = ("--apache-brokers", "1", "--apache-jars", str(jar_directory()))
    with ClusterCommand(tmp_path / "mixed", "--secure", *mixed, *jars) as running:
        running.until(lambda: brokers_in(running) == [4, 5])
        files = ClusterFiles(running.directory)
        at = ["--bootstrap-server", servers(running), "--command-config"]
        create = ["--create", "--topic", "t", "--replica-assignment", "4:5,5:4"]
        made = run_tool("kafka-topics", [*at, str(files.secrets.client_config), *create])
        assert made.exit_code == 0, made.text
        running.until(lambda: "2 partitions, 0 under" in running.run("status").stdout)
        deleted = run_tool(
            "kafka-topics", [*at, str(files.secrets.client_config), "--delete", "--topic=t"]
        )
        assert "TopicAuthorizationException" in deleted.text, deleted.text
        seen = run_tool("kafka-acls", [*at, str(files.secrets.admin_config), "--list"])
        assert "principal=User:client" in seen.text, seen.text
