"""Brokers of several log directories beside our controllers: what these are told of them (KIP-858).

Broker 101 has two directories, 102 one; their disks are simulated, and some files fail.
"""

import pytest

from kraft_wire.metadata.directory_ids import UNASSIGNED_DIRECTORY
from kraft_wire.metadata.image import NO_LEADER, MetadataImage, PartitionImage
from kraft_wire.model import DiskFull, StorageError, TopicPartition, Uuid
from kraft_wire.node.broker_node import BrokerNode
from kraft_wire.wire.generated.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kraft_wire.wire.generated.assign_replicas_to_dirs import AssignReplicasToDirsRequest
from kraft_wire.wire.generated.create_topics import CreatableTopic, CreateTopicsRequest
from kraft_wire.wire.generated.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kraft_wire.wire.generated.error_code import ErrorCode
from tests.node.quorum import NodeQuorum, directory_id
from tests.node.test_broker_only_nodes import image_of
from tests.node.test_combined_quorum import produce
from tests.node.test_disk_errors import OTHER, TWO_DIRECTORIES, Failing

OURS, BESIDE = 101, 102
FIRST, SECOND = directory_id(OURS), directory_id(OURS, 0, 1)


def cluster(**settings: str) -> NodeQuorum:
    """One controller and the two brokers, which run."""
    quorum = NodeQuorum((1,), {"replica.fetch.backoff.ms": "100"}, disk=Failing)
    quorum.elect()
    quorum.add_broker(OURS, log_dirs=TWO_DIRECTORIES, **settings)
    quorum.add_broker(BESIDE)
    for each in (OURS, BESIDE):
        quorum.until(lambda node_id=each: quorum.members[node_id].serves_clients)  # type: ignore[misc]  # a default binds it
    quorum.level()
    return quorum


def create(quorum: NodeQuorum, name: str, partitions: int, replicas: int = 2) -> None:
    """Create a topic, and give its brokers time to say where they put it."""
    wanted = CreatableTopic(name=name, num_partitions=partitions, replication_factor=replicas)
    request = CreateTopicsRequest(topics=[wanted], timeout_ms=10_000)
    answer = quorum.ask(BESIDE, request, listener="PLAINTEXT")
    quorum.until(lambda: answer.response is not None)
    assert answer.response.topics[0].error_code == ErrorCode.NONE
    quorum.level()


def partitions(quorum: NodeQuorum, name: str) -> list[PartitionImage]:
    image: MetadataImage = image_of(quorum)
    return list(image.topics_by_name[name].partitions.values())


def told(quorum: NodeQuorum, name: str) -> list[Uuid]:
    """The directory on broker 101 of each partition, as the controller has it."""
    return [each.directories[each.replicas.index(OURS)] for each in partitions(quorum, name)]


def actual(quorum: NodeQuorum, name: str) -> list[Uuid]:
    """The same, as the broker's directories have it."""
    part = quorum.members[OURS].running._broker
    assert isinstance(part, BrokerNode)
    places: dict[TopicPartition, Uuid] = {}
    for directory in part.store.log_directories:
        assert directory.meta is not None
        assert directory.meta.directory_id is not None
        places |= dict.fromkeys(directory.logs, directory.meta.directory_id)
    return [places[TopicPartition(name, each.partition)] for each in partitions(quorum, name)]


def leaders(quorum: NodeQuorum, name: str) -> list[int]:
    return [each.leader for each in partitions(quorum, name)]


def fail_second(quorum: NodeQuorum, name: str, *, is_alone: bool = False) -> None:
    """Let the second directory fail, at a partition of a topic that is there.

    `is_alone`: the controller dies first.
    """
    number = actual(quorum, name).index(SECOND)
    node = quorum.members[OURS].running
    partition = node.broker.partitions[name, number]
    if is_alone:
        quorum.kill(1)
    partition.failed(StorageError("write", f"{OTHER}/{name}-{number}", "input/output error"))
    node.tick(*quorum.clocks)  # a disk fails within a call
    quorum.drain(OURS)


def test_controller_learns_where_a_broker_of_two_directories_puts_its_replicas() -> None:
    quorum = cluster()
    create(quorum, "t", 4)
    assert told(quorum, "t") == [UNASSIGNED_DIRECTORY] * 4
    quorum.advance(200)
    quorum.level()
    assert told(quorum, "t") == actual(quorum, "t")
    assert sorted(told(quorum, "t")) == [FIRST, FIRST, SECOND, SECOND]
    assert {each.partition_epoch for each in partitions(quorum, "t")} == {1}, "told once"
    requests = quorum.members[1].running.requests_by_api
    assert requests[AssignReplicasToDirsRequest.API_KEY] == 1, "all of them together"
    quorum.kill(OURS)
    quorum.start(OURS)
    quorum.until(lambda: quorum.members[OURS].serves_clients)
    quorum.advance(5_000)
    assert requests[AssignReplicasToDirsRequest.API_KEY] == 1, "nothing else is so"


def test_replicas_in_a_directory_that_fails_leave_the_isr_and_the_others_stay() -> None:
    quorum = cluster()
    create(quorum, "t", 4)
    quorum.advance(200)
    lost = [each == SECOND for each in actual(quorum, "t")]
    fail_second(quorum, "t")
    quorum.advance(200)
    quorum.level()
    assert image_of(quorum).brokers[OURS].log_dirs == (FIRST,)
    assert not image_of(quorum).brokers[OURS].fenced
    isrs = [set(each.isr) for each in partitions(quorum, "t")]
    assert isrs == [{BESIDE} if each else {OURS, BESIDE} for each in lost]
    assert [each for each, is_lost in zip(leaders(quorum, "t"), lost, strict=True) if is_lost] == [
        BESIDE
    ] * 2
    create(quorum, "u", 2, replicas=2)
    quorum.advance(1_000)
    assert set(told(quorum, "u")) == {FIRST}
    assert [set(each.isr) for each in partitions(quorum, "u")] == [{OURS, BESIDE}] * 2


def test_directory_that_fails_before_it_was_told_of_takes_its_replicas_along() -> None:
    quorum = cluster()
    create(quorum, "t", 4, replicas=2)
    lost = [each == SECOND for each in actual(quorum, "t")]
    assert told(quorum, "t") == [UNASSIGNED_DIRECTORY] * 4
    fail_second(quorum, "t")
    quorum.advance(500)
    quorum.level()
    assert [OURS in each.isr for each in partitions(quorum, "t")] == [not each for each in lost]


def test_sole_replica_in_a_failed_directory_is_without_leader_until_a_restart() -> None:
    quorum = cluster()
    names = [f"t{number}" for number in range(6)]
    for name in names:
        create(quorum, name, 1, replicas=1)
    quorum.advance(500)
    image = image_of(quorum)
    ours = [each for each in names if image.topics_by_name[each].partitions[0].leader == OURS]
    name = next(each for each in ours if actual(quorum, each) == [SECOND])
    assert produce(quorum, OURS, name) == ErrorCode.NONE
    disk = quorum.members[OURS].fs
    assert isinstance(disk, Failing)
    disk.fails = ("write", f"{OTHER}/{name}-0")
    assert produce(quorum, OURS, name) == ErrorCode.KAFKA_STORAGE_ERROR
    quorum.advance(500)
    assert leaders(quorum, name) == [NO_LEADER]
    assert produce(quorum, OURS, name) == ErrorCode.KAFKA_STORAGE_ERROR
    disk.fails = None
    quorum.stop(OURS)
    quorum.start(OURS)
    quorum.until(lambda: quorum.members[OURS].serves_clients)
    quorum.advance(500)
    assert leaders(quorum, name) == [OURS]
    assert produce(quorum, OURS, name) == ErrorCode.NONE
    assert set(image_of(quorum).brokers[OURS].log_dirs) == {FIRST, SECOND}


def test_broker_stops_that_cannot_tell_of_a_failed_directory_in_time() -> None:
    quorum = cluster(log_dir_failure_timeout_ms="5000")
    create(quorum, "t", 2)
    quorum.advance(500)
    member = quorum.members[OURS]
    member.may_give_up = True
    began_ms = quorum.now_ms
    fail_second(quorum, "t", is_alone=True)
    quorum.until(lambda: member.is_done)
    assert quorum.now_ms - began_ms == 5_000
    assert member.gave_up is not None
    assert "log.dir.failure.timeout.ms" in member.gave_up


def test_what_is_in_a_directory_that_fails_at_the_start_is_not_served_and_follows_nobody() -> None:
    """It could catch up and rejoin the ISR, and a copy on a failed disk would count."""
    quorum = cluster()
    names = ["t0", "t1"]
    for name in names:
        create(quorum, name, 1)
    create(quorum, "gone", 2)
    quorum.advance(500)
    name = next(each for each in names if actual(quorum, each) == [SECOND])
    other = next(each for each in names if each != name)
    quorum.stop(OURS)
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name="gone")], timeout_ms=10_000)
    answer = quorum.ask(BESIDE, request, listener="PLAINTEXT")
    quorum.until(lambda: answer.response is not None)
    assert [produce(quorum, BESIDE, each) for each in names] == [ErrorCode.NONE] * 2
    member = quorum.members[OURS]
    assert isinstance(member.fs, Failing)
    member.fs.fails = ("rename", f"{OTHER}/gone-")
    quorum.start(OURS)
    quorum.until(lambda: member.serves_clients)
    member.fs.fails = None
    quorum.until(lambda: OURS in partitions(quorum, other)[0].isr)
    quorum.advance(3_000)
    assert [each for each, _ in member.lines].count("log_directory_offline") == 1
    assert produce(quorum, OURS, name) == ErrorCode.KAFKA_STORAGE_ERROR
    assert partitions(quorum, name)[0].isr == (BESIDE,)
    part = member.running._broker
    assert isinstance(part, BrokerNode)
    log = part.store.log_directories[1].logs[TopicPartition(name, 0)]
    assert log.log_end_offset == 0, "nothing was fetched into it"


def test_directory_that_fails_before_any_metadata_come_stops_the_broker() -> None:
    """As one that cannot be read: nobody knows what lies in it, and an empty log must not."""
    quorum = NodeQuorum((1,), disk=Failing)
    quorum.elect()
    quorum.cut.add(1)
    quick = {"log_flush_offset_checkpoint_interval_ms": "1000"}
    disk = quorum.add_broker(OURS, log_dirs=TWO_DIRECTORIES, **quick).fs
    assert isinstance(disk, Failing)
    disk.fails = ("write", f"{OTHER}/")
    quorum.advance(2_000)
    assert "log_directory_offline" in [name for name, _ in quorum.members[OURS].lines]
    quorum.cut.clear()
    with pytest.raises(StorageError, match=OTHER):
        quorum.advance(10_000)


def test_replica_that_found_no_room_and_moved_is_not_made_once_there_is_some() -> None:
    """It would be a log that no topic accounts for, and would fetch what is not ours."""
    quorum = cluster()
    member = quorum.members[OURS]
    assert isinstance(member.fs, Failing)
    member.fs.fails, member.fs.kind = ("mkdir", "t-0"), DiskFull
    create(quorum, "t", 1)
    quorum.advance(200)
    assert member.running.broker.partitions["t", 0].offline
    wanted = ReassignablePartition(partition_index=0, replicas=[BESIDE])
    topics = [ReassignableTopic(name="t", partitions=[wanted])]
    request = AlterPartitionReassignmentsRequest(topics=topics, timeout_ms=5_000)
    answer = quorum.ask(BESIDE, request, listener="PLAINTEXT")
    quorum.until(lambda: answer.response is not None)
    quorum.until(lambda: partitions(quorum, "t")[0].replicas == (BESIDE,))
    quorum.advance(1_000)
    member.fs.fails = None
    quorum.advance(3_000)
    assert ("t", 0) not in member.running.broker.partitions
