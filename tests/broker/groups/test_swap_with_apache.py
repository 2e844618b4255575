"""Groups and offsets survive a change of the broker: from ours to Apache's, and back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka import Consumer

from kraft_wire.wire.generated.describe_groups import DescribeGroupsRequest
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.list_groups import ListGroupsRequest
from tests.apache.node import ApacheNode
from tests.broker.groups.doors import SocketDoor
from tests.broker.groups.requests import Member, committed, moments
from tests.broker.groups.stories import joined, pair, static_pair
from tests.server_process import ServerProcess

pytestmark = [pytest.mark.java, pytest.mark.client, pytest.mark.slow]

WARM = tuple(f"warm-{n}" for n in range(20))
LONG_MS = 120_000


class ApacheOver(ApacheNode):
    """Apache Kafka started over data that it did not format."""

    def __init__(self, directory: Path, data: Path) -> None:
        super().__init__(directory, overrides={"log.dirs": str(data)})
        self.configure()


@pytest.fixture
def ours(tmp_path: Path) -> Iterator[ServerProcess]:
    overrides = {"offsets.topic.num.partitions": "4", "num.partitions": "1"}
    directory = tmp_path / "ours"
    directory.mkdir()
    server = ServerProcess(directory, overrides=overrides)
    yield server
    server.kill()


@pytest.fixture
def apache(tmp_path: Path, ours: ServerProcess) -> Iterator[ApacheOver]:
    node = ApacheOver(tmp_path / "apache", ours.data)
    yield node
    node.kill()


@pytest.fixture
def apache_tmp(tmp_path: Path) -> Iterator[ApacheNode]:
    node = ApacheNode(tmp_path / "apache")
    yield node
    node.kill()


def modern_consumer(bootstrap: str) -> None:
    """Leave an empty KIP-848 group with a committed offset behind."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "modern",
            "group.protocol": "consumer",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe(["topic"])
    for _ in moments():
        consumer.poll(0.1)
        if consumer.assignment():
            break
    (partition,) = consumer.assignment()
    partition.offset = 41
    consumer.commit(offsets=[partition], asynchronous=False)
    consumer.close()


def test_groups_go_on_under_apache_and_come_back(ours: ServerProcess, apache: ApacheOver) -> None:
    ours.start()
    with closing(SocketDoor(ours.bootstrap)) as door:
        door.create_topic("topic")
        door.await_coordinator(*WARM)
        leader, follower = static_pair(door, "static", session_timeout_ms=LONG_MS)
        member = joined(Member(door, "dynamic", session_timeout_ms=LONG_MS, connection=5))
        assert member.commit(offset=7) == ErrorCode.NONE
        Member(door, "simple").commit(offset=8)
        Member(door, "old").commit(offset=9, version=3, retention_time_ms=86_400_000)
    ours.stop()

    apache.start()
    with closing(SocketDoor(apache.bootstrap)) as door:
        door.await_coordinator(*WARM)
        for each in (leader, follower, member):
            each.door = door
            assert each.heartbeat() == ErrorCode.NONE
            assert each.sync().error == ErrorCode.NONE
        assert bytes(follower.syncing.response.assignment) == b"second"
        offsets = {name: committed(door, name) for name in ("dynamic", "simple", "old")}
        assert [list(found.values()) for found in offsets.values()] == [[7], [8], [9]]
        assert member.commit(offset=17) == ErrorCode.NONE
        first, second = pair(door, "born-there", session_timeout_ms=LONG_MS)
    apache.stop()

    ours.start()
    with closing(SocketDoor(ours.bootstrap)) as door:
        door.await_coordinator(*WARM)
        for each in (leader, follower, member, first, second):
            each.door = door
            assert each.heartbeat() == ErrorCode.NONE, each
        assert committed(door, "dynamic") == {("topic", 0): 17}
        listed = door.send(ListGroupsRequest(), 5).response.groups
        assert sorted((g.group_id, g.group_type, g.group_state) for g in listed) == [
            ("born-there", "classic", "Stable"),
            ("dynamic", "classic", "Stable"),
            ("old", "classic", "Empty"),
            ("simple", "classic", "Empty"),
            ("static", "classic", "Stable"),
        ]
        described = door.send(DescribeGroupsRequest(groups=["born-there"]), 6).response.groups[0]
        assert sorted(m.client_id for m in described.members) == ["first", "second"]


def test_groups_of_apache_come_to_us_those_of_other_protocols_too(
    apache_tmp: ApacheNode, tmp_path: Path
) -> None:
    apache_tmp.format()
    apache_tmp.start()
    with closing(SocketDoor(apache_tmp.bootstrap)) as door:
        door.create_topic("topic")
        door.await_coordinator(*WARM)
        leader, follower = static_pair(door, "static", session_timeout_ms=LONG_MS)
        modern_consumer(apache_tmp.bootstrap)
    apache_tmp.stop()

    server = ServerProcess(apache_tmp.directory)
    server.start()
    try:
        with closing(SocketDoor(server.bootstrap)) as door:
            door.await_coordinator(*WARM)
            for member in (leader, follower):
                member.door = door
                assert member.heartbeat() == ErrorCode.NONE
            assert committed(door, "modern") == {("topic", 0): 41}
            listed = door.send(ListGroupsRequest(), 5).response.groups
            assert sorted((g.group_id, g.group_type, g.group_state) for g in listed) == [
                ("modern", "consumer", "Empty"),
                ("static", "classic", "Stable"),
            ]
            converted = Member(door, "modern")
            joined(converted)
            assert converted.commit(offset=50) == ErrorCode.NONE
        server.stop()
    finally:
        server.kill()

    apache_tmp.start()
    with closing(SocketDoor(apache_tmp.bootstrap)) as door:
        door.await_coordinator(*WARM)
        assert committed(door, "modern") == {("topic", 0): 50}
        listed = door.send(ListGroupsRequest(), 5).response.groups
        assert sorted((g.group_id, g.group_type) for g in listed) == [
            ("modern", "classic"),
            ("static", "classic"),
        ]


def test_groups_and_offsets_survive_a_killed_process(ours: ServerProcess) -> None:
    ours.start()
    with closing(SocketDoor(ours.bootstrap)) as door:
        door.create_topic("topic")
        door.await_coordinator(*WARM)
        leader, follower = static_pair(door, "static", session_timeout_ms=LONG_MS)
        for offset in range(50):
            assert leader.commit(offset=offset) == ErrorCode.NONE
    ours.kill()
    ours.start()
    with closing(SocketDoor(ours.bootstrap)) as door:
        door.await_coordinator(*WARM)
        for member in (leader, follower):
            member.door = door
            assert member.heartbeat() == ErrorCode.NONE
        assert committed(door, "static") == {("topic", 0): 49}
