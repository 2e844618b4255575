"""Each invariant of partitions and their clients, with the violation that it is there to find."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from kraft_wire.model import TopicPartition, Uuid
from kraft_wire.sim.data_history import DataHistory
from kraft_wire.sim.data_judge import DataJudge
from kraft_wire.sim.files import SimFileSystem
from kraft_wire.sim.judge import Violation
from kraft_wire.sim.partition_truth import PartitionTruth
from kraft_wire.sim.workload import Workload
from kraft_wire.wire.batch_builder import build_batch
from kraft_wire.wire.record import Record

TOPIC_ID = Uuid(b"topic id of sixt")
BROKERS = (11, 12, 13)
SEGMENT = f"{0:020d}.log"


class Stage:
    """Three replicas of one partition, each with a disk and what its node says of itself."""

    def __init__(self, **workload: Any) -> None:
        setup = SimpleNamespace(brokers=BROKERS, data=Workload(**workload))
        self.machines = {number: _machine(number) for number in BROKERS}
        self.flushes = True
        """Whether nodes flush what they append, as they promise."""
        world: Any = SimpleNamespace(machines=self.machines, setup=setup)
        self.judge = DataJudge(world)
        self.truth = PartitionTruth("t", TOPIC_ID, 0, BROKERS, BROKERS, leader=11, leaders={0: 11})
        self.judge.truth.partitions[TOPIC_ID, 0] = self.truth
        self.judge.truth.topic_ids["t"] = TOPIC_ID
        self.history = DataHistory(self.judge.truth)

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
        log=SimpleNamespace(log_end_offset=0, high_watermark=0),
    )
    sessions = SimpleNamespace(sessions_count=0)
    broker = SimpleNamespace(partitions={("t", 0): partition}, fetch_sessions=sessions)
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
    stage.history.acknowledged(1, 11, stage.truth, 0, [b"v"])


def acknowledged_and_other(stage: Stage) -> None:
    stage.commit(batch(0), 1)
    stage.history.acknowledged(1, 11, stage.truth, 0, [b"w"])


def acknowledged_out_of_order(stage: Stage) -> None:
    stage.commit(batch(0), 1)
    stage.commit(batch(1), 2)
    stage.history.acknowledged(1, 11, stage.truth, 1, [b"v"])
    stage.history.acknowledged(1, 11, stage.truth, 0, [b"v"])


def shown_and_not_committed(stage: Stage) -> None:
    stage.history.read(11, stage.truth, 0, batch(0))


def shown_again(stage: Stage) -> None:
    stage.commit(batch(0), 1)
    stage.history.read(11, stage.truth, 1, batch(0))


def gone_again(stage: Stage) -> None:
    stage.history.out_of_range(11, stage.truth, 5)


def sequence_forgotten(stage: Stage) -> None:
    stage.history.refused_sequence(11, stage.truth, "OUT_OF_ORDER_SEQUENCE_NUMBER")


def two_owners(stage: Stage) -> None:
    stage.history.assigned("g", 3, "one", [0, 1])
    stage.history.assigned("g", 3, "other", [1])


def offset_lost(stage: Stage) -> None:
    stage.history.offset_committed(11, ("g", "t", 0), 7, "note")


def offset_invented(stage: Stage) -> None:
    stage.history.offset_shown(11, ("g", "t", 0), 7, "note")


def offset_goes_back(stage: Stage) -> None:
    stage.judge.truth.offsets["g", "t", 0] = [(7, "a"), (8, "b")]
    stage.history.offset_at_end(11, ("g", "t", 0), 7, "a")


PLANTED: list[tuple[str, Callable[[Stage], None]]] = [
    ("S01 SingleLeaderPerEpoch", two_leaders),
    ("S04 MonotoneHighWatermark", watermark_falls),
    ("S06 LeaderCompleteness", leader_lacks_what_is_committed),
    ("S07 LogMatching", other_bytes_at_one_place),
    ("S08 NoTruncateBelowHighWatermark", cut_below_the_watermark),
    ("S09 CommittedIsForever", other_bytes_are_committed),
    ("S10 AckedIsCommitted", acknowledged_and_lost),
    ("S10 AckedIsCommitted", acknowledged_and_other),
    ("S10 AckedIsCommitted", gone_again),
    ("S10 AckedIsCommitted", offset_lost),
    ("S10 LogOrder", acknowledged_out_of_order),
    ("S12 OffsetContiguity", a_gap),
    ("S12 OffsetContiguity", memory_and_disk_differ),
    ("S21 ProducerSequence", sequence_twice),
    ("S21 ProducerSequence", sequence_skipped),
    ("S21 ProducerSequence", sequence_forgotten),
    ("S22 GroupOwnership", two_owners),
    ("S22 OffsetsKept", offset_goes_back),
    ("S23 IsrSound", committed_without_a_member),
    ("S23 IsrDurable", committed_on_no_disk),
    ("S23 MinIsr", committed_by_one),
    ("S25 BoundedMemory", too_many_sessions),
    ("S26 CommittedReadOnly", a_follower_knows_more),
    ("S26 CommittedReadOnly", shown_and_not_committed),
    ("S26 CommittedReadOnly", offset_invented),
    ("S26 MonotoneReads", shown_again),
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
        stage.history.acknowledged(1, 11, stage.truth, offset, [b"v"])
    assert stage.history.read(11, stage.truth, 0, batch(0) + batch(1) + batch(2)[:40]) == 2
    assert stage.truth.end == 3


def test_what_an_unclean_election_takes_away_is_owed_no_more() -> None:
    """Only where the plan lets an operator ask for one; else it is a violation by itself."""
    stage = Stage(may_elect_uncleanly=True)
    stage.commit(batch(0), 1)
    stage.has(11, batch(1))
    stage.has(12, batch(1))
    stage.has(13, batch(1, b"v"))
    stage.has(11, high_watermark=2)
    stage.truth.leader, stage.truth.leader_epoch = 13, 1
    stage.truth.leaders[1], stage.truth.unclean_epoch, stage.truth.is_cut = 13, 1, False
    stage.machines[13].fs.open(f"data/t-0/{SEGMENT}").truncate(len(batch(0)))
    partition = stage.partition(13)
    partition.log.log_end_offset, partition.is_leader, partition.leader_epoch = 1, True, 1
    stage.look(13)
    assert (stage.truth.end, stage.truth.is_cut) == (1, True)
    stage.history.acknowledged(1, 11, stage.truth, 1, [b"v"])
