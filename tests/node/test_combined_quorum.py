"""Three nodes that are broker and controller: brokers follow what the quorum commits."""

from kraft_wire.wire.batch_builder import build_batch
from kraft_wire.wire.generated.create_topics import CreatableTopic, CreateTopicsRequest
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kraft_wire.wire.record import Record
from tests.broker.groups.harness import WALL_MS
from tests.node.quorum import NodeQuorum
from tests.node.test_three_controllers import committed

COMBINED = {
    "process.roles": "broker,controller",
    "metadata.log.max.record.bytes.between.snapshots": "1500",
}


def create(quorum: NodeQuorum, node_id: int, name: str) -> int:
    wanted = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    request = CreateTopicsRequest(topics=[wanted], timeout_ms=10_000)
    answer = quorum.ask(node_id, request, listener="PLAINTEXT")
    quorum.until(lambda: answer.response is not None)
    return int(answer.response.topics[0].error_code)


def produce(quorum: NodeQuorum, node_id: int, name: str) -> int:
    batch = bytes(build_batch([Record(None, b"x", timestamp=WALL_MS)]))
    data = PartitionProduceData(index=0, records=batch)
    topics = [TopicProduceData(name=name, partition_data=[data])]
    request = ProduceRequest(acks=-1, timeout_ms=1_000, topic_data=topics)
    answer = quorum.ask(node_id, request, 9, listener="PLAINTEXT")
    quorum.until(lambda: answer.response is not None)
    return int(answer.response.responses[0].partition_responses[0].error_code)


def test_a_topic_that_any_node_is_asked_for_is_served_by_the_broker_that_registered() -> None:
    quorum = NodeQuorum(settings=COMBINED)
    leader = quorum.elect()
    quorum.until(lambda: quorum.images()[0].brokers.get(leader, None) is not None)
    quorum.advance(100)
    for node_id in quorum.voters:
        assert create(quorum, node_id, f"t{node_id}") == ErrorCode.NONE
        assert produce(quorum, leader, f"t{node_id}") == ErrorCode.NONE
    quorum.level()
    assert all(len(image.topics_by_name) == 3 for image in quorum.images())


def test_logs_of_topics_newer_than_the_snapshot_are_no_strays_after_a_restart() -> None:
    quorum = NodeQuorum(settings=COMBINED)
    leader = quorum.elect()
    quorum.advance(100)
    for value in range(12):
        committed(quorum, value)
        quorum.advance(10)
    assert create(quorum, leader, "young") == ErrorCode.NONE
    assert produce(quorum, leader, "young") == ErrorCode.NONE
    quorum.keeps_unsynced = True
    snapshot_id = quorum.members[leader].running.raft.quorum_log.snapshots.latest_id
    assert snapshot_id is not None
    quorum.level()
    for node_id in quorum.voters:
        quorum.kill(node_id)
    for node_id in quorum.voters:
        quorum.start(node_id)
        node = quorum.members[node_id].running
        assert "young" not in node.raft.committed.image.topics_by_name, "not known to be committed"
        assert not node.broker.partitions
    quorum.elect()
    quorum.level()
    quorum.advance(1_000)
    assert quorum.members[leader].running.broker.partitions["young", 0].log_end_offset == 1
    names = [name for member in quorum.members.values() for name, _ in member.lines]
    assert "stray_log_set_aside" not in names


def test_broker_whose_own_controller_lost_the_leadership_keeps_its_session_by_heartbeats() -> None:
    quorum = NodeQuorum(settings=COMBINED)
    first = quorum.elect()
    quorum.advance(100)
    quorum.cut.add(first)
    quorum.advance(8_000)
    second = quorum.elect()
    assert second != first
    quorum.cut.clear()
    quorum.advance(30_000)
    for image in quorum.images():
        assert not image.brokers[first].fenced
        assert not image.brokers[second].fenced
    quorum.cut.add(first)
    quorum.advance(6_500)
    assert not quorum.members[second].running.controller.image.brokers[first].fenced
    quorum.advance(4_000)
    assert quorum.members[second].running.controller.image.brokers[first].fenced
    assert not quorum.members[second].running.controller.image.brokers[second].fenced
    quorum.cut.clear()
    quorum.advance(35_000)  # a heartbeat that was lost on the way is given up after 30 s
    assert not quorum.members[second].running.controller.image.brokers[first].fenced
