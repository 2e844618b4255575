"""Apache's tools over the wire: topics, groups, configs, offsets, versions, console, performance.

Each test runs against Apache's node as well, which shows that the test asks for nothing that Apache
does not do.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.apache.brokers import NAMES, broker_process
from tests.apache.java_process import Outcome
from tests.apache.tools import run_tool
from tests.clients.running import Broker
from tests.waiting import HANG_S

pytestmark = [pytest.mark.java, pytest.mark.slow]

SHOWN_SECONDS_MAX = HANG_S


@pytest.fixture(scope="module", params=NAMES)
def broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Broker]:
    directory: Path = tmp_path_factory.mktemp(request.param)
    with broker_process(request.param, directory) as running:
        yield running


def tool(broker: Broker, name: str, *arguments: str, stdin: str = "") -> Outcome:
    """Run a tool against the broker and insist that it ended well."""
    done = run_tool(name, ["--bootstrap-server", broker.bootstrap, *arguments], stdin=stdin)
    assert done.exit_code == 0, done.text
    return done


def until_shown(broker: Broker, has: Callable[[str], object], name: str, *arguments: str) -> str:
    """What a tool prints, asked again until it has what a change brings: brokers follow the log.

    A tool also fails where the broker does not know a new topic yet.
    """
    deadline = time.monotonic() + SHOWN_SECONDS_MAX
    options = ["--bootstrap-server", broker.bootstrap, *arguments]
    while True:
        done = run_tool(name, options)
        if done.exit_code == 0 and has(done.stdout):
            return done.stdout
        assert time.monotonic() < deadline, done.text


def create(broker: Broker, topic: str, partitions: int = 1, *more: str) -> None:
    """Create a topic with kafka-topics."""
    tool(
        broker, "kafka-topics", "--create", "--topic", topic, "--partitions", str(partitions), *more
    )


def produce(broker: Broker, topic: str, lines: list[str], *more: str) -> None:
    """Produce lines with the console producer."""
    tool(broker, "kafka-console-producer", "--topic", topic, *more, stdin="\n".join(lines) + "\n")


def consume(broker: Broker, topic: str, count: int, *more: str) -> list[str]:
    """Consume lines with the console consumer."""
    arguments = ["--topic", topic, "--from-beginning", "--max-messages", str(count)]
    arguments += ["--timeout-ms", "30000", *more]
    return tool(broker, "kafka-console-consumer", *arguments).stdout.splitlines()


def test_kafka_topics_creates_describes_alters_lists_and_deletes(broker: Broker) -> None:
    create(broker, "tools-topic", 3, "--config", "retention.ms=3600000")
    describe = ["kafka-topics", "--describe", "--topic", "tools-topic"]
    counted = re.compile(r"PartitionCount: 3\s+ReplicationFactor: 1")
    described = until_shown(broker, counted.search, *describe)
    assert "retention.ms=3600000" in described
    assert len(re.findall(r"Leader: 1\s+Replicas: 1\s+Isr: 1", described)) == 3
    tool(broker, "kafka-topics", "--alter", "--topic", "tools-topic", "--partitions", "5")
    until_shown(broker, lambda text: "PartitionCount: 5" in text, *describe)
    assert "tools-topic" in tool(broker, "kafka-topics", "--list").stdout.split()
    tool(broker, "kafka-topics", "--delete", "--topic", "tools-topic")
    until_shown(broker, lambda text: "tools-topic" not in text.split(), "kafka-topics", "--list")


def test_kafka_topics_says_that_a_topic_exists(broker: Broker) -> None:
    create(broker, "twice")
    arguments = ["--bootstrap-server", broker.bootstrap, "--create", "--topic", "twice"]
    again = run_tool("kafka-topics", arguments)
    assert again.exit_code != 0
    assert "Topic 'twice' already exists" in again.text


def test_console_producer_and_consumer_carry_lines_with_keys_and_codec(broker: Broker) -> None:
    create(broker, "console", 2)
    lines = [f"key{n % 7}:value {n} üñ" for n in range(300)]
    keyed = ["--reader-property", "parse.key=true", "--reader-property", "key.separator=:"]
    produce(broker, "console", lines, *keyed, "--compression-codec", "lz4")
    shown = ["--formatter-property", "print.key=true"]
    shown += ["--formatter-property", "key.separator=:"]
    assert sorted(consume(broker, "console", 300, *shown)) == sorted(lines)


def test_kafka_consumer_groups_lists_describes_resets_and_deletes(broker: Broker) -> None:
    create(broker, "grouped")
    produce(broker, "grouped", [f"line {n}" for n in range(50)])
    assert len(consume(broker, "grouped", 30, "--group", "readers")) == 30
    assert "readers" in tool(broker, "kafka-consumer-groups", "--list").stdout.split()
    group = ["--group", "readers"]
    described = tool(broker, "kafka-consumer-groups", "--describe", *group)
    assert re.search(r"readers\s+grouped\s+0\s+30\s+50\s+20\s", described.stdout), described.text
    empty = re.compile(r"readers.*Empty\s+0").search
    until_shown(broker, empty, "kafka-consumer-groups", "--describe", "--state", *group)
    to_start = ["--reset-offsets", "--to-offset", "10", "--topic", "grouped", "--execute"]
    tool(broker, "kafka-consumer-groups", *group, *to_start)
    described = tool(broker, "kafka-consumer-groups", "--describe", *group)
    assert re.search(r"readers\s+grouped\s+0\s+10\s+50\s+40\s", described.stdout), described.text
    tool(broker, "kafka-consumer-groups", "--delete", *group)
    assert "readers" not in tool(broker, "kafka-consumer-groups", "--list").stdout.split()


def test_kafka_configs_alters_and_describes_topics_and_brokers(broker: Broker) -> None:
    create(broker, "configured")
    topic = ["--entity-type", "topics", "--entity-name", "configured"]
    changed = "cleanup.policy=compact,max.message.bytes=2000000"
    tool(broker, "kafka-configs", "--alter", *topic, "--add-config", changed)
    words = changed.split(",")
    describe = ["kafka-configs", "--describe", *topic]
    until_shown(broker, lambda text: all(word in text for word in words), *describe)
    tool(broker, "kafka-configs", "--alter", *topic, "--delete-config", "cleanup.policy")
    gone = "cleanup.policy=compact"
    until_shown(broker, lambda text: gone not in text, "kafka-configs", "--describe", *topic)
    node = ["--entity-type", "brokers", "--entity-name", "1"]
    tool(broker, "kafka-configs", "--alter", *node, "--add-config", "log.retention.ms=7200000")
    changed = "log.retention.ms=7200000"
    until_shown(broker, lambda text: changed in text, "kafka-configs", "--describe", *node)
    everything = tool(broker, "kafka-configs", "--describe", "--all", *node).stdout
    assert "num.partitions=4" in everything


def test_kafka_configs_refuses_a_wrong_value(broker: Broker) -> None:
    create(broker, "misconfigured")
    topic = ["--entity-type", "topics", "--entity-name", "misconfigured"]
    arguments = ["--bootstrap-server", broker.bootstrap, "--alter", *topic]
    refused = run_tool("kafka-configs", [*arguments, "--add-config", "retention.ms=soon"])
    assert refused.exit_code != 0
    assert "Invalid value soon for configuration retention.ms" in refused.text


def test_kafka_get_offsets_gives_earliest_latest_and_times(broker: Broker) -> None:
    create(broker, "offsets", 2)
    produce(broker, "offsets", [f"line {n}" for n in range(40)])
    ends = tool(broker, "kafka-get-offsets", "--topic", "offsets").stdout.split()
    assert sum(int(line.split(":")[2]) for line in ends) == 40
    for when in ("-2", "earliest"):
        begins = tool(broker, "kafka-get-offsets", "--topic", "offsets", "--time", when).stdout
        assert begins.split() == ["offsets:0:0", "offsets:1:0"]
    at_zero = tool(broker, "kafka-get-offsets", "--topic", "offsets", "--time", "1").stdout.split()
    assert set(at_zero) <= {"offsets:0:0", "offsets:1:0", "offsets:0:", "offsets:1:"}
    newest = tool(broker, "kafka-get-offsets", "--topic", "offsets", "--time", "max-timestamp")
    assert 1 <= len(newest.stdout.split()) <= 2  # a partition without records has no such offset


def test_kafka_broker_api_versions_names_every_api_that_it_is_offered(broker: Broker) -> None:
    shown = tool(broker, "kafka-broker-api-versions").stdout
    assert re.search(r"127\.0\.0\.1:\d+ \(id: 1 rack: null isFenced: false\) -> \(", shown), shown
    assert re.search(r"Produce\(0\): 0 to 13 \[usable: 13\]", shown)
    assert re.search(r"Fetch\(1\): 4 to 18 \[usable: 18\]", shown)
    assert re.search(r"ApiVersions\(18\): 0 to 4 \[usable: 4\]", shown)
    assert "Unknown" not in shown


def test_kafka_producer_and_consumer_perf_test_move_their_records(broker: Broker) -> None:
    create(broker, "perf", 4)
    # A producer that meets a partition of Apache's before its log is there may never send to it.
    until_shown(broker, lambda text: text.count(":0") >= 4, "kafka-get-offsets", "--topic", "perf")
    wanted = ["--topic", "perf", "--num-records", "20000", "--record-size", "200"]
    servers = f"bootstrap.servers={broker.bootstrap}"
    sent = run_tool(
        "kafka-producer-perf-test",
        [*wanted, "--throughput", "-1", "--producer-props", servers, "compression.type=zstd"],
    )
    assert sent.exit_code == 0, sent.text
    assert "20000 records sent" in sent.stdout
    got = tool(
        broker, "kafka-consumer-perf-test", "--topic", "perf", "--messages", "20000",
        "--timeout", "30000",
    )  # fmt: skip
    assert re.search(r", 20000, ", got.stdout), got.text


def test_kafka_delete_records_moves_the_log_start(broker: Broker, tmp_path: Path) -> None:
    create(broker, "shortened")
    produce(broker, "shortened", [f"line {n}" for n in range(20)])
    wanted = tmp_path / "delete.json"
    wanted.write_text(
        '{"partitions":[{"topic":"shortened","partition":0,"offset":15}],"version":1}'
    )
    done = tool(broker, "kafka-delete-records", "--offset-json-file", str(wanted))
    assert re.search(r"partition: shortened-0\s+low_watermark: 15", done.stdout), done.text
    assert consume(broker, "shortened", 5) == [f"line {n}" for n in range(15, 20)]


def test_kafka_log_dirs_and_cluster_describe_the_node(broker: Broker) -> None:
    create(broker, "placed")
    produce(broker, "placed", ["one"])
    described = tool(broker, "kafka-log-dirs", "--describe", "--topic-list", "placed").stdout
    assert re.search(r'"partition":"placed-0","size":[1-9]\d*', described), described
    arguments = ["cluster-id", "--bootstrap-server", broker.bootstrap]
    cluster = run_tool("kafka-cluster", arguments)
    assert cluster.exit_code == 0, cluster.text
    assert re.search(r"Cluster ID: [\w-]{22}", cluster.stdout), cluster.text


def test_kafka_features_describes_the_finalised_levels(broker: Broker) -> None:
    described = tool(broker, "kafka-features", "describe").stdout
    assert re.search(r"Feature: metadata\.version\s.*FinalizedVersionLevel: 4\.3-IV0", described)
