"""Each invariant of transactions, with the violation that it is there to find."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from kraft_wire.broker.metadata.metadata_cache import OFFSETS_TOPIC
from kraft_wire.broker.transactions.states import TransactionState
from kraft_wire.broker.transactions.transactional_id import TransactionMetadata
from kraft_wire.model import TopicPartition, Uuid
from kraft_wire.sim.disk.file_nodes import FileNode
from kraft_wire.sim.judge.log_watch import SeenBatch, read_batches
from kraft_wire.sim.judge.partition_truth import PartitionTruth, Truth
from kraft_wire.sim.judge.transactions.client_transactions import (
    ClientTransaction,
    Value,
    value_to_bytes,
)
from kraft_wire.sim.judge.transactions.history import TransactionHistory
from kraft_wire.sim.judge.transactions.id_records import IdFold
from kraft_wire.sim.judge.transactions.log_scan import LogScan, head_of
from kraft_wire.sim.judge.transactions.memory import judge_memory
from kraft_wire.sim.judge.transactions.watch import TransactionWatch
from kraft_wire.sim.judge.violation import Violation
from kraft_wire.storage.producers.producer_state import ProducerStates
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.fetch import AbortedTransaction, PartitionData
from kraft_wire.wire.generated.offset_commit_key import OffsetCommitKey
from kraft_wire.wire.generated.offset_commit_value import OffsetCommitValue
from kraft_wire.wire.generated.transaction_log_key import TransactionLogKey
from kraft_wire.wire.generated.transaction_log_value import (
    PartitionsSchema,
    TransactionLogValue,
)
from kraft_wire.wire.message import Message
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record
from kraft_wire.wire.records.record_batch import RecordBatch

EMPTY, ONGOING, PREPARE_COMMIT, PREPARE_ABORT, COMMITTED, ABORTED = range(6)
NAME = "loop-id"
IN_T = (("t", 0),)
PLACE = (f"loop {NAME}", "t", 0)
NODE = 11


class Stage:
    """One partition, one transactional id, and what is committed of both."""

    def __init__(self) -> None:
        truth = Truth()
        self.judge: Any = SimpleNamespace(
            truth=truth, looked=Counter(), marks=Counter(), leads=lambda node_id, each: True
        )
        self.watch = TransactionWatch(self.judge)
        self.history = TransactionHistory(self.watch)
        self.t = self._partition("t", b"the id of topic t")
        self.state = self._partition("__transaction_state", b"id of the state ")
        self.offsets = self._partition(OFFSETS_TOPIC, b"id of the offset")
        machine: Any = SimpleNamespace(id=NODE, life=1)
        self.replica: Any = SimpleNamespace(
            machine=machine,
            truth=self.t,
            log=SimpleNamespace(batches=[], ends=[]),
            is_loading=False,
            holds=lambda batch: batch in self.t.batches,
        )

    def _partition(self, name: str, topic_id: bytes) -> PartitionTruth:
        own = Uuid(topic_id[:16])
        partition = PartitionTruth(name, own, 0, (NODE,), (NODE,), leader=NODE)
        self.judge.truth.topic_ids[name] = own
        self.judge.truth.partitions[own, 0] = partition
        return partition

    def _lies_in(self, partition: PartitionTruth, data: bytearray) -> SeenBatch:
        (seen,), _ = read_batches(bytes(data), 0, FileNode(b""))
        partition.batches.append(seen)
        partition.ends.append(seen.end_offset)
        return seen

    def over(self) -> None:
        """The event is over."""
        self.watch.after(self.replica.machine)

    def record(
        self,
        state: int,
        epoch: int,
        partitions: tuple[tuple[str, int], ...] = (),
        *,
        producer_id: int = 7,
        name: str = NAME,
        rules: int = 2,
        start_ms: int | None = None,
    ) -> None:
        """A coordinator's record is committed."""
        if start_ms is None:
            start_ms = -1 if state == EMPTY else 0
        key = TransactionLogKey(transactional_id=name)
        value = TransactionLogValue(
            producer_id=producer_id,
            producer_epoch=epoch,
            transaction_status=state,
            transaction_partitions=[
                PartitionsSchema(topic=topic, partition_ids=[n]) for topic, n in partitions
            ],
            client_transaction_version=rules,
            transaction_start_timestamp_ms=start_ms,
        )
        record = Record(key=_versioned(key, 0), value=_versioned(value, 1), timestamp=0)
        data = build_batch([record], base_offset=len(self.state.batches))
        seen = self._lies_in(self.state, data)
        self.watch.committed(self.state, NODE, seen)
        self.over()

    def begins(self, epoch: int = 0) -> None:
        """A transaction of partition 0 of the topic is on record."""
        if not self.state.batches:
            self.record(EMPTY, epoch)
        self.record(ONGOING, epoch, IN_T)

    def data(self, epoch: int = 0, value: bytes = b"v", *, is_looked_at: bool = True) -> SeenBatch:
        """A batch of a transaction is appended, and committed where it is looked at."""
        data = build_batch(
            [Record(value=value, timestamp=0)],
            base_offset=self.t.end,
            partition_leader_epoch=self.t.leader_epoch,
            producer_id=7,
            producer_epoch=epoch,
            base_sequence=0,
            is_transactional=True,
        )
        return self._appended(data, is_looked_at=is_looked_at)

    def marker(
        self,
        epoch: int = 1,
        *,
        is_commit: bool = True,
        coordinator_epoch: int = 0,
        is_lost: bool = False,
    ) -> SeenBatch:
        """A marker is appended, and committed unless it is lost with the only log that had it."""
        value = bytes(2) + coordinator_epoch.to_bytes(4, "big")
        data = build_batch(
            [Record(key=bytes([0, 0, 0, is_commit]), value=value, timestamp=0)],
            base_offset=self.t.end,
            partition_leader_epoch=0,
            producer_id=7,
            producer_epoch=epoch,
            is_transactional=True,
            is_control=True,
        )
        if not is_lost:
            return self._appended(data, is_looked_at=True)
        seen = self._appended(data, is_looked_at=False)
        self.t.batches.pop()
        self.t.ends.pop()
        self.watch.appended(self.replica, seen)
        self.over()
        return seen

    def _appended(self, data: bytearray, *, is_looked_at: bool) -> SeenBatch:
        seen = self._lies_in(self.t, data)
        if is_looked_at:
            self.watch.appended(self.replica, seen)
            self.watch.committed(self.t, NODE, seen)
            self.over()
        return seen

    def committed(self) -> SeenBatch:
        """A whole transaction, committed; its data is returned."""
        self.begins()
        found = self.data()
        self.record(PREPARE_COMMIT, 1, IN_T)
        self.marker(1)
        self.record(COMMITTED, 1)
        return found

    def log(self, **more: Any) -> Any:
        """What a node has in memory of the partition's log."""
        states = ProducerStates()
        for each in self.t.batches:
            states.update(RecordBatch(memoryview(each.data)))
        self.replica.log.batches = list(self.t.batches)
        content = {
            "last_stable_offset": self.t.end,
            "high_watermark": self.t.end,
            "log_start_offset": 0,
            "producer_states": states,
            "segments": [],
        }
        return SimpleNamespace(**{**content, **more})

    def looks(self, **more: Any) -> None:
        """The replica is judged; what it says of its log may be given."""
        log = self.log(**more)
        partition: Any = SimpleNamespace(log=log, is_leader=True, leader_epoch=0)
        self.watch.replica_changed(self.replica, partition)

    def transaction(self, *, told: bool | None, epoch: int = 0) -> ClientTransaction:
        """What a client knows of a transaction whose record is at offset 0."""
        found = ClientTransaction(110, 1, NAME, (7, epoch), is_legacy=False)
        found.sent, found.acked = {1: self.t}, {1: 0}
        found.asked = found.told = told
        return self.history.begun(found)

    def reads(self, batches: list[SeenBatch], aborted: list[tuple[int, int]], end: int) -> None:
        """A reader of committed records is answered."""
        data = PartitionData(
            records=b"".join(each.data for each in batches),
            last_stable_offset=end,
            aborted_transactions=[
                AbortedTransaction(producer_id=p, first_offset=at) for p, at in aborted
            ],
        )
        self.history.read_committed(NODE, self.t, data)


def _versioned(message: Message, version: int) -> bytes:
    return version.to_bytes(2, "big") + message.encode(version)


VALUE = value_to_bytes(Value(110, 1, 1))


def two_verdicts(stage: Stage) -> None:
    stage.committed()
    verdict = stage.watch.ids.verdicts[7][-1]
    stage.watch.ids.ids[NAME] = stage.watch.ids.ids[NAME].__class__(
        ONGOING, (7, verdict.data_epoch), frozenset(IN_T), -1, 2, 0, 0
    )
    stage.record(PREPARE_ABORT, 1, IN_T)


def complete_of_the_other_verdict(stage: Stage) -> None:
    stage.begins()
    stage.record(PREPARE_COMMIT, 1, IN_T)
    stage.record(ABORTED, 1)


def marker_before_its_verdict(stage: Stage) -> None:
    stage.begins()
    stage.data()
    stage.marker(1)


def marker_of_the_other_verdict(stage: Stage) -> None:
    stage.begins()
    stage.data()
    stage.record(PREPARE_COMMIT, 1, IN_T)
    stage.marker(1, is_commit=False)


def complete_without_a_marker(stage: Stage) -> None:
    stage.begins()
    stage.data()
    stage.record(PREPARE_COMMIT, 1, IN_T)
    stage.record(COMMITTED, 1)


def told_committed_without_a_verdict(stage: Stage) -> None:
    stage.begins()
    stage.data()
    stage.history.ended(NODE, stage.transaction(told=True))


def told_committed_and_aborted(stage: Stage) -> None:
    stage.begins()
    stage.data(value=VALUE)
    stage.record(PREPARE_ABORT, 1, IN_T)
    stage.history.ended(NODE, stage.transaction(told=True))


def committed_record_is_lost(stage: Stage) -> None:
    stage.committed()
    stage.transaction(told=True)
    stage.history.judge_everything()


def committed_record_is_there_twice(stage: Stage) -> None:
    stage.begins()
    stage.data(value=VALUE)
    stage.data(value=VALUE)
    stage.record(PREPARE_COMMIT, 1, IN_T)
    stage.marker(1)
    stage.transaction(told=True)
    stage.history.judge_everything()


def half_of_a_transaction_is_visible(stage: Stage) -> None:
    stage.begins()
    stage.data(value=VALUE)
    stage.record(PREPARE_COMMIT, 1, IN_T)
    stage.marker(1)
    transaction = stage.transaction(told=None)
    transaction.asked, transaction.sent = True, {1: stage.t, 2: stage.t}
    stage.history.judge_everything()


def aborted_record_is_visible(stage: Stage) -> None:
    stage.begins()
    stage.data(value=VALUE)
    stage.record(PREPARE_COMMIT, 1, IN_T)
    stage.marker(1)
    stage.transaction(told=False)
    stage.history.judge_everything()


def open_record_is_read(stage: Stage) -> None:
    stage.begins()
    stage.reads([stage.data()], [], 1)


def record_behind_the_stable_offset_is_read(stage: Stage) -> None:
    stage.reads([stage.committed()], [], 0)


def aborted_record_is_not_listed(stage: Stage) -> None:
    stage.begins()
    data = stage.data()
    stage.record(PREPARE_ABORT, 1, IN_T)
    stage.marker(1, is_commit=False)
    stage.reads([data], [], 2)


def committed_record_is_listed(stage: Stage) -> None:
    stage.reads([stage.committed()], [(7, 0)], 2)


def stable_offset_passes_an_open_transaction(stage: Stage) -> None:
    stage.begins()
    stage.data()
    stage.looks(last_stable_offset=1)


def stable_offset_passes_a_marker_that_is_not_committed(stage: Stage) -> None:
    stage.committed()
    stage.looks(high_watermark=1, last_stable_offset=1)


def stable_offset_falls(stage: Stage) -> None:
    stage.committed()
    stage.looks()
    stage.looks(high_watermark=1, last_stable_offset=0)


def second_epoch_in_an_open_transaction(stage: Stage) -> None:
    stage.begins()
    stage.data()
    stage.data(1)


def data_without_membership(stage: Stage) -> None:
    stage.record(EMPTY, 0)
    stage.data()


def data_behind_its_marker(stage: Stage) -> None:
    _ends_in_the_older_protocol(stage)
    stage.data()


def data_behind_a_marker_in_its_leader_epoch(stage: Stage) -> None:
    _ends_in_the_older_protocol(stage, is_lost=True)
    stage.data(is_looked_at=False)  # in the marker's place
    stage.data()


def data_behind_a_committed_marker_of_the_former_leader(stage: Stage) -> None:
    _ends_in_the_older_protocol(stage)
    stage.t.leader_epoch += 1
    stage.data()


def _ends_in_the_older_protocol(stage: Stage, *, is_lost: bool = False) -> None:
    """Its data keeps its epoch."""
    stage.record(EMPTY, 0)
    stage.record(ONGOING, 0, IN_T, rules=0)
    stage.data()
    stage.record(PREPARE_COMMIT, 0, IN_T, rules=0)
    stage.marker(0, is_lost=is_lost)


def epoch_falls(stage: Stage) -> None:
    stage.begins()
    stage.record(PREPARE_ABORT, 1, IN_T)
    stage.marker(1, is_commit=False)
    stage.data(0)


def marker_with_the_epoch_of_the_data(stage: Stage) -> None:
    stage.begins()
    stage.data(1, is_looked_at=False)
    stage.record(PREPARE_COMMIT, 1, IN_T)
    stage.watch.committed(stage.t, NODE, stage.t.batches[-1])
    stage.marker(1)


def data_below_the_floor(stage: Stage) -> None:
    stage.record(EMPTY, 0)
    stage.record(EMPTY, 1)
    seen = stage.data(0, is_looked_at=False)
    stage.watch.committed(stage.t, NODE, seen)


def newest_producer_is_told_to_be_fenced(stage: Stage) -> None:
    stage.record(EMPTY, 0)
    stage.history.refused(NODE, NAME, (7, 0), ErrorCode.PRODUCER_FENCED)


def identity_told_twice(stage: Stage) -> None:
    stage.record(EMPTY, 0)
    stage.history.identity_told(NODE, NAME, (7, 0), (110, 0))
    stage.history.identity_told(NODE, NAME, (7, 0), (120, 0))


def last_epoch_is_told(stage: Stage) -> None:
    stage.record(EMPTY, 0)
    stage.history.identity_told(NODE, NAME, (7, 32_767), (110, 0))


def producer_id_of_two_ids(stage: Stage) -> None:
    stage.record(EMPTY, 0)
    stage.record(EMPTY, 0, name="another")


def epoch_rises_by_two(stage: Stage) -> None:
    stage.begins()
    stage.record(PREPARE_COMMIT, 2, IN_T)


def prepare_loses_a_partition(stage: Stage) -> None:
    stage.begins()
    stage.record(PREPARE_COMMIT, 1)


def starts_anew_when_it_is_decided(stage: Stage) -> None:
    stage.begins()
    stage.record(PREPARE_COMMIT, 1, IN_T, start_ms=1)


def begins_without_a_time(stage: Stage) -> None:
    stage.record(EMPTY, 0)
    stage.record(ONGOING, 0, IN_T, start_ms=-1)


def has_a_start_at_rest(stage: Stage) -> None:
    stage.record(EMPTY, 0)
    stage.record(EMPTY, 1, start_ms=0)


def begins_before_it_is_complete(stage: Stage) -> None:
    stage.begins()
    stage.record(PREPARE_COMMIT, 1, IN_T)
    stage.record(ONGOING, 1, IN_T)


def removed_while_it_is_open(stage: Stage) -> None:
    stage.begins()
    key = _versioned(TransactionLogKey(transactional_id=NAME), 0)
    data = build_batch([Record(key=key, value=None, timestamp=0)], base_offset=2)
    stage.watch.committed(stage.state, NODE, stage._lies_in(stage.state, data))
    stage.over()


def memory_is_another(stage: Stage) -> None:
    stage.begins()
    metadata = TransactionMetadata(
        producer_id=7,
        producer_epoch=1,
        timeout_ms=0,
        state=TransactionState.ONGOING,
        partitions={TopicPartition("t", 0): None},
    )
    shard = SimpleNamespace(ids={NAME: SimpleNamespace(metadata=metadata)})
    coordinator = SimpleNamespace(runtime=SimpleNamespace(_shards={0: shard}))
    broker = SimpleNamespace(_transactions=coordinator)
    machine = SimpleNamespace(id=NODE, node=SimpleNamespace(broker=broker))
    log = SimpleNamespace(batches=stage.state.batches, ends=stage.state.ends)
    watch: Any = SimpleNamespace(machine=machine, truth=stage.state, log=log)
    partition: Any = SimpleNamespace(
        is_leader=True, leader_epoch=0, partition=0, log=SimpleNamespace(high_watermark=2)
    )
    judge_memory(stage.judge, watch, partition, IdFold())


def coordinator_epoch_falls(stage: Stage) -> None:
    stage.begins()
    stage.record(PREPARE_COMMIT, 1, IN_T)
    stage.marker(1, coordinator_epoch=2)
    stage.marker(1, coordinator_epoch=1)


def producers_forget_an_open_transaction(stage: Stage) -> None:
    stage.begins()
    stage.data()
    stage.looks(last_stable_offset=0, producer_states=ProducerStates())


def index_lacks_an_abort(stage: Stage) -> None:
    stage.begins()
    stage.data()
    stage.record(PREPARE_ABORT, 1, IN_T)
    stage.marker(1, is_commit=False)
    stage.looks()


def _offset(stage: Stage, offset: int, note: str, *, is_transactional: bool) -> None:
    key = OffsetCommitKey(group=PLACE[0], topic="t", partition=0)
    value = OffsetCommitValue(offset=offset, metadata=note)
    data = build_batch(
        [Record(key=b"\x00\x01" + key.encode(0), value=_versioned(value, 3), timestamp=0)],
        base_offset=stage.offsets.end,
        producer_id=7 if is_transactional else -1,
        producer_epoch=0 if is_transactional else -1,
        base_sequence=0 if is_transactional else -1,
        is_transactional=is_transactional,
    )
    stage.judge.truth.group_records(stage.offsets, stage._lies_in(stage.offsets, data))


def pending_offset_is_shown(stage: Stage) -> None:
    _offset(stage, 3, "pending", is_transactional=True)
    stage.history.stable_offset_shown(NODE, PLACE, (3, "pending"), None)


def older_offset_is_shown(stage: Stage) -> None:
    _offset(stage, 3, "first", is_transactional=False)
    _offset(stage, 4, "second", is_transactional=False)
    stage.history.stable_offset_shown(NODE, PLACE, (3, "first"), (4, "second"))


def loop_commits_what_it_has_not_written(stage: Stage) -> None:
    stage.begins()
    stage.data(value=value_to_bytes(Value(110, 1, 1, 0)))
    stage.record(PREPARE_COMMIT, 1, IN_T)
    stage.marker(1)
    stage.transaction(told=True)
    _offset(stage, 2, "n", is_transactional=False)
    stage.history.judge_everything()


PLANTS: list[tuple[str, Callable[[Stage], None]]] = [
    ("T01", two_verdicts),
    ("T13", complete_of_the_other_verdict),
    ("T02", marker_before_its_verdict),
    ("T02", marker_of_the_other_verdict),
    ("T03", complete_without_a_marker),
    ("T04", told_committed_without_a_verdict),
    ("T04", told_committed_and_aborted),
    ("T04", committed_record_is_lost),
    ("T04", committed_record_is_there_twice),
    ("T05", half_of_a_transaction_is_visible),
    ("T05", aborted_record_is_visible),
    ("T05", open_record_is_read),
    ("T05", record_behind_the_stable_offset_is_read),
    ("T06", aborted_record_is_not_listed),
    ("T06", committed_record_is_listed),
    ("T07", stable_offset_passes_an_open_transaction),
    ("T07", stable_offset_passes_a_marker_that_is_not_committed),
    ("T07", stable_offset_falls),
    ("T08", second_epoch_in_an_open_transaction),
    ("T09", data_without_membership),
    ("T09", data_behind_its_marker),
    ("T09", data_behind_a_marker_in_its_leader_epoch),
    ("T09", data_behind_a_committed_marker_of_the_former_leader),
    ("T10", epoch_falls),
    ("T10", marker_with_the_epoch_of_the_data),
    ("T11", data_below_the_floor),
    ("T11", newest_producer_is_told_to_be_fenced),
    ("T12", identity_told_twice),
    ("T12", last_epoch_is_told),
    ("T12", producer_id_of_two_ids),
    ("T13", epoch_rises_by_two),
    ("T13", prepare_loses_a_partition),
    ("T13", starts_anew_when_it_is_decided),
    ("T13", begins_without_a_time),
    ("T13", has_a_start_at_rest),
    ("T13", begins_before_it_is_complete),
    ("T13", removed_while_it_is_open),
    ("T13", memory_is_another),
    ("T14", coordinator_epoch_falls),
    ("T15", producers_forget_an_open_transaction),
    ("T15", index_lacks_an_abort),
    ("T16", pending_offset_is_shown),
    ("T16", older_offset_is_shown),
    ("T16", loop_commits_what_it_has_not_written),
]


@pytest.mark.parametrize(
    ("invariant", "plant"), PLANTS, ids=[plant.__name__ for _, plant in PLANTS]
)
def test_planted_violation_is_found(invariant: str, plant: Callable[[Stage], None]) -> None:
    with pytest.raises(Violation) as found:
        plant(Stage())
    assert found.value.invariant.startswith(invariant)


def test_transaction_that_outlives_its_timeout_is_found() -> None:
    stage = Stage()
    stage.begins()
    entry = SimpleNamespace(pending=None)
    shard = SimpleNamespace(ids={NAME: entry})
    coordinator = SimpleNamespace(runtime=SimpleNamespace(_shards={0: shard}))
    node = SimpleNamespace(broker=SimpleNamespace(_transactions=coordinator))
    machine: Any = SimpleNamespace(
        id=NODE,
        node=node,
        life=1,
        wall_ms=1,
        disturbed_us=0,
        clock=SimpleNamespace(rate_permille=1_000),
        fs=SimpleNamespace(capacity_bytes=None, fault=None),
    )
    data = SimpleNamespace(min_isr=1)
    stage.judge.stage = SimpleNamespace(now_us=0, late_us_max=0, setup=SimpleNamespace(data=data))
    timeouts = stage.watch.timeouts
    timeouts.after(machine)
    stage.judge.stage.now_us = 3_000_000
    timeouts.after(machine)
    entry.pending = "an abort"
    stage.judge.stage.now_us = 5_000_000
    timeouts.after(machine)
    entry.pending = None
    timeouts.after(machine)
    stage.judge.stage.now_us = 10_000_000
    with pytest.raises(Violation, match="T17"):
        timeouts.after(machine)


def test_committed_transaction_breaks_nothing() -> None:
    stage = Stage()
    data = stage.committed()
    stage.reads([data], [], 2)
    stage.looks()
    transaction = stage.transaction(told=True)
    stage.history.ended(NODE, transaction)
    assert stage.watch.why_open() is None


def test_open_transaction_is_told() -> None:
    """T17: in the end nothing is open."""
    stage = Stage()
    stage.begins()
    assert stage.watch.why_open() == f"{NAME} is in state 1 as (7, 0)"


def test_pending_offset_does_not_replace_a_newer_one() -> None:
    stage = Stage()
    _offset(stage, 3, "older", is_transactional=True)
    _offset(stage, 5, "newer", is_transactional=False)
    data = build_batch(
        [Record(key=bytes([0, 0, 0, 1]), value=bytes(6), timestamp=0)],
        base_offset=stage.offsets.end,
        producer_id=7,
        producer_epoch=1,
        is_transactional=True,
        is_control=True,
    )
    stage.judge.truth.group_records(stage.offsets, stage._lies_in(stage.offsets, data))
    assert stage.judge.truth.offsets[PLACE] == [(5, "newer")]


def test_marker_that_compaction_kept_is_read_as_it_was() -> None:
    """Its delete horizon makes the timestamp delta of the record long (KIP-534)."""
    stage = Stage()
    data = build_batch(
        [Record(key=bytes(4), value=bytes(2) + bytes([0, 0, 0, 5]), timestamp=0)],
        producer_id=7,
        producer_epoch=1,
        is_transactional=True,
        is_control=True,
        delete_horizon_ms=1_700_000_000_000,
    )
    head = head_of(stage._lies_in(stage.t, data))
    assert (head.is_marker, head.is_commit, head.coordinator_epoch) == (True, False, 5)


def two_of_one_epoch(stage: Stage) -> None:
    """Commits of the older protocol: of partition 0, then of partition 1."""
    stage.record(EMPTY, 0, rules=0)
    stage.record(ONGOING, 0, IN_T, rules=0)
    stage.record(PREPARE_COMMIT, 0, IN_T, rules=0)
    stage.marker(0)
    stage.record(COMMITTED, 0, rules=0)
    stage.record(ONGOING, 0, (("t", 1),), rules=0)
    stage.record(PREPARE_COMMIT, 0, (("t", 1),), rules=0)


def test_a_leader_that_lacks_a_marker_continues_the_transaction() -> None:
    """T09: the marker was lost with the former leader; the coordinator will send it again."""
    stage = Stage()
    _ends_in_the_older_protocol(stage, is_lost=True)
    stage.t.leader_epoch += 1
    stage.data()
    stage.marker(0)


def test_a_marker_that_a_new_process_finds_waits_for_the_commit_of_its_verdict() -> None:
    """T02: the former process died within the event that wrote both."""
    stage = Stage()
    stage.begins()
    stage.data()
    stage.replica.is_loading = True
    stage.marker(1)
    assert str(stage.watch.why_open()).startswith("t-0 has what no record allows")
    stage.replica.is_loading = False
    stage.record(PREPARE_COMMIT, 1, IN_T)
    assert "no record" not in str(stage.watch.why_open())
    stage.record(COMMITTED, 1)
    assert stage.watch.why_open() is None


def test_a_marker_that_a_new_process_finds_agrees_with_its_verdict() -> None:
    """T02: also if the verdict is committed later."""
    stage = Stage()
    stage.begins()
    stage.data()
    stage.replica.is_loading = True
    stage.marker(1)
    with pytest.raises(Violation, match="T02"):
        stage.record(PREPARE_ABORT, 1, IN_T)


def test_a_marker_that_a_new_process_finds_may_be_of_a_later_transaction_of_its_epoch() -> None:
    """T02: in the older protocol; the known verdict is of the transaction before."""
    stage = Stage()
    stage.record(EMPTY, 0, rules=0)
    stage.record(ONGOING, 0, IN_T, rules=0)
    stage.data()
    stage.record(PREPARE_COMMIT, 0, IN_T, rules=0)
    stage.marker(0)
    stage.record(COMMITTED, 0, rules=0)
    stage.record(ONGOING, 0, IN_T, rules=0)
    stage.data()
    stage.replica.is_loading = True
    stage.marker(0, is_commit=False)
    assert str(stage.watch.why_open()).startswith("t-0 has what no record allows")
    stage.replica.is_loading = False
    stage.record(PREPARE_ABORT, 0, IN_T, rules=0)
    assert "no record" not in str(stage.watch.why_open())


def test_data_that_a_new_process_finds_waits_for_the_commit_of_its_membership() -> None:
    """T09: the former process died within the event that added the partition and wrote to it."""
    stage = Stage()
    stage.record(EMPTY, 0)
    stage.replica.is_loading = True
    stage.data()
    assert str(stage.watch.why_open()).startswith("t-0 has what no record allows")
    stage.record(ONGOING, 0, IN_T)
    assert "no record" not in str(stage.watch.why_open())


def test_late_marker_of_the_older_protocol_may_be_of_an_earlier_transaction() -> None:
    """T02: nothing is open where it comes, and the network may carry it twice."""
    stage = Stage()
    two_of_one_epoch(stage)
    stage.marker(0)
    assert list(stage.watch.tainted) == [NAME]


def test_marker_where_no_transaction_was_is_found() -> None:
    """T02: also where all transactions of the epoch are committed."""
    stage = Stage()
    two_of_one_epoch(stage)
    stage.t.number = 9
    with pytest.raises(Violation, match="T02"):
        stage.marker(0)


def test_scan_begins_anew_where_the_log_was_cut() -> None:
    stage = Stage()
    stage.committed()
    scan = LogScan()
    scan.follow(stage.t.batches)
    assert len(scan.ended) == 1
    scan.follow(stage.t.batches[:1])
    assert list(scan.open) == [7]
