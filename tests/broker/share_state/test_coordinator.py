"""The share coordinator over time: first use, failures, pruning, cold states, deleted topics."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kraft_wire.broker.offline_log import OfflineLog
from kraft_wire.broker.share_persister import SharePartitionKey
from kraft_wire.broker.share_state.assembly import _delete_records
from kraft_wire.broker.share_state.coordinator_keys import coordinator_key, parse_coordinator_key
from kraft_wire.broker.share_state.records import record_of
from kraft_wire.broker.share_state.replay import Replay
from kraft_wire.broker.share_state.state import ShareState, ShareUpdate
from kraft_wire.broker.share_state.state_table import StateTable, Tombstone
from kraft_wire.model import Offset, StorageError, Uuid
from kraft_wire.wire.generated.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kraft_wire.wire.generated.error_code import ErrorCode as E
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.legacy_batch import LegacyBatch
from kraft_wire.wire.records.record import Record
from kraft_wire.wire.records.record_batch import RecordBatch
from tests.broker.share_state.sharing import STATE_TOPIC, TOPIC, Sharing, stored
from tests.broker.test_append_validation import batch as produced_batch
from tests.broker.test_append_validation import partition as real_partition
from tests.broker.test_append_validation import produced
from tests.wire.odd_batches import old_message

ZEROS = "AAAAAAAAAAAAAAAAAAAAAA"
PRUNE_MS = 300_000


def test_the_state_topic_is_made_for_its_first_user() -> None:
    """932-COORD-01: with Kafka's settings; it is an internal topic."""
    node = Sharing(
        is_in_use=False,
        **{
            "share.coordinator.state.topic.segment.bytes": "2097152",
            "share.coordinator.state.topic.num.partitions": "3",
        },
    )
    assert node.node.broker.image.topic(STATE_TOPIC) is None
    first = node.find(f"g:{ZEROS}:0")
    assert first.error_code in (E.NONE, E.COORDINATOR_NOT_AVAILABLE)
    node.settle()
    topic = node.node.broker.image.topic(STATE_TOPIC)
    assert topic is not None
    assert sorted(topic.partitions) == [0, 1, 2]
    assert node.node.broker.image.config(2, STATE_TOPIC) == {
        "cleanup.policy": "delete",
        "compression.type": "producer",
        "min.insync.replicas": "1",
        "retention.ms": "-1",
        "segment.bytes": "2097152",
    }
    assert node.find(f"g:{ZEROS}:0").error_code == E.NONE


@pytest.mark.parametrize(
    "key",
    [
        "",
        "g",
        f"g:{ZEROS}",
        f":{ZEROS}:0",
        f"   :{ZEROS}:0",
        f"g:{ZEROS}:x",
        f"g:{ZEROS}:",
        f"g:{ZEROS}:2147483648",
        f"g:{ZEROS}: 1",
        f"g:{ZEROS}:1_0",
        "g:not-an-id:0",
    ],
)
def test_a_key_that_names_no_share_partition_is_refused(key: str) -> None:
    """932-COORD-02: without words."""
    found = Sharing().find(key)
    assert (found.error_code, found.error_message) == (E.INVALID_REQUEST, "")


@pytest.mark.parametrize(
    ("text", "key"),
    [
        (f"g:{ZEROS}:7", SharePartitionKey("g", Uuid(bytes(16)), 7)),
        (f"a:b:{ZEROS}:0", SharePartitionKey("a:b", Uuid(bytes(16)), 0)),
        (f"g:{ZEROS}:-2:", SharePartitionKey("g", Uuid(bytes(16)), -2)),
        (f"::g:{ZEROS}:+5", SharePartitionKey("::g", Uuid(bytes(16)), 5)),
    ],
)
def test_a_key_is_read_as_kafka_reads_it(text: str, key: SharePartitionKey) -> None:
    """932-COORD-02: the group may have colons."""
    assert parse_coordinator_key(text) == key
    assert Sharing().find(text).error_code == E.NONE
    assert coordinator_key(SharePartitionKey("a:b", Uuid(bytes(16)), 3)) == f"a:b:{ZEROS}:3"


def test_the_coordinator_is_the_leader_of_the_keys_partition() -> None:
    """932-COORD-02."""
    node = Sharing()
    node.initialize()
    found = node.find(coordinator_key(node.key()))
    assert (found.node_id, found.host, found.port) == (1, "127.0.0.1", 9092)
    assert node.state_partition().log_end_offset == 1
    assert node.find(f"g:{ZEROS}:0", version=5).error_code == E.INVALID_REQUEST


def test_the_state_survives_a_restart() -> None:
    node = Sharing()
    node.initialize(epoch=3, start=0)
    node.read(leader=2)
    node.write(0, (0, 9, 2, 1), leader=2, start=0, complete=10)
    node.initialize(1, epoch=4, start=7)
    again = node.restarted()
    assert stored(again.read(leader=2).state_batches) == [(0, 9, 2, 1)]
    summary = again.summary(0)
    assert (summary.state_epoch, summary.leader_epoch) == (3, 2)
    assert summary.delivery_complete_count == 10
    assert again.summary(1).start_offset == 7
    assert again.write(0, leader=1).error_code == E.FENCED_LEADER_EPOCH
    assert again.write(0, epoch=2).error_code == E.FENCED_STATE_EPOCH


def test_old_records_are_removed_and_cold_states_written_again() -> None:
    """932-COORD-13: what a load needs stays, and a cold state does not hold the log back."""
    node = Sharing(
        **{
            "share.coordinator.snapshot.update.records.per.snapshot": "3",
            "share.coordinator.state.topic.num.partitions": "1",
        }
    )
    node.initialize(1, epoch=5, start=2)
    node.initialize(0, start=0)
    for offset in range(45):
        node.write(0, (offset, offset, 2, 1), start=0)
        node.advance(PRUNE_MS // 20)
    partition = node.state_partition()
    start = partition.log_start_offset
    assert 0 < start < partition.log_end_offset
    assert stored(node.read(0).state_batches) == [(0, 44, 2, 1)]
    cold = node.changes(1)[-1]
    assert isinstance(cold, ShareState)
    assert (cold.state_epoch, cold.start_offset) == (5, 2)
    assert cold.snapshot_epoch > 0
    assert cold.write_ms > cold.create_ms
    again = node.restarted()
    assert again.state_partition().log_start_offset == start
    assert stored(again.read(0).state_batches) == [(0, 44, 2, 1)]
    assert again.summary(1).start_offset == 2


def test_the_oldest_snapshot_that_is_needed_stays() -> None:
    """932-COORD-13: here that of a state which is not cold for a long time."""
    node = Sharing(
        **{
            "share.coordinator.snapshot.update.records.per.snapshot": "3",
            "share.coordinator.state.topic.num.partitions": "1",
            "share.coordinator.cold.partition.snapshot.interval.ms": str(100 * PRUNE_MS),
        }
    )
    node.initialize(0, start=0)
    node.write(0, start=0)
    node.initialize(1, epoch=5, start=2)
    for offset in range(40):
        node.write(0, (offset, offset, 2, 1), start=0)
        node.advance(PRUNE_MS // 10)
    assert node.state_partition().log_start_offset == 2
    again = node.restarted()
    assert again.summary(1).start_offset == 2
    assert stored(again.read(0).state_batches) == [(0, 39, 2, 1)]


def test_a_quiet_coordinator_writes_nothing() -> None:
    """932-COORD-13: once every state has a new snapshot and no write comes."""
    node = Sharing()
    node.initialize(0)
    node.advance(10 * PRUNE_MS)
    end_offset = node.state_partition().log_end_offset
    assert end_offset <= 2
    node.advance(10 * PRUNE_MS)
    assert node.state_partition().log_end_offset == end_offset


def test_a_deleted_topic_takes_its_states_with_it() -> None:
    node = Sharing()
    node.initialize(0)
    node.initialize(1)
    key = node.key(0)
    wanted = DeleteTopicState(name=TOPIC)
    node.send(DeleteTopicsRequest(topics=[wanted], timeout_ms=1), 6)
    node.settle()
    records = [record for batch in node.batches() for record in batch.records()]
    assert len(records) == 4
    assert len([record for record in records if record.value is None]) == 2
    coordinator = node.node.broker.share_states.coordinator
    shard = coordinator.runtime.shard_of(coordinator_key(key))
    assert not isinstance(shard, E)
    assert shard.table.entries == {}


def test_updates_are_folded_onto_the_newest_snapshot() -> None:
    """932-COORD-09: the fold of the log is what a read shows."""
    node = Sharing(**{"share.coordinator.snapshot.update.records.per.snapshot": "4"})
    node.initialize(epoch=1, start=0)
    for offset in range(11):
        node.write(0, (offset, offset, 2 if offset % 2 else 0, 1), start=offset // 2)
    changes = node.changes()
    epochs = [each.snapshot_epoch for each in changes if not isinstance(each, Tombstone)]
    assert epochs == [0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2]
    assert [isinstance(each, ShareUpdate) for each in changes].count(True) == 9
    read = stored(node.read().state_batches)
    assert read[0] == (5, 5, 2, 1)
    assert stored(node.restarted().read().state_batches) == read


@pytest.mark.parametrize(("age_ms", "is_cold"), [(999, False), (1_000, True), (1_001, True)])
def test_states_are_written_again_from_an_interval_on_and_no_others(
    age_ms: int, is_cold: bool
) -> None:
    """As `ShareCoordinatorShard.snapshotColdPartitions`."""
    now_ms = 1_000_000
    table = StateTable(lambda: 500)
    keys = [SharePartitionKey("g", Uuid(b"i" * 16), number) for number in range(3)]
    for offset, (key, written_ms) in enumerate(
        zip(keys, (now_ms - age_ms, now_ms, now_ms - 5_000), strict=True)
    ):
        state = ShareState(
            snapshot_epoch=offset,
            state_epoch=1,
            leader_epoch=2,
            start_offset=offset,
            delivery_complete_count=0,
            batches=(),
            create_ms=written_ms,
            write_ms=written_ms,
        )
        table.apply(key, state, offset)
    found = dict(table.cold_snapshots(now_ms, 1_000))
    assert list(found) == ([keys[0], keys[2]] if is_cold else [keys[2]])
    again, before = found[keys[2]], table.entries[keys[2]].state
    assert (again.snapshot_epoch, again.write_ms, again.create_ms) == (3, now_ms, before.create_ms)
    assert again.start_offset == before.start_offset


def test_the_snapshot_after_the_largest_epoch_has_the_smallest() -> None:
    """As Java's `int`; cold states are written again without a request."""
    again = replace(SNAPSHOT, snapshot_epoch=2**31 - 1).again(5)
    assert again.snapshot_epoch == -(2**31)
    record_of(share_key(0), again)


SNAPSHOT = ShareState(
    snapshot_epoch=0,
    state_epoch=3,
    leader_epoch=2,
    start_offset=7,
    delivery_complete_count=0,
    batches=(),
    create_ms=1,
    write_ms=1,
)
UPDATE = ShareUpdate(
    snapshot_epoch=0, leader_epoch=4, start_offset=9, delivery_complete_count=0, batches=()
)


def share_key(number: int) -> SharePartitionKey:
    return SharePartitionKey("g", Uuid(b"i" * 16), number)


def batch_of(key: bytes | None, value: bytes | None, **attributes: bool | int) -> RecordBatch:
    return RecordBatch(memoryview(build_batch([Record(key, value)], **attributes)))  # type: ignore[arg-type]  # by name


ODD_KEY, ODD_VALUE = record_of(share_key(0), SNAPSHOT)
UPDATE_KEY, UPDATE_VALUE = record_of(share_key(0), UPDATE)


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        (None, ODD_VALUE, "record without key"),
        (b"\x00\x02" + ODD_KEY[2:], ODD_VALUE, "key of type 2"),
        (ODD_KEY[:-1], ODD_VALUE, "malformed"),
        (ODD_KEY, (ODD_VALUE or b"")[:-1], "malformed"),
        (ODD_KEY, b"\x00\x01" + (ODD_VALUE or b"")[2:], "value of version 1"),
        (UPDATE_KEY, b"\x00\x01" + (UPDATE_VALUE or b"")[2:], "value of version 1"),
        (UPDATE_KEY, None, "malformed value"),
        (UPDATE_KEY[:-1], UPDATE_VALUE, "malformed"),
    ],
)
def test_record_that_cannot_be_read_changes_no_state(
    key: bytes | None, value: bytes | None, reason: str
) -> None:
    """A newer release may have written it; the states before and behind it are those they were."""
    table = StateTable(lambda: 500)
    replay = Replay(table)
    for number in (0, 1):
        replay.batch(batch_of(*record_of(share_key(number), SNAPSHOT)))
    replay.batch(batch_of(key, value))
    replay.batch(batch_of(*record_of(share_key(1), UPDATE)))
    assert {name.startswith(reason): count for name, count in replay.ignored.items()} == {True: 1}
    starts = {name.partition: each.state.start_offset for name, each in table.entries.items()}
    assert starts == {0: 7, 1: 9}
    assert table.entries[share_key(0)].known_leader_epoch == 2


def test_batches_that_have_no_states_hide_no_others() -> None:
    """Markers of transactions, and one that is damaged; an old format is read as another."""
    table = StateTable(lambda: 500)
    replay = Replay(table)
    replay.batch(batch_of(b"\x00\x00\x00\x01", b"\x00" * 6, is_control=True, producer_id=1))
    damaged = bytearray(build_batch([Record(ODD_KEY, ODD_VALUE)]))
    damaged[61] = 0x7F  # the record says that it is longer than the batch
    replay.batch(RecordBatch(memoryview(damaged)))
    assert table.entries == {}
    assert replay.ignored == {"control batch": 1, "batch that cannot be read": 1}
    replay.batch(LegacyBatch(memoryview(old_message(3, 1, 0, ODD_KEY, ODD_VALUE))))
    assert table.entries[share_key(0)].state.start_offset == 7
    replay.batch(batch_of(ODD_KEY, None))
    assert table.entries == {}


def test_states_of_many_share_partitions_end_in_several_batches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A batch that is too large for the topic would end none of them."""
    monkeypatch.setattr("kraft_wire.broker.share_state.shard._BATCH_BYTES", 50)
    node = Sharing(**{"share.coordinator.state.topic.num.partitions": "1"})
    for number in range(3):
        node.initialize(number)
    before = len(list(node.batches()))
    wanted = DeleteTopicState(name=TOPIC)
    node.send(DeleteTopicsRequest(topics=[wanted], timeout_ms=1), 6)
    node.settle()
    ends = [[each.value for each in batch.records()] for batch in list(node.batches())[before:]]
    assert ends == [[None, None], [None]]


def test_old_records_are_removed_only_where_they_are_committed_and_the_disk_lets_them() -> None:
    target, failures = real_partition(), list[StorageError]()
    target.failed = failures.append
    _delete_records(None, 1)
    produced(target, produced_batch(4))
    target.offline = True
    _delete_records(target, 1)
    target.offline = False
    _delete_records(target, 5)
    assert target.log_start_offset == 0
    _delete_records(target, 4)
    assert target.log_start_offset == 4
    error = StorageError("write", "/a", "EIO")
    target.log = OfflineLog(error)
    target.log.high_watermark = Offset(9)
    _delete_records(target, 5)
    assert failures == [error]
