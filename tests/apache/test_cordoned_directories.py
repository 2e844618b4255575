"""Cordoned log directories (KIP-1066) beside Apache Kafka 4.3.1, under the same assertions.

Each story runs on Apache's node and on ours. The words of errors are those that Apache's node sent.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kraft_wire.wire.generated.alter_configs import (
    AlterableConfig as ReplacingConfig,
)
from kraft_wire.wire.generated.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResponse,
)
from kraft_wire.wire.generated.alter_configs import (
    AlterConfigsResource as ReplacedResource,
)
from kraft_wire.wire.generated.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from kraft_wire.wire.generated.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kraft_wire.wire.generated.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from kraft_wire.wire.generated.describe_log_dirs import (
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from kraft_wire.wire.generated.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from tests.apache import test_replica_moves as moves
from tests.apache.node import ApacheNode
from tests.apache.test_replica_moves import OurNode, alter, paths, running
from tests.apache.tools import run_tool
from tests.server.wire_client import WireClient
from tests.waiting import until

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(600)]

KEY = "cordoned.log.dirs"
BROKER = 4
SET, DELETE, APPEND, SUBTRACT = range(4)
INVALID_REPLICATION_FACTOR, INVALID_REPLICA_ASSIGNMENT = 38, 39
INVALID_CONFIG, INVALID_REQUEST = 40, 42
UNKNOWN = (
    "requirement failed: All entries in cordoned.log.dirs must be present in log.dirs or log.dir. "
    "Missing entries : "
)
ALL_CORDONED = "All brokers are currently fenced, or have all their log directories cordoned."


def change(
    client: WireClient,
    value: str | None,
    operation: int = SET,
    *,
    broker: str = "1",
    validate_only: bool = False,
) -> tuple[int, str | None]:
    """Change the setting; return the error and its message."""
    config = AlterableConfig(name=KEY, config_operation=operation, value=value)
    resource = AlterConfigsResource(resource_type=BROKER, resource_name=broker, configs=[config])
    request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate_only)
    answer = client.call(request, 1, IncrementalAlterConfigsResponse).responses[0]
    return answer.error_code, answer.error_message


def replace_all(client: WireClient, value: str) -> tuple[int, str | None]:
    """Replace all settings of the broker by this one."""
    configs = [ReplacingConfig(name=KEY, value=value)]
    resource = ReplacedResource(resource_type=BROKER, resource_name="1", configs=configs)
    answer = client.call(AlterConfigsRequest(resources=[resource]), 2, AlterConfigsResponse)
    return answer.responses[0].error_code, answer.responses[0].error_message


def described(client: WireClient) -> tuple[str | None, int, int, bool]:
    """Return the setting as it is described: value, source, type, whether it is read-only."""
    resource = DescribeConfigsResource(
        resource_type=BROKER, resource_name="1", configuration_keys=[KEY]
    )
    answer = client.call(DescribeConfigsRequest(resources=[resource]), 4, DescribeConfigsResponse)
    (found,) = answer.results[0].configs
    return found.value, found.config_source, found.config_type, found.read_only


def directories(client: WireClient, version: int = 5) -> dict[str, tuple[bool, list[str]]]:
    """Return whether each directory is cordoned, and the partitions in it, by its last name."""
    answer = client.call(DescribeLogDirsRequest(topics=None), version, DescribeLogDirsResponse)
    return {
        Path(each.log_dir).name: (
            each.is_cordoned,
            sorted(
                f"{topic.name}-{one.partition_index}"
                for topic in each.topics
                for one in topic.partitions
            ),
        )
        for each in answer.results
    }


def cordoned(client: WireClient) -> list[str]:
    return [name for name, (is_cordoned, _) in directories(client).items() if is_cordoned]


def created(
    client: WireClient,
    name: str,
    partitions: int,
    *,
    on: list[int] | None = None,
    validate_only: bool = False,
) -> tuple[int, str | None]:
    """Create a topic, on given brokers or placed by the controller."""
    assignments = [
        CreatableReplicaAssignment(partition_index=index, broker_ids=on or [])
        for index in range(partitions if on else 0)
    ]
    number, factor = (-1, -1) if on else (partitions, 1)
    topic = CreatableTopic(
        name=name, num_partitions=number, replication_factor=factor, assignments=assignments
    )
    request = CreateTopicsRequest(topics=[topic], timeout_ms=30_000, validate_only=validate_only)
    answer = client.call(request, 7, CreateTopicsResponse).topics[0]
    return answer.error_code, answer.error_message


def grown(client: WireClient, name: str, partitions: int) -> tuple[int, str | None]:
    topic = CreatePartitionsTopic(name=name, count=partitions, assignments=None)
    request = CreatePartitionsRequest(topics=[topic], timeout_ms=30_000)
    answer = client.call(request, 3, CreatePartitionsResponse).results[0]
    return answer.error_code, answer.error_message


def placed(client: WireClient, topic: str, partitions: int) -> dict[str, int]:
    """Return the number of a topic's logs in each directory, once all of them exist."""

    def counts() -> dict[str, int]:
        return {
            name: sum(each.rsplit("-", 1)[0] == topic for each in found)
            for name, (_, found) in directories(client).items()
        }

    until(lambda: sum(counts().values()) == partitions)
    return counts()


@pytest.mark.parametrize("name", ["apache", "ours"])
def test_new_replicas_avoid_cordoned_directories(name: str, tmp_path: Path) -> None:
    data, more = paths(tmp_path)
    with running(name, tmp_path) as client:
        assert described(client) == ("", 5, 7, False)
        assert created(client, "before", 4) == (0, None)
        assert placed(client, "before", 4) == {"data": 2, "more": 2}
        assert change(client, more, validate_only=True) == (0, None)
        assert (cordoned(client), described(client)[0]) == ([], "")
        assert change(client, more) == (0, None)
        until(lambda: cordoned(client) == ["more"])
        assert described(client) == (more, 2, 7, False)
        assert not any(is_cordoned for is_cordoned, _ in directories(client, 4).values())
        assert created(client, "one", 4) == (0, None)
        assert placed(client, "one", 4) == {"data": 4, "more": 0}
        assert created(client, moves.TOPIC, 1) == (0, None)
        assert placed(client, moves.TOPIC, 1) == {"data": 1, "more": 0}
        assert alter(client, more) == INVALID_REPLICA_ASSIGNMENT
        assert alter(client, data) == 0
        assert change(client, "*") == (0, None)
        until(lambda: cordoned(client) == ["data", "more"])

        def is_full() -> bool:
            words = f"Unable to replicate the partition 1 time(s): {ALL_CORDONED}"
            answer = created(client, "all", 1, validate_only=True)
            return answer == (INVALID_REPLICATION_FACTOR, words)

        until(is_full)
        assert grown(client, "one", 5) == (INVALID_REPLICATION_FACTOR, ALL_CORDONED)
        assert created(client, "forced", 3, on=[1]) == (0, None)
        assert placed(client, "forced", 3) == {"data": 3, "more": 0}
        assert change(client, None, DELETE) == (0, None)
        until(lambda: cordoned(client) == [])
        until(lambda: created(client, "after", 6, validate_only=True) == (0, None))
        assert created(client, "after", 6) == (0, None)
        assert placed(client, "after", 6)["more"] == 6
        assert alter(client, more) == 0


@pytest.mark.parametrize("name", ["apache", "ours"])
def test_list_of_the_file_counts_until_a_dynamic_one_replaces_it(name: str, tmp_path: Path) -> None:
    more = paths(tmp_path)[1]
    settings = {"log.dirs": ",".join(paths(tmp_path)), KEY: more}
    process: OurNode | ApacheNode = OurNode(tmp_path, overrides=settings)
    if name == "apache":
        process = ApacheNode(tmp_path, overrides=settings)
        process.format()
    process.start()
    try:
        with WireClient(process.bootstrap) as client:
            until(lambda: cordoned(client) == ["more"])
            assert described(client) == (more, 4, 7, False)
            assert created(client, "t", 4) == (0, None)
            assert placed(client, "t", 4) == {"data": 4, "more": 0}
            assert change(client, "") == (0, None)
            until(lambda: cordoned(client) == [])
            assert described(client) == ("", 2, 7, False)
    finally:
        process.kill()


@pytest.mark.parametrize("name", ["apache", "ours"])
def test_changes_are_refused_in_the_same_words(name: str, tmp_path: Path) -> None:
    data, more = paths(tmp_path)
    with running(name, tmp_path) as client:
        answers = [
            change(client, "/nowhere"),
            change(client, f"{data},/b,/a"),
            change(client, f"*,{data}"),
            change(client, f"{data},{data}"),
            change(client, data, broker=""),
            change(client, data, broker="2"),
            change(client, "/nowhere", APPEND),
            change(client, "/nowhere", SUBTRACT),
            change(client, more, APPEND),
            change(client, more, APPEND),
            replace_all(client, "/nowhere"),
            replace_all(client, data),
            change(client, None, DELETE),
        ]
    alone = (
        "requirement failed: When cordoned.log.dirs is set to *, it must not contain other values"
    )
    per_broker = (
        "Cannot update these configs at default cluster level, broker id must be specified: "
        "[cordoned.log.dirs]"
    )
    assert answers == [
        (INVALID_REQUEST, f"{UNKNOWN}/nowhere"),
        (INVALID_REQUEST, f"{UNKNOWN}/b, /a"),
        (INVALID_REQUEST, alone),
        (0, None),
        (INVALID_REQUEST, per_broker),
        (INVALID_REQUEST, "Unexpected broker id, expected 1, but received 2"),
        (INVALID_REQUEST, f"{UNKNOWN}/nowhere"),
        (0, None),
        (0, None),
        (0, None),
        (INVALID_REQUEST, f"{UNKNOWN}/nowhere"),
        (0, None),
        (0, None),
    ]


def node_with_controller(name: str, folder: Path) -> tuple[Any, Callable[[], str]]:
    """Return a node, and the function that returns its controller's address."""
    apache: Any = moves.node(name, folder)
    if name == "apache":
        return apache, lambda: apache.controller_bootstrap
    listeners = "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0"
    settings = {"log.dirs": ",".join(paths(folder)), "listeners": listeners}
    settings["controller.listener.names"] = "CONTROLLER"
    ours = OurNode(folder, overrides=settings)
    return ours, lambda: ours.ready["listeners"]["CONTROLLER"]


@pytest.mark.parametrize("name", ["apache", "ours"])
def test_controller_only_takes_directories_away(name: str, tmp_path: Path) -> None:
    data, more = paths(tmp_path)
    process, controller_address = node_with_controller(name, tmp_path)
    process.start()
    try:
        with (
            WireClient(process.bootstrap) as client,
            WireClient(controller_address()) as controller,
        ):
            answers = [
                change(controller, data),
                change(client, f"{data},{more}"),
                change(controller, "*"),
                change(controller, f" {more} , {data} "),
                change(controller, data),
                change(controller, more),
                change(controller, ""),
                change(controller, None, DELETE),
                change(controller, data, broker=""),
            ]
            new = (
                "When updating cordoned.log.dirs via controllers,  the new value must be a subset "
                "of the current configuration value."
            )
            assert answers == [
                (INVALID_CONFIG, new),
                (0, None),
                (INVALID_CONFIG, new),
                (0, None),
                (0, None),
                (INVALID_CONFIG, new),
                (0, None),
                (0, None),
                (INVALID_CONFIG, new),
            ]
    finally:
        process.kill()


@pytest.mark.parametrize(("first", "second"), [("apache", "ours"), ("ours", "apache")])
def test_other_make_keeps_directories_cordoned(first: str, second: str, tmp_path: Path) -> None:
    """The tools of 4.3.1 cordon and show; the other make starts on the same directories."""
    more = paths(tmp_path)[1]
    with running(first, tmp_path) as client:
        assert created(client, moves.TOPIC, 4) == (0, None)
        assert placed(client, moves.TOPIC, 4) == {"data": 2, "more": 2}
        at = ["--bootstrap-server", ":".join(map(str, client.sock.getpeername()))]
        broker = ["--entity-type", "brokers", "--entity-name", "1"]
        done = run_tool("kafka-configs", [*at, *broker, "--alter", "--add-config", f"{KEY}={more}"])
        assert done.exit_code == 0, done.text
        until(lambda: cordoned(client) == ["more"])
        shown = run_tool("kafka-configs", [*at, *broker, "--describe"])
        assert f"{KEY}={more} sensitive=false" in shown.text, shown.text
        done = run_tool("kafka-log-dirs", [*at, "--describe"])
        listed = json.loads(done.stdout.splitlines()[-1])["brokers"][0]["logDirs"]
        found = sorted((each["logDir"], len(each["partitions"])) for each in listed)
        assert found == [(path, 2) for path in paths(tmp_path)]
    with running(second, tmp_path, is_new=False) as client:
        until(lambda: cordoned(client) == ["more"])
        assert created(client, "later", 4) == (0, None)
        assert placed(client, "later", 4) == {"data": 4, "more": 0}
        assert change(client, more, SUBTRACT) == (0, None)
        until(lambda: cordoned(client) == [])
