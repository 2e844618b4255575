"""Three server processes as one quorum, asked over real sockets by us and by Apache's tools."""

import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from urllib.request import urlopen

import pytest

from kraft_wire.wire.generated.describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from kraft_wire.wire.generated.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from kraft_wire.wire.generated.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    PartitionData,
    TopicData,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from tests.apache.java_process import Outcome
from tests.apache.tools import run_tool
from tests.ports import free_port
from tests.process import KraftWireServer
from tests.quorum_processes import QuorumProcesses
from tests.server.wire_client import WireClient
from tests.waiting import HANG_S, until

BROKER = 4
KEY = "log.retention.ms"
WITHOUT_UVLOOP = (
    sys.executable,
    "-c",
    "import sys; sys.modules['uvloop'] = None\n"
    "from kraft_wire.cli.main import main\nsys.exit(main())",
)


@pytest.fixture(scope="module")
def controllers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[QuorumProcesses]:
    with QuorumProcesses(tmp_path_factory.mktemp("controllers")) as quorum:
        until(lambda: all(has_metadata(quorum, node_id) for node_id in quorum.running))
        yield quorum


def has_metadata(quorum: QuorumProcesses, node_id: int) -> bool:
    """A controller without metadata refuses, as one whose level is too low; tools give up then."""
    with WireClient(quorum.controller(node_id)) as client:
        request = DescribeClusterRequest(endpoint_type=2)
        return client.call(request, 2, DescribeClusterResponse).error_code == ErrorCode.NONE


@pytest.fixture(scope="module")
def combined(tmp_path_factory: pytest.TempPathFactory) -> Iterator[QuorumProcesses]:
    with QuorumProcesses(tmp_path_factory.mktemp("combined"), is_combined=True) as quorum:
        yield quorum


def set_retention(address: str, value: int) -> int:
    """Set a cluster-wide default; return the error code."""
    change = AlterableConfig(name=KEY, config_operation=0, value=str(value))
    resource = AlterConfigsResource(resource_type=BROKER, resource_name="", configs=[change])
    request = IncrementalAlterConfigsRequest(resources=[resource])
    with WireClient(address) as client:
        answer = client.call(request, 1, IncrementalAlterConfigsResponse)
    return answer.responses[0].error_code


def change_at_leader(quorum: QuorumProcesses, value: int) -> None:
    """Set it at whoever leads; a new leader refuses until it has replayed what was before."""

    def is_refused() -> bool:
        leader = quorum.controller(quorum.leader())
        return set_retention(leader, value) == ErrorCode.NOT_CONTROLLER

    until(lambda: not is_refused(), lambda: quorum.log(quorum.leader()))
    until_retention(quorum, quorum.running, value)


def retention(address: str) -> str | None:
    """Return the cluster-wide default as a controller describes it."""
    resource = DescribeConfigsResource(resource_type=BROKER, resource_name="")
    with WireClient(address) as client:
        request = DescribeConfigsRequest(resources=[resource])
        answer = client.call(request, 4, DescribeConfigsResponse)
    return next((each.value for each in answer.results[0].configs if each.name == KEY), None)


def until_retention(quorum: QuorumProcesses, node_ids: list[int], value: int) -> None:
    until(
        lambda: {retention(quorum.controller(each)) for each in node_ids} == {str(value)},
        lambda: [quorum.log(each) for each in node_ids],
    )


def test_three_processes_elect_a_leader_that_describes_them(controllers: QuorumProcesses) -> None:
    leader = controllers.leader()
    described = controllers.describe(leader)
    assert described.leader_id == leader
    assert described.leader_epoch >= 1
    assert [voter.replica_id for voter in described.current_voters] == [1, 2, 3]
    assert described.observers == []
    for other in set(controllers.running) - {leader}:
        assert controllers.describe(other).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_every_controller_registers_with_the_active_one(controllers: QuorumProcesses) -> None:
    def described(node_id: int) -> tuple[int, dict[int, str]]:
        with WireClient(controllers.controller(node_id)) as client:
            request = DescribeClusterRequest(endpoint_type=2)
            answer = client.call(request, 1, DescribeClusterResponse)
        found = {each.broker_id: f"{each.host}:{each.port}" for each in answer.brokers}
        return answer.controller_id, found

    expected = {each: controllers.controller(each) for each in controllers.node_ids}
    until(
        lambda: all(
            described(each) == (controllers.leader(), expected) for each in controllers.running
        )
    )


def test_the_ready_file_and_the_first_line_name_the_listener(controllers: QuorumProcesses) -> None:
    for node_id in controllers.running:
        address = controllers.controller(node_id)
        node = controllers.nodes[node_id]
        assert isinstance(node, KraftWireServer)
        assert node.ready["listeners"] == {"CONTROLLER": address}
        assert f"is ready on {address}\n" in controllers.log(node_id)


@pytest.mark.slow
def test_a_committed_change_is_described_by_all_and_survives_the_leader(tmp_path: Path) -> None:
    with QuorumProcesses(tmp_path) as quorum:
        leader = quorum.leader()
        change_at_leader(quorum, 1_000)
        quorum.kill(leader)
        successor = quorum.leader()
        assert successor != leader
        assert retention(quorum.controller(successor)) == "1000"
        change_at_leader(quorum, 2_000)
        quorum.start(leader)
        until_retention(quorum, quorum.running, 2_000)
        assert quorum.stop(successor) == 0
        assert retention(quorum.controller(quorum.leader())) == "2000"


def test_a_controller_shows_its_metrics(tmp_path: Path) -> None:
    port = free_port()
    with QuorumProcesses(tmp_path, 1, overrides={"metrics.port": str(port)}) as quorum:
        quorum.leader()
        with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=HANG_S) as answer:
            text = answer.read().decode()
    assert 'kafka_network_requestmetrics_requests_total{request="DescribeQuorum"}' in text


def test_a_stop_while_a_connection_is_being_opened_is_clean(tmp_path: Path) -> None:
    quorum = QuorumProcesses(tmp_path, 2, program=WITHOUT_UVLOOP)
    silent = ("127.0.0.1", quorum.controller_ports[2])
    with ExitStack() as sockets:
        listening = sockets.enter_context(socket.socket())
        listening.bind(silent)
        listening.listen(0)
        for _ in range(8):  # until the backlog is full, so that nobody is answered any more
            filling = sockets.enter_context(socket.socket())
            filling.setblocking(False)
            with suppress(BlockingIOError):
                filling.connect(silent)
        quorum.format()
        quorum.start(1)
        assert quorum.stop(1) == 0, quorum.log(1)
    assert "stopped clean=True" in quorum.log(1)
    assert "stopped clean=False" not in quorum.log(1)


def test_whoever_does_not_lead_refuses_a_change(controllers: QuorumProcesses) -> None:
    leader = controllers.leader()
    for other in set(controllers.running) - {leader}:
        assert set_retention(controllers.controller(other), 5) == ErrorCode.NOT_CONTROLLER


def test_a_combined_node_forwards_what_another_controller_decides(
    combined: QuorumProcesses,
) -> None:
    leader = combined.leader()
    for value, node_id in enumerate(combined.running, start=100):
        assert set_retention(combined.client(node_id), value) == ErrorCode.NONE
        until_retention(combined, combined.running, value)
    topic = TopicData(
        topic_name="__cluster_metadata", partitions=[PartitionData(partition_index=0)]
    )
    for node_id in combined.running:
        with WireClient(combined.client(node_id)) as client:
            request = DescribeQuorumRequest(topics=[topic])
            answer = client.call(request, 2, DescribeQuorumResponse)
        assert answer.topics[0].partitions[0].leader_id == leader


def test_a_forwarded_change_waits_for_the_next_leader(tmp_path: Path) -> None:
    with QuorumProcesses(tmp_path, is_combined=True) as quorum:
        leader = quorum.leader()
        quorum.kill(leader)
        asked = quorum.running[0]
        assert set_retention(quorum.client(asked), 77) == ErrorCode.NONE
        until_retention(quorum, quorum.running, 77)


@pytest.mark.java
def test_apaches_tools_describe_the_quorum(controllers: QuorumProcesses) -> None:
    leader = controllers.leader()
    for node_id in controllers.running:
        bootstrap = ["--bootstrap-controller", controllers.controller(node_id)]
        status = run_tool("kafka-metadata-quorum", [*bootstrap, "describe", "--status"])
        assert status.exit_code == 0, status
        lines = dict(line.split(":", 1) for line in status.stdout.splitlines())
        assert lines["LeaderId"].strip() == str(leader)
        for other in controllers.node_ids:
            assert f'CONTROLLER://{controllers.controller(other)}"' in lines["CurrentVoters"]
        replication = run_tool("kafka-metadata-quorum", [*bootstrap, "describe", "--replication"])
        rows = [line.split() for line in replication.stdout.splitlines()[1:]]
        assert sorted(row[0] for row in rows) == ["1", "2", "3"]
        assert [row[-1] for row in rows] == ["Leader", "Follower", "Follower"]


@pytest.mark.java
def test_apaches_tools_change_what_controllers_hold(controllers: QuorumProcesses) -> None:
    node = controllers.controller(controllers.leader())
    entity = ["--entity-type", "brokers", "--entity-default"]
    arguments = ["--bootstrap-controller", node, "--alter", *entity]
    changed = run_tool("kafka-configs", [*arguments, "--add-config", f"{KEY}=4242"])
    assert changed.exit_code == 0, changed
    until_retention(controllers, controllers.running, 4242)
    shown = run_tool("kafka-configs", ["--bootstrap-controller", node, "--describe", *entity])
    assert f"{KEY}=4242" in shown.stdout, shown
    features = run_tool("kafka-features", ["--bootstrap-controller", node, "describe"])
    assert "metadata.version" in features.stdout, features


@pytest.mark.java
def test_apaches_tools_reach_the_quorum_through_a_broker(combined: QuorumProcesses) -> None:
    leader = combined.leader()
    for node_id in combined.running:
        bootstrap = ["--bootstrap-server", combined.client(node_id)]
        status = run_tool("kafka-metadata-quorum", [*bootstrap, "describe", "--status"])
        lines = dict(line.split(":", 1) for line in status.stdout.splitlines())
        assert lines.get("LeaderId", "").strip() == str(leader), status
    upgrade = [*bootstrap, "upgrade", "--feature", "kraft.version=1"]
    seen: list[Outcome] = []

    def is_upgraded() -> bool:
        """Whether it was; the leader refuses until each voter has told what it supports."""
        seen.append(run_tool("kafka-features", upgrade))
        return seen[-1].exit_code == 0

    until(is_upgraded, lambda: seen[-1])
