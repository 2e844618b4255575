"""Replicas that move between the two directories of broker 101, under traffic and faults (KIP-113).

Broker 102 has one directory, and the other replica. Clocks and disks are simulated. The states and
answers are those of release 4.3.1.
"""

from __future__ import annotations

from typing import Any

import pytest

from kraft_wire.broker.replication.moving import MoveState
from kraft_wire.metadata.image import PartitionImage
from kraft_wire.model import DiskFull, Offset, StorageError, TopicPartition, Uuid
from kraft_wire.node.broker_node import BrokerNode
from kraft_wire.storage.log import Log
from kraft_wire.wire.generated.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from kraft_wire.wire.generated.assign_replicas_to_dirs import AssignReplicasToDirsRequest
from kraft_wire.wire.generated.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kraft_wire.wire.generated.describe_log_dirs import DescribeLogDirsRequest
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.fetch import FetchPartition, FetchRequest, FetchTopic
from kraft_wire.wire.generated.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kraft_wire.wire.generated.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kraft_wire.wire.records.record_batch import parse_batches
from tests.broker.groups.harness import WALL_MS
from tests.node.quorum import DIRECTORY, NodeQuorum
from tests.node.test_combined_quorum import produce
from tests.node.test_disk_errors import OTHER
from tests.node.test_log_directories import (
    BESIDE,
    FIRST,
    OURS,
    SECOND,
    actual,
    cluster,
    create,
    partitions,
    told,
)
from tests.storage.making import batch_bytes

ONE_BATCH = {"replica_fetch_max_bytes": "1"}
RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
PATHS = {FIRST: DIRECTORY, SECOND: OTHER}


def node_of(quorum: NodeQuorum, node_id: int = OURS) -> BrokerNode:
    part = quorum.members[node_id].running._broker
    assert isinstance(part, BrokerNode)
    return part


def log_of(quorum: NodeQuorum, number: int = 0, node_id: int = OURS) -> Log:
    log = node_of(quorum, node_id).broker.partitions["t", number].log
    assert isinstance(log, Log)
    return log


def view(quorum: NodeQuorum, number: int = 0) -> PartitionImage:
    found: PartitionImage = partitions(quorum, "t")[number]
    return found


def place(quorum: NodeQuorum, number: int = 0) -> Uuid:
    """The directory that broker 101 serves a replica from."""
    name = TopicPartition("t", number)
    (found,) = [each for each in node_of(quorum).store.log_directories if name in each.logs]
    assert found.meta is not None
    assert found.meta.directory_id is not None
    directory_id: Uuid = found.meta.directory_id
    return directory_id


def elsewhere(quorum: NodeQuorum, number: int = 0) -> Uuid:
    return SECOND if place(quorum, number) == FIRST else FIRST


def alter(quorum: NodeQuorum, path: str, number: int = 0, topic: str = "t") -> ErrorCode:
    """Ask broker 101 for a move."""
    wanted = [AlterReplicaLogDirTopic(name=topic, partitions=[number])]
    request = AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=path, topics=wanted)])
    answer = quorum.ask(OURS, request, listener="PLAINTEXT").response
    assert answer.results[0].topic_name == topic
    assert answer.results[0].partitions[0].partition_index == number
    return ErrorCode(answer.results[0].partitions[0].error_code)


def described(quorum: NodeQuorum, number: int = 0) -> list[tuple[str, bool, int]]:
    """Directory, whether it is a copy, and the lag, of each log of a replica."""
    answer = quorum.ask(OURS, DescribeLogDirsRequest(topics=None), listener="PLAINTEXT").response
    return [
        (directory.log_dir, each.is_future_key, each.offset_lag)
        for directory in answer.results
        for topic in directory.topics
        if topic.name == "t"
        for each in topic.partitions
        if each.partition_index == number
    ]


def slow(quorum: NodeQuorum, rate: str = "1") -> None:
    """Let a move copy one batch, then wait for as long as the rate is measured over."""
    config = AlterableConfig(name=RATE, value=rate)
    resource = AlterConfigsResource(resource_type=4, resource_name=str(OURS), configs=[config])
    request = IncrementalAlterConfigsRequest(resources=[resource])
    answer = quorum.ask(1, request)
    quorum.until(lambda: answer.response is not None)
    assert answer.response.responses[0].error_code == ErrorCode.NONE
    quorum.level()


def moved(quorum: NodeQuorum, wanted: Uuid, number: int = 0) -> None:
    quorum.until(lambda: place(quorum, number) == wanted, 120_000)
    quorum.advance(300)
    quorum.level()
    assert told(quorum, "t")[number] == wanted
    assert names_of(quorum, number) == {wanted: [f"t-{number}"]}


def names_of(quorum: NodeQuorum, number: int = 0) -> dict[Uuid, list[str]]:
    """The directories of a replica on the disk, but those that are to be removed."""
    fs = quorum.members[OURS].fs
    found = {
        each: [
            name
            for name in fs.names(path)
            if name.startswith(f"t-{number}") and not name.endswith("-delete")
        ]
        for each, path in PATHS.items()
    }
    return {each: names for each, names in found.items() if names}


def written(quorum: NodeQuorum, count: int, leader: int = OURS) -> None:
    for _ in range(count):
        assert produce(quorum, leader, "t") == ErrorCode.NONE


def records(quorum: NodeQuorum, node_id: int = OURS, number: int = 0) -> list[tuple[int, int]]:
    """Offsets and checksums of a replica's batches."""
    log = log_of(quorum, number, node_id)
    found: list[tuple[int, int]] = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        read = log.read(offset, 1, upper_bound=log.log_end_offset, min_one_batch=True)
        assert not isinstance(read.records, bytes)
        (batch,) = parse_batches(memoryview(read.records.read()))
        found.append((batch.base_offset, batch.crc))
        offset = Offset(batch.next_offset)
    return found


def longest_wait_ms(quorum: NodeQuorum) -> int:
    """The longest time that the moves of broker 101 wait for, seen after each of 200 ms."""
    moves = node_of(quorum).broker.moves
    waits = []
    for _ in range(200):
        quorum.advance(1)
        due_ms = moves.deadline_ms()
        assert due_ms is not None
        waits.append(due_ms - quorum.now_ms)
    return max(waits)


def served(quorum: NodeQuorum) -> None:
    quorum.until(lambda: quorum.members[OURS].serves_clients)


def alone(**settings: str) -> NodeQuorum:
    """A topic of one replica, which broker 101 leads, with five records."""
    quorum = cluster(**settings)
    create(quorum, "t", 1, replicas=1)
    if view(quorum).leader != OURS:
        request = DeleteTopicsRequest(topics=[DeleteTopicState(name="t")], timeout_ms=1_000)
        quorum.ask(BESIDE, request, listener="PLAINTEXT")
        quorum.advance(1_000)
        create(quorum, "t", 1, replicas=1)
    assert view(quorum).leader == OURS
    quorum.advance(300)
    written(quorum, 5)
    return quorum


def test_led_replica_moves_under_traffic_and_back() -> None:
    quorum = alone()
    for _ in range(2):
        source, target = place(quorum), elsewhere(quorum)
        before = records(quorum)
        assert alter(quorum, PATHS[target]) == ErrorCode.NONE
        assert described(quorum)[0 if target == FIRST else 1] == (PATHS[target], True, len(before))
        written(quorum, 3)
        moved(quorum, target)
        written(quorum, 2)
        assert records(quorum)[: len(before)] == before
        assert len(records(quorum)) == len(before) + 5
        assert described(quorum) == [(PATHS[target], False, 0)]
        assert view(quorum).isr == (OURS,)
        assert source != target


def test_session_of_a_consumer_goes_on_over_a_move() -> None:
    """A session keeps the log of each partition that has nothing new."""
    quorum = alone()
    wanted = FetchPartition(partition=0, fetch_offset=5, partition_max_bytes=1_000)
    topics = [FetchTopic(topic="t", partitions=[wanted])]
    request = FetchRequest(
        max_wait_ms=0, min_bytes=0, max_bytes=10_000, session_id=0, session_epoch=0, topics=topics
    )
    first = quorum.ask(OURS, request, 11, listener="PLAINTEXT").response
    assert alter(quorum, PATHS[elsewhere(quorum)]) == ErrorCode.NONE
    moved(quorum, elsewhere(quorum))
    written(quorum, 1)
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=10_000,
        session_id=first.session_id,
        session_epoch=1,
        topics=[],
    )
    second = quorum.ask(OURS, request, 11, listener="PLAINTEXT").response
    assert [each.high_watermark for topic in second.responses for each in topic.partitions] == [6]


@pytest.mark.parametrize("leader", [OURS, BESIDE])
def test_replica_with_a_peer_moves_and_both_stay_in_sync(leader: int) -> None:
    quorum = cluster()
    create(quorum, "t", 2)
    number = [each.leader for each in partitions(quorum, "t")].index(leader)
    if number:
        quorum.advance(200)
    quorum.advance(300)
    target = elsewhere(quorum, number)
    for _ in range(4):
        produce_to(quorum, leader, number)
    assert alter(quorum, PATHS[target], number) == ErrorCode.NONE
    for _ in range(4):
        produce_to(quorum, leader, number)
    moved(quorum, target, number)
    for _ in range(2):
        produce_to(quorum, leader, number)
    quorum.advance(1_000)
    assert records(quorum, OURS, number) == records(quorum, BESIDE, number)
    assert len(records(quorum, OURS, number)) == 10
    assert set(view(quorum, number).isr) == {OURS, BESIDE}
    assert view(quorum, number).leader == leader


def produce_to(quorum: NodeQuorum, leader: int, number: int) -> None:
    data = PartitionProduceData(index=number, records=batch_bytes(0, timestamp=1))
    request = ProduceRequest(
        acks=-1, timeout_ms=9_000, topic_data=[TopicProduceData(name="t", partition_data=[data])]
    )
    answer = quorum.ask(leader, request, 9, listener="PLAINTEXT")
    quorum.until(lambda: answer.response is not None)
    assert answer.response.responses[0].partition_responses[0].error_code == ErrorCode.NONE


def test_copy_waits_for_the_controller_and_the_log_is_served_meanwhile() -> None:
    quorum = alone()
    source, target = place(quorum), elsewhere(quorum)
    quorum.kill(1)
    assert alter(quorum, PATHS[target]) == ErrorCode.NONE
    quorum.advance(3_000)
    moves = node_of(quorum).broker.moves
    assert moves.state_of(TopicPartition("t", 0)) is MoveState.QUEUED
    assert (place(quorum), [lag for _, is_copy, lag in described(quorum) if is_copy]) == (
        source,
        [0],
    )
    quorum.start(1)
    quorum.elect()
    moved(quorum, target)
    assert moves.state_of(TopicPartition("t", 0)) is None


def test_move_is_cancelled_by_the_replicas_own_directory() -> None:
    quorum = alone(**ONE_BATCH)
    slow(quorum)
    source, target = place(quorum), elsewhere(quorum)
    assert alter(quorum, PATHS[target]) == ErrorCode.NONE
    quorum.advance(50)
    assert len(described(quorum)) == 2
    assert alter(quorum, PATHS[target]) == ErrorCode.NONE, "the same again changes nothing"
    assert len(described(quorum)) == 2
    assert alter(quorum, PATHS[source]) == ErrorCode.NONE
    assert described(quorum) == [(PATHS[source], False, 0)]
    quorum.advance(60_000)
    assert (place(quorum), told(quorum, "t")) == (source, [source])
    assert names_of(quorum) == {source: ["t-0"]}


def test_move_that_the_controller_knows_of_is_cancelled_there_too() -> None:
    quorum = alone()
    source, target = place(quorum), elsewhere(quorum)
    moves, name = node_of(quorum).broker.moves, TopicPartition("t", 0)
    assert alter(quorum, PATHS[target]) == ErrorCode.NONE
    quorum.until(lambda: moves.state_of(name) is MoveState.QUEUED)
    disk: Any = quorum.members[OURS].fs
    disk.fails, disk.kind = ("write", PATHS[target]), DiskFull
    quorum.advance(2_000)
    assert (moves.state_of(name), told(quorum, "t")) == (MoveState.ACCEPTED, [target])
    assert place(quorum) == source, "it cannot be promoted"
    assert longest_wait_ms(quorum) > 90, "replica.fetch.backoff.ms"
    disk.fails = None
    assert alter(quorum, PATHS[source]) == ErrorCode.NONE
    quorum.advance(1_000)
    quorum.level()
    assert (place(quorum), told(quorum, "t")) == (source, [source])


def test_rate_bounds_a_move() -> None:
    quorum = alone(**ONE_BATCH)
    slow(quorum)
    target = elsewhere(quorum)
    assert alter(quorum, PATHS[target]) == ErrorCode.NONE
    quorum.advance(5_000)
    (lag,) = [each for _, is_copy, each in described(quorum) if is_copy]
    assert lag == 4, "one batch, then a wait"
    assert longest_wait_ms(quorum) > 50, "the rate is not read every millisecond"
    moved(quorum, target)


def test_request_that_waits_for_a_flush_is_answered_when_the_log_has_moved() -> None:
    """All of the log is flushed in the other directory; the flush in the old one may never end."""
    quorum = alone(log_flush_interval_messages="1")
    quorum.keeps_flushes_back = True
    data = PartitionProduceData(index=0, records=batch_bytes(0, timestamp=1))
    topics = [TopicProduceData(name="t", partition_data=[data])]
    request = ProduceRequest(acks=-1, timeout_ms=90_000, topic_data=topics)
    answer = quorum.ask(OURS, request, 9, listener="PLAINTEXT")
    quorum.advance(1_000)
    assert answer.response is None
    target = elsewhere(quorum)
    assert alter(quorum, PATHS[target]) == ErrorCode.NONE
    while place(quorum) != target:
        quorum.flush(1)
        quorum.advance(10)
        assert quorum.now_ms < 80_000
    assert answer.response.responses[0].partition_responses[0].error_code == ErrorCode.NONE


def test_moves_take_turns_when_each_step_takes_longer_than_the_pause() -> None:
    quorum = cluster(**ONE_BATCH)
    create(quorum, "t", 4, replicas=1)
    quorum.advance(300)
    ours = [n for n, each in enumerate(partitions(quorum, "t")) if each.leader == OURS]
    for number in ours:
        for _ in range(3):
            produce_to(quorum, OURS, number)
        assert alter(quorum, PATHS[elsewhere(quorum, number)], number) == ErrorCode.NONE
    moves = node_of(quorum).broker.moves
    now_ms, wall_ms = quorum.clocks
    for step in range(len(ours)):
        moves.tick(now_ms + 100 * step, wall_ms + 100 * step)
    lags = [lag for number in ours for _, is_copy, lag in described(quorum, number) if is_copy]
    assert len(ours) > 1
    assert lags == [2] * len(ours)


@pytest.mark.parametrize("is_killed", [True, False])
def test_restarted_broker_goes_on_with_a_move(is_killed: bool) -> None:
    quorum = alone(**ONE_BATCH)
    slow(quorum)
    target = elsewhere(quorum)
    assert alter(quorum, PATHS[target]) == ErrorCode.NONE
    quorum.advance(15_000)
    node_of(quorum).store.log_directories[0].checkpoint()
    log_of(quorum).flush()
    before = records(quorum)
    (quorum.kill if is_killed else quorum.stop)(OURS)
    quorum.start(OURS)
    served(quorum)
    assert place(quorum) != target
    assert len(described(quorum)) == 2
    moved(quorum, target)
    assert records(quorum) == before
    assert "replica_move_resumed" in [name for name, _ in quorum.members[OURS].lines]


def test_power_failure_at_any_change_of_a_move_leaves_one_log_with_all_records() -> None:
    is_over = False
    for changes in range(0, 200, 3):
        quorum = alone(log_flush_interval_messages="1")
        before = records(quorum)
        target = elsewhere(quorum)
        lives = quorum.members[OURS].power_lost
        quorum.lose_power_in(OURS, changes)
        wanted = [AlterReplicaLogDirTopic(name="t", partitions=[0])]
        dirs = [AlterReplicaLogDir(path=PATHS[target], topics=wanted)]
        quorum.ask(OURS, AlterReplicaLogDirsRequest(dirs=dirs), listener="PLAINTEXT")
        quorum.advance(2_000)
        is_over = quorum.members[OURS].power_lost == lives
        quorum.members[OURS].fs.before_change = None
        if not is_over:
            quorum.start(OURS)
            served(quorum)
        assert records(quorum)[:5] == before, changes
        written(quorum, 1)
        quorum.advance(3_000)
        assert len(names_of(quorum)) in (1, 2)
        assert [len(each.logs) for each in node_of(quorum).store.log_directories].count(1) == 1
        if is_over:
            break
    assert changes > 30


def test_failed_target_ends_a_move_and_the_replica_stays_served() -> None:
    quorum = alone(**ONE_BATCH)
    slow(quorum)
    source = place(quorum)
    assert source == FIRST, "the metadata's directory cannot fail alone"
    assert alter(quorum, OTHER) == ErrorCode.NONE
    quorum.advance(50)
    disk: Any = quorum.members[OURS].fs
    disk.fails = ("write", f"{OTHER}/t-0")
    quorum.advance(30_000)
    disk.fails = None
    assert node_of(quorum).broker.moves.target_of(TopicPartition("t", 0)) is None
    written(quorum, 1)
    assert (place(quorum), told(quorum, "t")) == (source, [source])
    assert alter(quorum, OTHER) == ErrorCode.KAFKA_STORAGE_ERROR
    quorum.kill(OURS)
    quorum.start(OURS)
    served(quorum)
    moved(quorum, SECOND)


def test_target_that_fails_at_once_refuses_the_move_and_the_replica_stays_served() -> None:
    quorum = alone(**ONE_BATCH)
    source = place(quorum)
    assert source == FIRST
    disk: Any = quorum.members[OURS].fs
    disk.fails = ("open", f"{OTHER}/t-0")
    assert alter(quorum, OTHER) == ErrorCode.KAFKA_STORAGE_ERROR
    disk.fails = None
    assert node_of(quorum).broker.moves.target_of(TopicPartition("t", 0)) is None
    written(quorum, 1)
    assert place(quorum) == source
    assert alter(quorum, OTHER) == ErrorCode.KAFKA_STORAGE_ERROR, "the directory is offline"


def test_full_target_delays_a_move_until_it_has_room() -> None:
    quorum = alone()
    disk: Any = quorum.members[OURS].fs
    source, target = place(quorum), elsewhere(quorum)
    assert alter(quorum, PATHS[target]) == ErrorCode.NONE
    disk.fails, disk.kind = ("write", f"{PATHS[target]}/t-0"), DiskFull
    quorum.advance(5_000)
    assert (place(quorum), len(described(quorum))) == (source, 2)
    assert longest_wait_ms(quorum) > 90, "replica.fetch.backoff.ms"
    disk.fails = None
    moved(quorum, target)


def test_failed_source_takes_the_replica_offline_and_its_copy_waits_for_the_start() -> None:
    quorum = alone(**ONE_BATCH)
    slow(quorum)
    if place(quorum) == FIRST:
        slow(quorum, "1000000")
        assert alter(quorum, OTHER) == ErrorCode.NONE
        moved(quorum, SECOND)
        slow(quorum)
    quorum.advance(20_000)
    assert alter(quorum, DIRECTORY) == ErrorCode.NONE
    quorum.advance(50)
    node = quorum.members[OURS].running
    node.broker.partitions["t", 0].failed(
        StorageError("read", f"{OTHER}/t-0", "input/output error")
    )
    node.tick(*quorum.clocks)
    quorum.drain(OURS)
    quorum.advance(1_000)
    assert node_of(quorum).broker.moves.target_of(TopicPartition("t", 0)) is None
    assert alter(quorum, DIRECTORY) == ErrorCode.KAFKA_STORAGE_ERROR
    assert described(quorum) == [(DIRECTORY, True, -1)]
    quorum.stop(OURS)
    quorum.start(OURS)
    served(quorum)
    moved(quorum, FIRST)
    assert len(records(quorum)) == 5


def test_deleted_topic_takes_its_copy_along() -> None:
    quorum = alone(**ONE_BATCH)
    slow(quorum)
    assert alter(quorum, PATHS[elsewhere(quorum)]) == ErrorCode.NONE
    quorum.advance(50)
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name="t")], timeout_ms=1_000)
    quorum.ask(BESIDE, request, listener="PLAINTEXT")
    quorum.advance(1_000)
    assert names_of(quorum) == {}
    quorum.advance(120_000)
    fs = quorum.members[OURS].fs
    assert not [name for path in PATHS.values() for name in fs.names(path) if name[:2] == "t-"]
    assert node_of(quorum).broker.moves.target_of(TopicPartition("t", 0)) is None


def test_replica_that_does_not_exist_yet_goes_to_the_wished_directory() -> None:
    quorum = cluster()
    for path in (OTHER, DIRECTORY, OTHER):
        assert alter(quorum, path) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    create(quorum, "t", 1)
    quorum.advance(500)
    assert place(quorum) == SECOND
    create(quorum, "u", 2)
    quorum.advance(500)
    assert set(actual(quorum, "u")) == {FIRST}, "the fewest are there"


def test_wishes_for_replicas_that_never_come_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kraft_wire.node.disks.replica_copies._PREFERRED_MAX", 2)
    quorum = cluster()
    for number in (0, 1, 1, 2):
        alter(quorum, OTHER, number)
    assert list(node_of(quorum).store.preferred) == [("t", 1), ("t", 2)]


def test_segments_of_a_moving_replica_are_not_removed() -> None:
    quorum = alone(**ONE_BATCH, log_retention_check_interval_ms="100", log_retention_bytes="1")
    slow(quorum)
    log = log_of(quorum)
    log.roll(WALL_MS)
    written(quorum, 1)
    assert alter(quorum, PATHS[elsewhere(quorum)]) == ErrorCode.NONE
    quorum.advance(1_000)
    assert log.log_start_offset == 0
    assert alter(quorum, PATHS[place(quorum)]) == ErrorCode.NONE
    quorum.advance(1_000)
    assert log.log_start_offset == 5


def test_controller_is_asked_once_for_each_move() -> None:
    quorum = alone()
    requests = quorum.members[1].running.requests_by_api
    before = requests[AssignReplicasToDirsRequest.API_KEY]
    target = elsewhere(quorum)
    assert alter(quorum, PATHS[target]) == ErrorCode.NONE
    moved(quorum, target)
    quorum.advance(5_000)
    assert requests[AssignReplicasToDirsRequest.API_KEY] == before + 1
