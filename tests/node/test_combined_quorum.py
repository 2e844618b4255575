"""Three nodes that are broker and controller: brokers follow what the quorum commits."""

from kraft_wire.wire.generated.create_topics import CreatableTopic, CreateTopicsRequest
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record
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


def all_run(quorum: NodeQuorum) -> None:
    """Wait until every broker is registered and unfenced, and its node says so."""
    nodes = [quorum.members[node_id].running for node_id in quorum.voters]
    quorum.until(lambda: all(node.serves_clients for node in nodes))
    quorum.level()


def leader_of(quorum: NodeQuorum, name: str) -> int:
    return int(quorum.images()[0].topics_by_name[name].partitions[0].leader)


def test_brokers_beside_controllers_that_are_not_active_register_with_the_one_that_is() -> None:
    quorum = NodeQuorum(settings=COMBINED)
    quorum.elect()
    all_run(quorum)
    assert quorum.now_ms < 4_000
    for image in quorum.images():
        assert [(each, broker.fenced) for each, broker in sorted(image.brokers.items())] == [
            (node_id, False) for node_id in quorum.voters
        ]
    for member in quorum.members.values():
        assert member.running.broker_epoch == image.brokers[member.node_id].broker_epoch
        assert member.serves_clients


def test_a_topic_that_any_node_is_asked_for_is_served_by_the_broker_that_leads_it() -> None:
    quorum = NodeQuorum(settings=COMBINED)
    quorum.elect()
    all_run(quorum)
    leaders = set()
    for node_id in quorum.voters:
        name = f"t{node_id}"
        assert create(quorum, node_id, name) == ErrorCode.NONE
        quorum.level()
        leaders.add(leader_of(quorum, name))
        assert produce(quorum, leader_of(quorum, name), name) == ErrorCode.NONE
    assert len(leaders) > 1
    assert all(len(image.topics_by_name) == 3 for image in quorum.images())


def test_logs_of_topics_newer_than_the_snapshot_are_no_strays_after_a_restart() -> None:
    quorum = NodeQuorum(settings=COMBINED)
    leader = quorum.elect()
    all_run(quorum)
    for value in range(12):
        committed(quorum, value)
        quorum.advance(10)
    assert create(quorum, leader, "young") == ErrorCode.NONE
    quorum.level()
    home = leader_of(quorum, "young")
    assert produce(quorum, home, "young") == ErrorCode.NONE
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
    all_run(quorum)  # once the sessions of their former lives are over
    assert quorum.members[home].running.broker.partitions["young", 0].log_end_offset == 1
    names = [name for member in quorum.members.values() for name, _ in member.lines]
    assert "stray_log_set_aside" not in names


def test_broker_whose_own_controller_lost_the_leadership_keeps_its_session_by_heartbeats() -> None:
    quorum = NodeQuorum(settings=COMBINED)
    first = quorum.elect()
    all_run(quorum)
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
    quorum.advance(5_000)  # a heartbeat that was lost on the way is given up after half a session
    assert not quorum.members[second].running.controller.image.brokers[first].fenced


def test_active_controller_stops_while_its_own_broker_waits_to_be_registered() -> None:
    quorum = NodeQuorum((1, 2), COMBINED)
    quorum.keeps_flushes_back = True

    def is_registering(node_id: int) -> bool:
        node = quorum.members[node_id].running
        return node.quorum.host.is_active and node.broker_epoch < 0

    for _ in range(1_000):
        active = [node_id for node_id in quorum.voters if is_registering(node_id)]
        if active:
            break
        for node_id in quorum.voters:
            quorum.flush(node_id)
        quorum.advance(10)
    assert quorum.members[active[0]].running.quorum.host.answers == []
    quorum.keeps_flushes_back = False
    quorum.stop(active[0])
