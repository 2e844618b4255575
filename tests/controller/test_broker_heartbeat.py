"""BrokerHeartbeat and sessions: fenced and unfenced, shut down, silent, and a new controller."""

import pytest

from kraft_wire.metadata.image import NO_LEADER, PartitionImage
from kraft_wire.metadata.records import VersionedRecord
from kraft_wire.model import Uuid
from kraft_wire.wire.generated.broker_heartbeat import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
)
from kraft_wire.wire.generated.broker_registration_change_record import (
    BrokerRegistrationChangeRecord,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.partition_change_record import PartitionChangeRecord
from tests.controller.broker_cluster import BrokerCluster, directory
from tests.metadata.observed_records import observed_records

Flags = tuple[bool, bool, bool]


def flags(answer: BrokerHeartbeatResponse) -> Flags:
    """Whether the broker is caught up, fenced, and should shut down."""
    assert answer.error_code == ErrorCode.NONE
    return answer.is_caught_up, answer.is_fenced, answer.should_shut_down


def shape(partition: PartitionImage) -> tuple[int, tuple[int, ...], int]:
    """Leader, ISR, leader epoch."""
    return partition.leader, partition.isr, partition.leader_epoch


@pytest.mark.parametrize("broker_epoch", [-1, 3, 5])
@pytest.mark.parametrize("broker_id", [-1, 2, 9])
def test_heartbeat_of_another_epoch_or_of_nobody_is_stale(
    broker_id: int, broker_epoch: int
) -> None:
    cluster = BrokerCluster([2])
    assert cluster.epochs[2] not in (-1, 5)
    request = BrokerHeartbeatRequest(broker_id=broker_id, broker_epoch=broker_epoch)
    if (broker_id, broker_epoch) == (2, cluster.epochs[2]):
        return
    answer = cluster.request(request)
    assert answer == BrokerHeartbeatResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)


@pytest.mark.parametrize(
    ("wishes", "answered", "fenced"),
    [
        ({"want_fence": True}, (True, True, False), True),
        ({}, (True, False, False), False),
        ({"want_shut_down": True}, (True, True, True), True),
        ({"want_fence": True, "want_shut_down": True}, (True, True, True), True),
    ],
)
@pytest.mark.parametrize("begins_fenced", [False, True])
def test_broker_that_leads_nothing_becomes_what_it_wants(
    wishes: dict[str, bool], answered: Flags, fenced: bool, begins_fenced: bool
) -> None:
    cluster = BrokerCluster([2])
    if begins_fenced:
        cluster.heartbeat(2, want_fence=True)
    assert flags(cluster.heartbeat(2, **wishes)) == answered
    assert cluster.loader.image.brokers[2].fenced is fenced
    assert not cluster.loader.image.brokers[2].in_controlled_shutdown


def test_broker_is_not_unfenced_before_it_knows_its_registration() -> None:
    cluster = BrokerCluster()
    cluster.register(2)
    at = cluster.loader.last_offset
    assert flags(cluster.heartbeat(2, offset=at - 1)) == (False, True, False)
    assert flags(cluster.heartbeat(2, offset=at)) == (True, False, False)


def test_unchanged_heartbeat_writes_nothing() -> None:
    cluster = BrokerCluster([2])
    before = len(cluster.committed)
    for _ in range(3):
        assert flags(cluster.heartbeat(2)) == (True, False, False)
    assert len(cluster.committed) == before


def test_controlled_shutdown_is_over_when_every_active_broker_knows_of_it() -> None:
    cluster = BrokerCluster([2, 3, 4])
    cluster.create("t", [2, 3])
    since = len(cluster.committed)
    assert flags(cluster.heartbeat(2, want_shut_down=True)) == (True, False, False)
    change, partition = cluster.committed[since:]
    epoch = cluster.epochs[2]
    assert change == VersionedRecord(
        BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=epoch, in_controlled_shutdown=1), 1
    )
    assert isinstance(partition.record, PartitionChangeRecord)
    assert (partition.record.leader, partition.record.isr) == (3, [3])
    end = cluster.loader.last_offset
    cluster.heartbeat(3, offset=end)
    cluster.heartbeat(4, offset=end - 1)
    assert flags(cluster.heartbeat(2, want_shut_down=True)) == (True, False, False)
    cluster.heartbeat(4, offset=end)
    since = len(cluster.committed)
    assert flags(cluster.heartbeat(2, want_shut_down=True)) == (True, True, True)
    fence = BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=epoch, fenced=1)
    assert cluster.committed[since:] == [VersionedRecord(fence)]


def test_broker_that_still_leads_is_not_told_to_stop() -> None:
    cluster = BrokerCluster([2, 3])
    cluster.create("t", [2, 3])
    cluster.heartbeat(2, want_shut_down=True)
    record = PartitionChangeRecord(
        topic_id=cluster.loader.image.topics_by_name["t"].topic_id, partition_id=0, leader=2
    )
    cluster.commit([VersionedRecord(record, 2)])
    cluster.heartbeat(3)
    assert flags(cluster.heartbeat(2, want_shut_down=True)) == (True, False, False)


def test_only_replica_stops_and_starts_as_in_the_log_of_apaches_controller() -> None:
    """Broker 101 of the observed log stopped at offsets 230 to 251 and came back at 336."""
    theirs = observed_records("metadata_log.jsonl")
    cluster = BrokerCluster([101], keeps_elr=True)
    cluster.create("t", [101])

    def compared(record: object) -> object:
        if isinstance(record, PartitionChangeRecord):
            record.topic_id, record.partition_id = Uuid(bytes(16)), 0
        if isinstance(record, BrokerRegistrationChangeRecord):
            record.broker_epoch = 0
        return record

    since = len(cluster.committed)
    cluster.heartbeat(101, want_shut_down=True)
    cluster.heartbeat(101, want_shut_down=True)
    stopped = cluster.committed[since:]
    observed = {each.offset: each for each in theirs}
    for ours, offset in zip(stopped, (230, 231, 251), strict=True):
        assert ours.version == observed[offset].version
        assert compared(ours.record) == compared(observed[offset].record)
    cluster.register(101, 2, previous_epoch=cluster.epochs[101])
    since = len(cluster.committed)
    cluster.heartbeat(101, cordoned_log_dirs=[])
    started = {type(each.record): each for each in cluster.committed[since:-1]}
    for offset in (344, 345):
        ours = started[type(observed[offset].record)]
        assert compared(ours.record) == compared(observed[offset].record)
        assert ours.version == observed[offset].version
    assert compared(cluster.committed[-1].record) == compared(observed[343].record)
    assert cluster.committed[-1].version == observed[343].version


def test_silent_broker_is_fenced_and_another_one_leads() -> None:
    cluster = BrokerCluster([2, 3])
    cluster.create("t", [2, 3], [3, 2])
    cluster.create("u", [2])
    cluster.pass_time(9_000, alive=[3])
    assert shape(cluster.partition()) == (2, (2, 3), 0)
    since = len(cluster.committed)
    cluster.pass_time(1_000, alive=[3])
    assert cluster.loader.image.brokers[2].fenced
    assert not cluster.loader.image.brokers[3].fenced
    assert shape(cluster.partition("t", 0)) == (3, (3,), 1)
    assert shape(cluster.partition("t", 1)) == (3, (3,), 0)
    assert shape(cluster.partition("u")) == (NO_LEADER, (2,), 1)
    kinds = [type(each) for each in cluster.written(since)]
    assert kinds == [PartitionChangeRecord] * 3 + [BrokerRegistrationChangeRecord]
    cluster.pass_time(60_000, alive=[3])
    assert len(cluster.written(since)) == 4, "a fenced broker is not fenced again"
    cluster.heartbeat(2)
    assert [cluster.partition("t", number).leader for number in range(2)] == [3, 3]
    assert shape(cluster.partition("u")) == (2, (2,), 2)
    assert cluster.partition("t", 0).isr == (3,), "only its leader takes it back into the ISR"


def test_brokers_that_fall_silent_together_are_fenced_one_after_the_other() -> None:
    cluster = BrokerCluster([2, 3])
    cluster.create("t", [2, 3])
    cluster.pass_time(10_000)
    assert shape(cluster.partition()) == (NO_LEADER, (3,), 2)


@pytest.mark.parametrize(("allowed", "leader"), [("true", 3), ("false", NO_LEADER)])
def test_unclean_leader_is_alone_in_the_isr_and_only_where_the_topic_allows_it(
    allowed: str, leader: int
) -> None:
    cluster = BrokerCluster([2, 3])
    cluster.create("t", [2, 3])
    cluster.configure("t", "unclean.leader.election.enable", allowed)
    cluster.pass_time(10_000, alive=[2])
    cluster.heartbeat(3)
    assert shape(cluster.partition()) == (2, (2,), 0)
    cluster.pass_time(10_000, alive=[3])
    partition = cluster.partition()
    assert partition.leader == leader
    assert partition.isr == ((3,) if leader == 3 else (2,))
    assert partition.leader_recovery_state == (1 if leader == 3 else 0)


def test_new_active_controller_gives_every_unfenced_broker_a_new_session() -> None:
    cluster = BrokerCluster([2, 3])
    cluster.heartbeat(3, want_fence=True)
    cluster.now_ms = 100_000
    each, image = cluster.controller, cluster.loader.image
    each.renounce(image)
    assert each.session_deadline_ms() is None
    assert each.stale_broker_records(cluster.now_ms) == []
    each.become_active(
        image, leader_epoch=2, in_transaction=False, bootstrap=[], now_ms=cluster.now_ms
    )
    assert each.session_deadline_ms() == 109_001
    cluster.pass_time(9_000)
    assert not cluster.loader.image.brokers[2].fenced
    cluster.pass_time(1)
    assert cluster.loader.image.brokers[2].fenced
    assert each.session_deadline_ms() is None


def test_that_a_broker_stops_is_written_once_whoever_is_the_active_controller() -> None:
    """A new one has no session that says so, but the metadata do."""
    cluster = BrokerCluster([2, 3])
    cluster.create("t", [2, 3])
    cluster.heartbeat(2, want_shut_down=True)
    each, image = cluster.controller, cluster.loader.image
    assert image.brokers[2].in_controlled_shutdown
    each.renounce(image)
    each.become_active(
        image, leader_epoch=2, in_transaction=False, bootstrap=[], now_ms=cluster.now_ms
    )
    record = PartitionChangeRecord(
        topic_id=image.topics_by_name["t"].topic_id, partition_id=0, leader=2
    )
    cluster.commit([VersionedRecord(record, 2)])  # it leads what it is in no ISR of
    since = len(cluster.committed)
    cluster.heartbeat(2, want_shut_down=True)
    assert cluster.written(since) == []


def test_broker_beside_the_active_controller_needs_no_heartbeats() -> None:
    cluster = BrokerCluster([1, 2])
    cluster.pass_time(20_000)
    fenced = {number: each.fenced for number, each in cluster.loader.image.brokers.items()}
    assert fenced == {1: False, 2: True}
    assert cluster.register(1, 2).error_code == ErrorCode.DUPLICATE_BROKER_REGISTRATION


def test_failed_directory_takes_its_replicas_out_of_the_isr() -> None:
    cluster = BrokerCluster()
    cluster.register(2, log_dirs=[directory(2, 0), directory(2, 1)])
    cluster.heartbeat(2)
    cluster.register(3)
    cluster.heartbeat(3)
    cluster.create("t", [2, 3], [2, 3])
    moves = [
        PartitionChangeRecord(
            topic_id=cluster.loader.image.topics_by_name["t"].topic_id,
            partition_id=number,
            directories=[directory(2, number), directory(3)],
        )
        for number in range(2)
    ]
    cluster.commit([VersionedRecord(each, 2) for each in moves])
    since = len(cluster.committed)
    cluster.heartbeat(2, offline_log_dirs=[directory(2, 1), directory(9)])
    assert shape(cluster.partition("t", 0)) == (2, (2, 3), 0)
    assert shape(cluster.partition("t", 1)) == (3, (3,), 1)
    assert cluster.loader.image.brokers[2].log_dirs == (directory(2, 0),)
    assert cluster.committed[-1].version == 2
    cluster.heartbeat(2, offline_log_dirs=[directory(2, 1)])
    assert len(cluster.written(since)) == 2, "once"


def test_broker_that_comes_with_a_failed_directory_leads_nothing_in_it() -> None:
    """A leader there would serve nobody, and who comes later would not be elected beside it."""
    cluster = BrokerCluster()
    cluster.register(2, log_dirs=[directory(2, 0), directory(2, 1)])
    cluster.heartbeat(2)
    cluster.create("t", [2], [2])
    moves = [
        PartitionChangeRecord(
            topic_id=cluster.loader.image.topics_by_name["t"].topic_id,
            partition_id=number,
            directories=[directory(2, number)],
        )
        for number in range(2)
    ]
    cluster.commit([VersionedRecord(each, 2) for each in moves])
    cluster.heartbeat(2, want_fence=True)
    assert [cluster.partition("t", each).leader for each in range(2)] == [NO_LEADER] * 2
    assert not cluster.heartbeat(2, offline_log_dirs=[directory(2, 1)]).is_fenced
    assert [cluster.partition("t", each).leader for each in range(2)] == [2, NO_LEADER]
    assert cluster.loader.image.brokers[2].log_dirs == (directory(2, 0),)


def test_cordoned_directories_are_recorded_when_they_change() -> None:
    cluster = BrokerCluster([2])
    since = len(cluster.committed)
    for cordoned in ([directory(2)], [directory(2)], [], []):
        cluster.heartbeat(2, cordoned_log_dirs=cordoned)
    written = cluster.written(since)
    assert [getattr(each, "cordoned_log_dirs", None) for each in written] == [[directory(2)], []]
