"""The tables of groups say what a broker answers about the groups that clients made there.

Apache Kafka 4.3.1 and our node: groups of all four kinds, transactional offsets among them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, suppress
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from kraft_wire.client import BrokerConnection
from kraft_wire.model import uuid_to_text
from kraft_wire.spark.kraftlog.options import parse_log_options
from kraft_wire.spark.kraftlog.views import metadata_log
from kraft_wire.spark.metadata.metadata_views import image_at
from kraft_wire.storage.os_files import OsFileSystem
from kraft_wire.wire.generated.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from kraft_wire.wire.generated.consumer_protocol_assignment import ConsumerProtocolAssignment
from kraft_wire.wire.generated.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from kraft_wire.wire.generated.list_groups import ListGroupsRequest, ListGroupsResponse
from kraft_wire.wire.generated.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
)
from kraft_wire.wire.generated.share_group_describe import (
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)
from kraft_wire.wire.generated.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from kraft_wire.wire.generated.streams_group_describe import (
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)
from tests.apache.node import ApacheNode
from tests.apache.streams_cluster import Cluster
from tests.apache.streams_members import Member, subtopology, topology
from tests.apache.streams_story import SETTINGS
from tests.server_process import ServerProcess
from tests.spark.offsets_log import Rows, tables_in
from tests.waiting import until

pytestmark = [pytest.mark.java, pytest.mark.client, pytest.mark.slow, pytest.mark.timeout(300)]

TOPIC = "orders"
KINDS = {"old": "classic", "new": "consumer", "loop": "classic"}
OURS = {"offsets.topic.num.partitions": "4", "group.initial.rebalance.delay.ms": "0"}
BY_NAME = 9
SHARE_MEMBER = "AAAAAAAAAAAAAAAAAAAAAQ"


class Told(NamedTuple):
    """What a broker answered, and the tables of what it left."""

    listed: dict[str, tuple[str, str]]
    offsets: dict[tuple[str, str, int], tuple[int, str]]
    described: dict[str, Any]
    tables: Rows


def told_by(node: ApacheNode | ServerProcess) -> Told:
    with closing(BrokerConnection(node.bootstrap)) as connection:
        cluster = Cluster(connection)
        cluster.await_coordinators()
        cluster.topic(TOPIC, 3)
        consumers = [consuming(node.bootstrap, group) for group in ("old", "new")]
        transactions(node.bootstrap)
        streams = Member(connection, "flow", "flow-member")
        cluster.assigns_at_once("flow")
        streams.joins(topology(subtopology(sources=[TOPIC])))
        cluster.keeps_until(streams, lambda: sum(map(len, streams.active.values())) == 3)
        sharing(connection)
        found = (listed(connection), offsets(connection), described(connection))
    node.kill()
    for each in consumers:
        with suppress(Exception):
            each.close()
    fs = OsFileSystem()
    options = parse_log_options({"path": str(node.data), "view": "metadata"})
    names = image_at(fs, metadata_log(fs, options)).topic_names
    return Told(*found, tables_in(node.data, None, names))


def consuming(bootstrap: str, group: str) -> Consumer:
    """Return a member with all partitions, which has committed offsets and stays."""
    protocol = {"old": "classic", "new": "consumer"}[group]
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "group.instance.id": f"static-{group}",
            "group.protocol": protocol,
            "client.id": f"client-{group}",
            "client.rack": "rack",
            "enable.auto.commit": False,
            "log_level": 0,
        }
    )
    consumer.subscribe([TOPIC])
    until(lambda: (consumer.poll(0.1), len(consumer.assignment()) == 3)[1], lambda: "no assignment")
    for turn in range(3):
        places = [TopicPartition(TOPIC, n, turn + n, metadata="note") for n in range(3)]
        consumer.commit(offsets=places, asynchronous=False)
    return consumer


def transactions(bootstrap: str) -> None:
    """Commit offsets of the group `loop`: in a transaction, in an aborted one, in an open one."""
    reading = Consumer({"bootstrap.servers": bootstrap, "group.id": "loop", "log_level": 0})
    metadata = reading.consumer_group_metadata()
    for name, offset in (("good", 7), ("bad", 8), ("open", 9)):
        producer = Producer(
            {"bootstrap.servers": bootstrap, "transactional.id": name, "log_level": 0}
        )
        producer.init_transactions(60)
        producer.begin_transaction()
        producer.send_offsets_to_transaction([TopicPartition(TOPIC, 0, offset)], metadata, 60)
        if name == "good":
            producer.commit_transaction(60)
        if name == "bad":
            producer.abort_transaction(60)
    reading.close()


def sharing(connection: BrokerConnection) -> None:
    """Join a share group until it has partitions."""
    epoch, has = 0, 0

    def beats() -> bool:
        nonlocal epoch, has
        request = ShareGroupHeartbeatRequest(
            group_id="shared",
            member_id=SHARE_MEMBER,
            member_epoch=epoch,
            subscribed_topic_names=None if epoch else [TOPIC],
        )
        answer = connection.send(request, ShareGroupHeartbeatResponse)
        assert answer.error_code == 0, answer
        epoch = answer.member_epoch
        if answer.assignment is not None:
            has = sum(len(each.partitions) for each in answer.assignment.topic_partitions)
        return has == 3

    until(beats, lambda: f"{has} share partitions", every_s=0.3)


def listed(connection: BrokerConnection) -> dict[str, tuple[str, str]]:
    groups = connection.send(ListGroupsRequest(), ListGroupsResponse).groups
    return {each.group_id: (each.group_type, each.group_state) for each in groups}


def offsets(connection: BrokerConnection) -> dict[tuple[str, str, int], tuple[int, str]]:
    wanted = [OffsetFetchRequestGroup(group_id=each, topics=None) for each in KINDS]
    answer = connection.send(
        OffsetFetchRequest(groups=wanted), OffsetFetchResponse, version=BY_NAME
    )
    return {
        (group.group_id, topic.name, each.partition_index): (
            each.committed_offset,
            each.metadata or "",
        )
        for group in answer.groups
        for topic in group.topics
        for each in topic.partitions
    }


def described(connection: BrokerConnection) -> dict[str, Any]:
    """Describe the groups: epochs of group and member, and what the member has."""
    old = connection.send(DescribeGroupsRequest(groups=["old"]), DescribeGroupsResponse).groups[0]
    new = connection.send(
        ConsumerGroupDescribeRequest(group_ids=["new"]), ConsumerGroupDescribeResponse
    ).groups[0]
    shared = connection.send(
        ShareGroupDescribeRequest(group_ids=["shared"]), ShareGroupDescribeResponse
    ).groups[0]
    flow = connection.send(
        StreamsGroupDescribeRequest(group_ids=["flow"]), StreamsGroupDescribeResponse
    ).groups[0]
    member = old.members[0]
    data = bytes(member.member_assignment)
    has = ConsumerProtocolAssignment.decode(data, min(int.from_bytes(data[:2], "big"), 3), 2)[0]
    names = sorted((t.topic, n) for t in has.assigned_partitions for n in t.partitions)
    found: dict[str, Any] = {
        "old": (old.protocol_data, member.member_id, member.client_id, member.client_host, names)
    }
    for each in (new, shared):
        first = each.members[0]
        found[each.group_id] = (
            (each.group_epoch, each.assignment_epoch, first.member_id, first.member_epoch),
            (first.client_id, first.client_host, first.rack_id, first.subscribed_topic_names),
            sorted(
                (t.topic_name, uuid_to_text(t.topic_id), n)
                for t in first.assignment.topic_partitions
                for n in t.partitions
            ),
        )
    task = flow.members[0]
    found["flow"] = (
        (flow.group_epoch, flow.assignment_epoch, task.member_id, task.member_epoch),
        (task.client_id, task.client_host, task.process_id, task.topology_epoch),
        [(t.subtopology_id, n) for t in task.assignment.active_tasks for n in t.partitions],
        [(t.subtopology_id, n) for t in task.target_assignment.active_tasks for n in t.partitions],
    )
    return found


def from_tables(tables: Rows) -> dict[str, Any]:
    """The same from the tables."""
    group = {row["groupId"]: row for row in tables["groups"]}
    member = {row["groupId"]: row for row in tables["members"]}
    old = member["old"]
    found: dict[str, Any] = {
        "old": (
            *(group["old"]["protocol"], old["memberId"], old["clientId"], old["clientHost"]),
            [(each["topic"], each["partition"]) for each in old["assignment"]],
        )
    }
    for name in ("new", "shared", "flow"):
        row = member[name]
        epochs = (
            *(group[name]["groupEpoch"], group[name]["assignmentEpoch"]),
            *(row["memberId"], row["memberEpoch"]),
        )
        client = (row["clientId"], row["clientHost"])
        if name == "flow":
            found[name] = (
                epochs,
                (*client, row["processId"], row["topologyEpoch"]),
                *(
                    [(each["subtopology"], each["partition"]) for each in row[tasks]]
                    for tasks in ("tasks", "targetTasks")
                ),
            )
        else:
            assigned = row["assignment"]
            assert row["targetAssignment"] == assigned
            found[name] = (
                epochs,
                (*client, row["rack"], row["subscribedTopics"]),
                sorted((each["topic"], each["topicId"], each["partition"]) for each in assigned),
            )
    return found


@pytest.fixture(scope="module", params=["apache", "ours"])
def told(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Told]:
    directory = tmp_path_factory.mktemp(request.param)
    node: ApacheNode | ServerProcess
    if request.param == "apache":
        node = ApacheNode(directory, overrides=SETTINGS)
    else:
        node = ServerProcess(directory, overrides=OURS | SETTINGS)
    with node:
        yield told_by(node)


def test_groups_are_those_that_are_listed_in_the_same_state(told: Told) -> None:
    found = {row["groupId"]: (row["groupType"], row["state"]) for row in told.tables["groups"]}
    assert found == told.listed
    assert {found[name][0] for name in ("old", "new", "flow", "shared")} == {
        *("classic", "consumer", "streams", "share")
    }


def test_members_are_those_that_are_described(told: Told) -> None:
    assert from_tables(told.tables) == told.described
    assert len(told.described["shared"][2]) == 3
    static = {row["groupId"]: row["instanceId"] for row in told.tables["members"]}
    assert (static["old"], static["new"]) == ("static-old", "static-new")


def test_offsets_are_those_that_are_fetched(told: Told) -> None:
    rows = told.tables["group_offsets"]
    committed = {
        (row["groupId"], row["topic"], row["partition"]): (row["committedOffset"], row["metadata"])
        for row in rows
        if row["state"] == "committed"
    }
    assert committed == told.offsets
    assert committed["loop", TOPIC, 0] == (7, "")
    assert committed["new", TOPIC, 2] == (4, "note\0"), "the client adds a zero byte"
    pending = [(row["groupId"], row["committedOffset"]) for row in rows if row["producerId"]]
    assert pending == [("loop", 9)]
