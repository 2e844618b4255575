"""Each invariant of partitions and their clients, with the violation that it is there to find."""

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from kraft_wire.metadata.records import VersionedRecord, encode_record
from kraft_wire.model import TopicPartition, Uuid
from kraft_wire.sim.clients.consumers import Consumer
from kraft_wire.sim.clients.members import GroupMember
from kraft_wire.sim.disk.file_nodes import FileNode
from kraft_wire.sim.disk.files import SimFileSystem
from kraft_wire.sim.judge.data_history import DataHistory
from kraft_wire.sim.judge.data_judge import DataJudge
from kraft_wire.sim.judge.log_watch import read_batches
from kraft_wire.sim.judge.partition_truth import PartitionTruth
from kraft_wire.sim.judge.violation import Violation
from kraft_wire.sim.setup import Setup
from kraft_wire.sim.workload import Workload
from kraft_wire.sim.world import World
from kraft_wire.wire.generated.broker_registration_change_record import (
    BrokerRegistrationChangeRecord,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.fetch import FetchResponse
from kraft_wire.wire.generated.join_group import JoinGroupRequest, JoinGroupResponse
from kraft_wire.wire.generated.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kraft_wire.wire.generated.offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from kraft_wire.wire.generated.offset_fetch import OffsetFetchRequest
from kraft_wire.wire.generated.partition_change_record import PartitionChangeRecord
from kraft_wire.wire.generated.register_broker_record import RegisterBrokerRecord
from kraft_wire.wire.generated.sync_group import SyncGroupRequest, SyncGroupResponse
from kraft_wire.wire.message import Message
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record

TOPIC_ID = Uuid(b"topic id of sixt")
BROKERS = (11, 12, 13)
SEGMENT = f"{0:020d}.log"
PLACE = ("g", "t", 0)


class Stage:
    """Three replicas of one partition, each with a disk and what its node says of itself."""

    def __init__(self, **workload: Any) -> None:
        setup = SimpleNamespace(brokers=BROKERS, data=Workload(**workload))
        self.machines = {number: _machine(number) for number in BROKERS}
        self.flushes = True
        """Whether nodes flush what they append, as they promise."""
        stage: Any = SimpleNamespace(machines=self.machines, setup=setup)
        self.judge = DataJudge(stage)
        self.truth = PartitionTruth("t", TOPIC_ID, 0, BROKERS, BROKERS, leader=11, leaders={0: 11})
        self.judge.truth.partitions[TOPIC_ID, 0] = self.truth
        self.judge.truth.topic_ids["t"] = TOPIC_ID
        self.history = DataHistory(self.judge.truth)
        self.context: Any = SimpleNamespace(
            stage=SimpleNamespace(seed=1, machines=self.machines),
            judge=self.judge,
            truth=self.judge.truth,
            history=self.history,
        )

    def partition(self, node_id: int) -> Any:
        """What a node has in memory."""
        return self.machines[node_id].node.broker.partitions["t", 0]

    def has(self, node_id: int, *batches: bytes, high_watermark: int | None = None) -> None:
        """A node appends batches, moves its high watermark, and has it judged."""
        machine, partition = self.machines[node_id], self.partition(node_id)
        file = machine.fs.open(f"data/t-0/{SEGMENT}", create=True)
        for data in batches:
            file.pwrite(data, file.size_bytes())
            partition.log.log_end_offset += 1
        if self.flushes:
            file.fsync()
            machine.fs.sync_directory("data/t-0")
        if high_watermark is not None:
            partition.log.high_watermark = high_watermark
        self.look(node_id)

    def look(self, node_id: int) -> None:
        self.judge.after(self.machines[node_id], "receive")

    def commit(self, batch: bytes, end: int) -> None:
        """A batch goes its usual way."""
        self.has(12, batch)
        self.has(13, batch)
        self.has(11, batch, high_watermark=end)

    def cut(self, node_id: int, *batches: bytes, high_watermark: int) -> None:
        """A node cuts its log so that these batches are left."""
        file = self.machines[node_id].fs.open(f"data/t-0/{SEGMENT}")
        file.truncate(sum(map(len, batches)))
        file.fsync()
        log = self.partition(node_id).log
        log.log_end_offset, log.high_watermark = len(batches), high_watermark
        self.look(node_id)

    def leads_uncleanly(self, node_id: int, epoch: int = 1) -> None:
        """A node that has the first of two committed records leads, and takes the other."""
        self.commit(batch(0), 1)
        self.commit(batch(1), 2)
        self.has(12, high_watermark=2)
        self.cut(node_id, batch(0), high_watermark=1)
        self.truth.leader, self.truth.leader_epoch, self.truth.isr = node_id, epoch, (node_id,)
        self.truth.leaders[epoch] = node_id
        self.truth.led_uncleanly()
        partition = self.partition(node_id)
        partition.is_leader, partition.leader_epoch = True, epoch
        self.look(node_id)
        assert (self.truth.end, self.truth.is_cut) == (1, True)

    def follows(self, node_id: int, epoch: int) -> None:
        """A node hears of a leader epoch."""
        partition = self.partition(node_id)
        partition.is_leader, partition.leader_epoch = False, epoch
        self.look(node_id)

    def decided(self, *records: Message) -> None:
        """The controllers commit a batch of metadata."""
        values = [encode_record(VersionedRecord(each, each.MAX_VERSION)) for each in records]
        data = build_batch([Record(value=value, timestamp=0) for value in values])
        (seen,), _ = read_batches(bytes(data), 0, FileNode(b""))
        self.judge.metadata_committed(seen)

    def isr_is(self, *members: int) -> None:
        """The controllers commit another ISR."""
        change = PartitionChangeRecord(topic_id=TOPIC_ID, partition_id=0, isr=list(members))
        self.decided(change)


def _machine(node_id: int) -> Any:
    fs = SimFileSystem()
    fs.make_directory("data/t-0")
    partition = SimpleNamespace(
        topic_id=TOPIC_ID,
        partition=0,
        topic_partition=TopicPartition("t", 0),
        offline=False,
        is_leader=node_id == 11,
        leader_epoch=0,
        log=SimpleNamespace(
            log_end_offset=0,
            high_watermark=0,
            log_start_offset=0,
            epochs=SimpleNamespace(entries=[]),
        ),
    )
    unknown = SimpleNamespace(get=lambda session_id: None)
    sessions = SimpleNamespace(sessions_count=0, _shard_of=lambda session_id: unknown)
    broker = SimpleNamespace(
        partitions={("t", 0): partition},
        fetch_sessions=sessions,
        replicas=SimpleNamespace(fetchers=None),
    )
    return SimpleNamespace(id=node_id, fs=fs, generation=0, node=SimpleNamespace(broker=broker))


def batch(offset: int, value: bytes = b"v", *, epoch: int = 0, **more: Any) -> bytes:
    """One record as it lies in a log."""
    record = Record(value=value, timestamp=0)
    return bytes(build_batch([record], base_offset=offset, partition_leader_epoch=epoch, **more))


def two_leaders(stage: Stage) -> None:
    stage.partition(12).is_leader = True
    stage.has(12, batch(0))


def watermark_falls(stage: Stage) -> None:
    stage.commit(batch(0), 1)
    stage.has(11, high_watermark=0)


def leader_lacks_what_is_committed(stage: Stage) -> None:
    stage.commit(batch(0), 1)
    stage.truth.leader_epoch, stage.truth.leaders[1] = 1, 13
    stage.machines[13] = _machine(13)
    stage.judge.watches[13].clear()
    stage.partition(13).is_leader, stage.partition(13).leader_epoch = True, 1
    stage.look(13)


def other_bytes_at_one_place(stage: Stage) -> None:
    stage.has(12, batch(0, b"one"))
    stage.has(13, batch(0, b"another"))


def cut_below_the_watermark(stage: Stage) -> None:
    stage.commit(batch(0), 1)
    stage.commit(batch(1), 2)
    stage.machines[11].fs.open(f"data/t-0/{SEGMENT}").truncate(len(batch(0)))
    stage.partition(11).log.log_end_offset = 1
    stage.look(11)


def other_bytes_are_committed(stage: Stage) -> None:
    stage.commit(batch(0, epoch=0), 1)
    stage.truth.leader_epoch, stage.truth.leaders[1] = 1, 12
    stage.has(13, high_watermark=1)
    stage.truth.batches[0].epoch = 7
    stage.has(12, high_watermark=1)


def a_gap(stage: Stage) -> None:
    stage.has(12, batch(1))


def memory_and_disk_differ(stage: Stage) -> None:
    stage.partition(12).log.log_end_offset = 1
    stage.look(12)


def sequence_twice(stage: Stage) -> None:
    sent: dict[str, Any] = {"producer_id": 5, "producer_epoch": 0, "base_sequence": 0}
    stage.commit(batch(0, **sent), 1)
    stage.commit(batch(1, **sent), 2)


def sequence_skipped(stage: Stage) -> None:
    sent: dict[str, Any] = {"producer_id": 5, "producer_epoch": 0}
    stage.commit(batch(0, base_sequence=0, **sent), 1)
    stage.commit(batch(1, base_sequence=2, **sent), 2)


def committed_without_a_member(stage: Stage) -> None:
    stage.has(12, batch(0))
    stage.has(11, batch(0), high_watermark=1)


def committed_on_no_disk(stage: Stage) -> None:
    stage.flushes = False
    stage.commit(batch(0), 1)


def committed_by_one(stage: Stage) -> None:
    stage.truth.isr = (11,)
    stage.has(11, batch(0), high_watermark=1)


def a_follower_knows_more(stage: Stage) -> None:
    stage.has(11, batch(0))
    stage.has(12, batch(0), high_watermark=1)


def too_many_sessions(stage: Stage) -> None:
    stage.machines[11].node.broker.fetch_sessions.sessions_count = 1_001
    stage.look(11)


def acknowledged_and_lost(stage: Stage) -> None:
    stage.history.acknowledged(1, 11, stage.truth, 0, [b"v"], 0)


def acknowledged_and_other(stage: Stage) -> None:
    stage.commit(batch(0), 1)
    stage.history.acknowledged(1, 11, stage.truth, 0, [b"w"], 0)


def acknowledged_out_of_order(stage: Stage) -> None:
    stage.commit(batch(0), 1)
    stage.commit(batch(1), 2)
    stage.history.acknowledged(1, 11, stage.truth, 1, [b"v"], 0)
    stage.history.acknowledged(1, 11, stage.truth, 0, [b"v"], 0)


def shown_and_not_committed(stage: Stage) -> None:
    stage.history.read(11, stage.truth, 0, batch(0), 0)


def shown_again(stage: Stage) -> None:
    stage.commit(batch(0), 1)
    stage.history.read(11, stage.truth, 1, batch(0), 0)


def shown_from_behind_the_position(stage: Stage) -> None:
    stage.commit(batch(0), 1)
    stage.commit(batch(1), 2)
    stage.history.read(11, stage.truth, 0, batch(1), 0)


def shown_with_a_gap(stage: Stage) -> None:
    for offset in range(3):
        stage.commit(batch(offset), offset + 1)
    stage.history.read(11, stage.truth, 0, batch(0) + batch(2), 0)


def gone_again(stage: Stage) -> None:
    stage.history.out_of_range(11, stage.truth, 5, 0)


def sequence_forgotten(stage: Stage) -> None:
    stage.history.refused_sequence(1, 11, stage.truth, "OUT_OF_ORDER_SEQUENCE_NUMBER")


def a_disk_was_lost_and_another_lacks_it(stage: Stage) -> None:
    stage.judge.wiped(stage.machines[13])
    stage.has(11, batch(0), high_watermark=1)


def a_disk_was_lost_and_another_has_it_in_memory(stage: Stage) -> None:
    stage.judge.wiped(stage.machines[13])
    stage.flushes = False
    stage.has(12, batch(0))
    stage.flushes = True
    stage.has(11, batch(0), high_watermark=1)


def a_disk_was_lost_and_came_back_into_the_isr(stage: Stage) -> None:
    stage.judge.wiped(stage.machines[13])
    for broker in BROKERS:
        stage.decided(RegisterBrokerRecord(broker_id=broker, fenced=False))
    stage.isr_is(11, 12)
    stage.isr_is(11, 12, 13)
    stage.has(12, batch(0))
    stage.has(11, batch(0), high_watermark=1)


def a_disk_was_lost_and_one_commits(stage: Stage) -> None:
    stage.judge.wiped(stage.machines[13])
    stage.truth.isr, stage.truth.wiped = (11,), ()
    stage.has(11, batch(0), high_watermark=1)


def fenced_in_an_isr(stage: Stage) -> None:
    for broker in BROKERS:
        stage.decided(RegisterBrokerRecord(broker_id=broker, fenced=False))
    stage.decided(BrokerRegistrationChangeRecord(broker_id=12, fenced=1))


def fenced_and_leads(stage: Stage) -> None:
    stage.truth.isr = (11,)
    stage.decided(RegisterBrokerRecord(broker_id=11, fenced=True))


def led_from_outside_of_the_isr(stage: Stage) -> None:
    for broker in BROKERS:
        stage.decided(RegisterBrokerRecord(broker_id=broker, fenced=False))
    stage.isr_is(12, 13)


# -- after an unclean election that took the second of two records ---------------------------------


def unclean_and_what_is_kept_was_other(stage: Stage) -> None:
    stage.leads_uncleanly(13)
    stage.history.acknowledged(1, 11, stage.truth, 0, [b"w"], 0)


def unclean_and_the_next_leader_tells_of_what_it_lacks(stage: Stage) -> None:
    stage.leads_uncleanly(13)
    stage.history.acknowledged(1, 13, stage.truth, 1, [b"v"], 1)


def unclean_and_the_next_leader_shows_what_it_lacks(stage: Stage) -> None:
    stage.leads_uncleanly(13)
    stage.history.read(13, stage.truth, 1, batch(1), 1)


def unclean_and_other_bytes_are_shown(stage: Stage) -> None:
    stage.leads_uncleanly(13)
    stage.history.read(11, stage.truth, 0, batch(0, b"w"), 0)


def unclean_and_what_is_kept_is_out_of_range(stage: Stage) -> None:
    stage.leads_uncleanly(13)
    stage.history.out_of_range(13, stage.truth, 1, 0)


def unclean_and_what_is_kept_is_acknowledged_again(stage: Stage) -> None:
    stage.leads_uncleanly(13)
    for _ in range(2):
        stage.history.acknowledged(1, 13, stage.truth, 0, [b"v"], 0)


def unclean_and_a_sequence_that_is_kept_is_forgotten(stage: Stage) -> None:
    stage.leads_uncleanly(13)
    stage.history.acknowledged(1, 11, stage.truth, 0, [b"v"], 0)
    stage.history.refused_sequence(1, 13, stage.truth, "OUT_OF_ORDER_SEQUENCE_NUMBER")


def unclean_and_a_sequence_that_follows_is_skipped(stage: Stage) -> None:
    stage.leads_uncleanly(13)
    sent: dict[str, Any] = {"producer_id": 5, "producer_epoch": 0, "epoch": 1}
    batches = (batch(1, base_sequence=2, **sent), batch(2, base_sequence=4, **sent))
    stage.cut(12, batch(0), high_watermark=1)
    stage.has(12, *batches)
    stage.has(13, *batches, high_watermark=3)


def unclean_and_a_follower_cuts_what_is_kept(stage: Stage) -> None:
    stage.leads_uncleanly(13)
    stage.cut(12, high_watermark=0)


def unclean_and_a_watermark_falls_below_what_is_kept(stage: Stage) -> None:
    stage.leads_uncleanly(13)
    stage.has(12, high_watermark=0)


def unclean_and_a_follower_knows_more(stage: Stage) -> None:
    stage.leads_uncleanly(13)
    stage.cut(12, batch(0), high_watermark=1)
    stage.follows(12, 1)
    stage.has(13, batch(1, epoch=1))
    stage.has(12, batch(1, epoch=1), high_watermark=2)


def unclean_and_a_follower_has_other_bytes(stage: Stage) -> None:
    stage.leads_uncleanly(13)
    stage.follows(12, 1)
    stage.truth.isr = (13, 12)
    stage.has(13, batch(1, epoch=1))
    stage.cut(12, batch(0), high_watermark=1)
    stage.has(12, batch(1, epoch=1))
    stage.has(13, high_watermark=2)
    stage.truth.batches[1].epoch = 7
    stage.has(12, high_watermark=2)


def an_epoch_begins_later_at_a_follower(stage: Stage) -> None:
    for number, start in ((11, 1), (12, 2)):
        stage.partition(number).log.epochs.entries = [(0, 0), (1, start)]
        stage.partition(number).leader_epoch = 1
    stage.truth.leaders[1] = 11
    stage.has(11, batch(0))
    stage.has(12, batch(0))


def replicas_go_before_the_others_are_in_sync(stage: Stage) -> None:
    stage.truth.isr = (11, 12)
    stage.decided(PartitionChangeRecord(topic_id=TOPIC_ID, partition_id=0, replicas=[12, 13]))


def a_new_replica_is_not_in_sync_when_an_old_one_goes(stage: Stage) -> None:
    stage.truth.isr = (11, 12)
    stage.truth.replicas, stage.truth.adding = (11, 12, 13), (13,)
    stage.decided(PartitionChangeRecord(topic_id=TOPIC_ID, partition_id=0, replicas=[12, 13]))


def two_owners(stage: Stage) -> None:
    stage.history.assigned("g", 3, "one", [0, 1])
    stage.history.assigned("g", 3, "other", [1])


def offset_lost(stage: Stage) -> None:
    stage.history.offset_committed(11, ("g", "t", 0), 7, "note")


def offset_invented(stage: Stage) -> None:
    stage.history.offset_shown(11, ("g", "t", 0), 7, "note", 0)


def offset_falls_and_rises(stage: Stage) -> None:
    stage.judge.truth.offsets[PLACE] = [(7, "a"), (8, "b"), (9, "c")]
    stage.history.offset_committed(11, PLACE, 8, "b")
    owed = stage.history.offsets_owed(PLACE)
    stage.history.offset_shown(11, PLACE, 9, "c", owed)
    stage.history.offset_shown(11, PLACE, 8, "b", owed)
    stage.history.offset_shown(11, PLACE, 7, "a", owed)


def offset_is_forgotten_for_a_while(stage: Stage) -> None:
    stage.judge.truth.offsets[PLACE] = [(7, "a")]
    stage.history.offset_committed(11, PLACE, 7, "a")
    stage.history.offset_shown(11, PLACE, -1, "", stage.history.offsets_owed(PLACE))


def offset_goes_back(stage: Stage) -> None:
    stage.judge.truth.offsets[PLACE] = [(7, "a"), (8, "b")]
    stage.history.offset_at_end(11, PLACE, 7, "a")


PLANTED: list[tuple[str, Callable[[Stage], None]]] = [
    ("S01 SingleLeaderPerEpoch", two_leaders),
    ("S04 MonotoneHighWatermark", watermark_falls),
    ("S04 MonotoneHighWatermark", unclean_and_a_watermark_falls_below_what_is_kept),
    ("S06 LeaderCompleteness", leader_lacks_what_is_committed),
    ("S07 LogMatching", other_bytes_at_one_place),
    ("S08 NoTruncateBelowHighWatermark", cut_below_the_watermark),
    ("S08 NoTruncateBelowHighWatermark", unclean_and_a_follower_cuts_what_is_kept),
    ("S09 CommittedIsForever", other_bytes_are_committed),
    ("S09 CommittedIsForever", unclean_and_a_follower_has_other_bytes),
    ("S78 EpochsBeginAlike", an_epoch_begins_later_at_a_follower),
    ("S10 AckedIsCommitted", acknowledged_and_lost),
    ("S10 AckedIsCommitted", acknowledged_and_other),
    ("S10 AckedIsCommitted", gone_again),
    ("S10 AckedIsCommitted", offset_lost),
    ("S10 AckedIsCommitted", unclean_and_what_is_kept_was_other),
    ("S10 AckedIsCommitted", unclean_and_the_next_leader_tells_of_what_it_lacks),
    ("S10 AckedIsCommitted", unclean_and_what_is_kept_is_out_of_range),
    ("S10 LogOrder", acknowledged_out_of_order),
    ("S10 LogOrder", unclean_and_what_is_kept_is_acknowledged_again),
    ("S12 OffsetContiguity", a_gap),
    ("S12 OffsetContiguity", memory_and_disk_differ),
    ("S21 ProducerSequence", sequence_twice),
    ("S21 ProducerSequence", sequence_skipped),
    ("S21 ProducerSequence", sequence_forgotten),
    ("S21 ProducerSequence", unclean_and_a_sequence_that_is_kept_is_forgotten),
    ("S21 ProducerSequence", unclean_and_a_sequence_that_follows_is_skipped),
    ("S22 GroupOwnership", two_owners),
    ("S22 OffsetsKept", offset_goes_back),
    ("S22 OffsetsKept", offset_falls_and_rises),
    ("S22 OffsetsKept", offset_is_forgotten_for_a_while),
    ("S23 IsrSound", committed_without_a_member),
    ("S23 IsrSound", a_disk_was_lost_and_another_lacks_it),
    ("S23 IsrSound", a_disk_was_lost_and_came_back_into_the_isr),
    ("S23 IsrSound", fenced_in_an_isr),
    ("S23 IsrSound", fenced_and_leads),
    ("S23 IsrSound", led_from_outside_of_the_isr),
    ("S23 IsrDurable", committed_on_no_disk),
    ("S23 IsrDurable", a_disk_was_lost_and_another_has_it_in_memory),
    ("S23 MinIsr", committed_by_one),
    ("S23 MinIsr", a_disk_was_lost_and_one_commits),
    ("S58 ReassignmentWhole", replicas_go_before_the_others_are_in_sync),
    ("S58 ReassignmentWhole", a_new_replica_is_not_in_sync_when_an_old_one_goes),
    ("S25 BoundedMemory", too_many_sessions),
    ("S26 CommittedReadOnly", a_follower_knows_more),
    ("S26 CommittedReadOnly", shown_and_not_committed),
    ("S26 CommittedReadOnly", offset_invented),
    ("S26 CommittedReadOnly", unclean_and_a_follower_knows_more),
    ("S26 CommittedReadOnly", unclean_and_the_next_leader_shows_what_it_lacks),
    ("S26 CommittedReadOnly", unclean_and_other_bytes_are_shown),
    ("S26 MonotoneReads", shown_again),
    ("S26 NothingSkipped", shown_from_behind_the_position),
    ("S26 NothingSkipped", shown_with_a_gap),
]


@pytest.mark.parametrize(("invariant", "plant"), PLANTED, ids=[p.__name__ for _, p in PLANTED])
def test_planted_violation_is_found(invariant: str, plant: Callable[[Stage], None]) -> None:
    stage = Stage(min_isr=2)
    with pytest.raises(Violation) as found:
        plant(stage)
    assert found.value.invariant == invariant


def test_what_goes_its_usual_way_is_no_violation() -> None:
    stage = Stage(min_isr=2)
    for offset in range(3):
        stage.commit(batch(offset), offset + 1)
        stage.has(12, high_watermark=offset + 1)
        stage.history.acknowledged(1, 11, stage.truth, offset, [b"v"], 0)
    assert stage.history.read(11, stage.truth, 0, batch(0) + batch(1) + batch(2)[:40], 0) == 2
    assert stage.truth.end == 3


def test_a_leader_may_commit_once_more_in_the_event_that_ends_its_leadership() -> None:
    """Metadata that come together: the ISR without who lags, and then another leader."""
    stage = Stage()
    stage.has(11, batch(0))
    stage.has(12, batch(0))
    stage.truth.isr, stage.truth.leader, stage.truth.leader_epoch = (12,), 12, 1
    partition = stage.partition(11)
    partition.is_leader, partition.leader_epoch, partition.log.high_watermark = False, 1, 1
    stage.look(11)
    assert stage.truth.end == 1


def test_what_an_unclean_election_takes_away_is_owed_no_more() -> None:
    """Only where the plan lets an operator ask for one; else it is a violation by itself."""
    stage = Stage(may_elect_uncleanly=True)
    stage.leads_uncleanly(13)
    stage.history.acknowledged(1, 11, stage.truth, 1, [b"v"], 0)
    stage.history.refused_sequence(1, 13, stage.truth, "OUT_OF_ORDER_SEQUENCE_NUMBER")
    stage.history.out_of_range(13, stage.truth, 2, 0)
    assert stage.history.read(11, stage.truth, 1, batch(1), 0) == 2
    stage.has(11, batch(2), high_watermark=3)  # it does not know
    assert stage.truth.end == 1
    stage.follows(12, 1)
    stage.cut(12, batch(0), high_watermark=1)


def test_a_producer_of_which_an_unclean_election_left_nothing_goes_on() -> None:
    """Kafka knows nothing of it there, and takes any sequence of who is unknown for the first."""
    stage = Stage(may_elect_uncleanly=True)
    stage.leads_uncleanly(13)
    stage.has(13, batch(1, producer_id=5, producer_epoch=0, base_sequence=2, epoch=1))
    stage.has(13, high_watermark=2)
    assert stage.truth.end == 2


def test_what_one_unclean_election_took_another_may_give_back() -> None:
    stage = Stage(may_elect_uncleanly=True, min_isr=2)
    stage.leads_uncleanly(13)
    stage.truth.leader, stage.truth.leader_epoch, stage.truth.isr = 12, 2, (12,)
    stage.truth.leaders[2] = 12
    stage.truth.led_uncleanly()
    stage.partition(12).is_leader, stage.partition(12).leader_epoch = True, 2
    stage.look(12)
    assert (stage.truth.end, stage.truth.is_cut) == (2, True)


def test_a_disk_that_was_lost_is_not_asked_for_until_the_isr_is_without_it() -> None:
    stage = Stage(min_isr=2)
    stage.commit(batch(0), 1)
    stage.machines[13].fs = SimFileSystem()
    stage.judge.wiped(stage.machines[13])
    stage.has(12, batch(1))
    stage.has(11, batch(1), high_watermark=2)
    assert stage.truth.end == 2
    assert stage.truth.wiped == (13,)


def test_who_is_alone_in_an_isr_stays_there_fenced() -> None:
    stage = Stage()
    stage.truth.isr, stage.truth.leader = (11,), -1
    stage.decided(RegisterBrokerRecord(broker_id=11, fenced=True))


# -- clients ---------------------------------------------------------------------------------------


class Told(GroupMember):
    """A member that keeps what it asks for until somebody answers."""

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage.context, 40, "t")
        self.topic_id, self.leaders, self.coordinator = TOPIC_ID, {0: (11, 0), 1: (11, 0)}, 11
        self.asked: list[Message] = []

    def ask(self, node_id: int, request: Message, then: Callable[[Message | None], None]) -> None:
        self.asked.append(request)
        self.then = then

    def later(self, mean_us: int) -> None:
        """Whoever tests it takes the next step."""

    def joins(self, generation: int) -> None:
        self.step()
        assert self.asked[-1].NAME == JoinGroupRequest.NAME
        self.then(JoinGroupResponse(generation_id=generation, member_id="m", leader="other"))
        assert self.asked[-1].NAME == SyncGroupRequest.NAME


def test_a_member_whose_share_got_lost_commits_for_nobody_until_it_has_one() -> None:
    stage = Stage()
    member = Told(stage)
    member.joins(1)
    member.then(SyncGroupResponse(assignment=b"[0]"))
    assert member.generation == 1
    member.step()
    assert member.asked[-1].NAME == OffsetFetchRequest.NAME
    member.then(None)
    member.topic_id, member.coordinator, member._offsets = TOPIC_ID, 11, {0: 5}
    member._commit(0)
    commit = OffsetCommitResponsePartition(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
    member.then(OffsetCommitResponse(topics=[OffsetCommitResponseTopic(partitions=[commit])]))
    member.joins(2)
    member.then(None)
    member.topic_id, member.coordinator = TOPIC_ID, 11
    member.joins(3)
    stage.history.assigned("g", 3, "other", [0])
    assert not member._owned


def test_a_consumer_asks_again_who_leads_while_a_partition_has_no_leader() -> None:
    """With seed 1513 and 2,000 events one never learnt of a partition that got its leader late."""
    stage = Stage()
    consumer = Consumer(stage.context, 20, "t")
    asked: list[Message] = []
    answers: list[Callable[[Message | None], None]] = []

    def ask(node_id: int, request: Message, then: Callable[[Message | None], None]) -> None:
        asked.append(request)
        answers.append(then)

    stage.judge.truth.partitions[TOPIC_ID, 1] = replace(stage.truth, number=1, leaders={0: -1})
    again = SimpleNamespace(ask=ask, later=lambda mean_us: consumer._go_on())
    vars(consumer).update(vars(again), some_broker=lambda: 11)
    partitions = [
        MetadataResponsePartition(
            partition_index=number, leader_id=leader, leader_epoch=0, replica_nodes=[11]
        )
        for number, leader in ((0, 11), (1, -1))
    ]
    topic = MetadataResponseTopic(name="t", topic_id=TOPIC_ID, partitions=partitions)
    consumer._go_on()
    answers[-1](MetadataResponse(topics=[topic]))
    answers[-1](FetchResponse(session_id=1))
    assert [each.NAME for each in asked] == ["MetadataRequest", "FetchRequest", "MetadataRequest"]


def test_a_member_that_commits_for_another_is_our_own_mistake() -> None:
    stage = Stage()
    stage.history.assigned("g", 3, "one", [0])
    stage.history.commits("g", 3, "one", 0)
    for member, number in (("other", 0), ("one", 1)):
        with pytest.raises(AssertionError):
            stage.history.commits("g", 3, member, number)


def test_a_request_that_is_not_answered_once_all_has_come_to_rest_is_found() -> None:
    """A broker that stands still is no fault of its own; but here nobody may stand still."""
    world = World(1, Setup(voters=(1,), brokers=(11, 12, 13), clients=0))
    assert world.cluster is not None
    world.start()
    while not world.cluster.truth.existing():
        world.scheduler.step()
    for machine in world.machines.values():
        machine.pause()
    _live(world, 10_000_000)
    assert world.marks["MetadataRequest given up"] > 0
    world.cluster.context.settled_us = world.now_us
    with pytest.raises(Violation) as found:
        _live(world, 10_000_000)
    assert found.value.invariant == "L6 ParkedRequestsEnd"


def _live(world: World, span_us: int) -> None:
    end_us = world.now_us + span_us
    while world.now_us < end_us:
        world.scheduler.step()
