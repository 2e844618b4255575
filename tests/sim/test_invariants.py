"""Every invariant has teeth: a violation is planted for each, on a cluster that works.

The cluster is settled, then one thing that the judge sees is made wrong, and only the invariant of
that thing is asked. What works is asked first and must pass.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kraft_wire.metadata.records import VersionedRecord, encode_record
from kraft_wire.model import ZERO_UUID, LeaderEpoch, Offset, OffsetAndEpoch, Uuid, uuid_to_text
from kraft_wire.node.node import Node
from kraft_wire.raft.events import TimerFired
from kraft_wire.raft.roles import Candidate, Leader, ReplicaProgress, Resigned
from kraft_wire.raft.voters import VoterSet
from kraft_wire.sim.clients.administrators import Administrator
from kraft_wire.sim.clients.stub_brokers import StubBroker
from kraft_wire.sim.disk.file_nodes import FileNode
from kraft_wire.sim.judge.decision_invariants import DecisionIsAllowed as Decisions
from kraft_wire.sim.judge.election_invariants import OneVotePerEpoch as OneVote
from kraft_wire.sim.judge.history import Operation
from kraft_wire.sim.judge.invariants import SAFETY
from kraft_wire.sim.judge.judge import NodeWatch, Signals
from kraft_wire.sim.judge.ledger import Transaction
from kraft_wire.sim.judge.log_watch import (
    Election,
    LogWatch,
    SeenBatch,
    SeenSnapshot,
    newest_voters,
    read_batches,
)
from kraft_wire.sim.judge.violation import Violation
from kraft_wire.sim.plans.plan import Fault, Plan, drawn_plan
from kraft_wire.sim.runs.run import Run, run_plan
from kraft_wire.sim.setup import Setup
from kraft_wire.sim.world import World
from kraft_wire.storage.snapshots.contents import SnapshotHead, snapshot_batches
from kraft_wire.wire.generated import alter_client_quotas
from kraft_wire.wire.generated.config_record import ConfigRecord
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.fetch import FetchPartition, FetchRequest, FetchTopic
from kraft_wire.wire.generated.partition_change_record import PartitionChangeRecord
from kraft_wire.wire.generated.partition_record import PartitionRecord
from kraft_wire.wire.generated.register_broker_record import RegisterBrokerRecord
from kraft_wire.wire.generated.topic_record import TopicRecord
from kraft_wire.wire.generated.vote import PartitionData as VotePartition
from kraft_wire.wire.generated.vote import ResponsePartitionData as VoteAnswer
from kraft_wire.wire.generated.vote import ResponseTopicData as VoteAnswers
from kraft_wire.wire.generated.vote import TopicData as VoteTopic
from kraft_wire.wire.generated.vote import VoteRequest, VoteResponse
from kraft_wire.wire.message import Message
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.control_records import ControlRecordType
from kraft_wire.wire.records.record import Record

PLANTS: dict[str, Callable[[World, NodeWatch, Any], None]] = {}
"""By invariant: makes one thing wrong on a leader's watch, and asks."""


@pytest.fixture
def world() -> World:
    run = Run(Plan(seed=3, setup=Setup(is_dynamic=True), events=1_500))
    run.live()
    return run.world


def leader_watch(world: World) -> NodeWatch:
    leader = world.leader()
    assert leader is not None
    return world.judge.watches[leader.id]


def asked(world: World, kind: type[Signals]) -> Signals:
    return next(each for each in world.judge.invariants if type(each) is kind)


def plant(function: Callable[[World, NodeWatch, Any], None]) -> None:
    PLANTS[function.__name__] = function


def changed(batch: SeenBatch, **fields: object) -> SeenBatch:
    return cast("SeenBatch", replace(batch, **fields))  # type: ignore[arg-type]  # any field


@plant
def StaleLeaderResigns(world: World, watch: NodeWatch, judge: Any) -> None:
    judge.after(watch)
    watch.machine.heard_us = world.now_us - 10_000_000
    watch.machine.heard.clear()
    judge.after(watch)


@plant
def IdleLogMoves(world: World, watch: NodeWatch, judge: Any) -> None:
    world.setup = watch.machine.setup = replace(watch.machine.setup, idle_interval_ms=500)
    judge.after(watch)
    world.scheduler.now_us += 1_900_000
    judge.after(watch)
    world.scheduler.now_us += 200_000
    judge.after(watch)


@plant
def SuccessorsInOrder(world: World, watch: NodeWatch, judge: Any) -> None:
    led = watch.quorum.role
    assert isinstance(led, Leader)
    others = [n.key for n in watch.quorum.voters.latest.nodes.values() if n.key.id != watch.id]
    first, last = others[0], others[-1]
    ends = {first: 30, last: 20}
    led.progress = {key: ReplicaProgress(key, end_offset=Offset(end)) for key, end in ends.items()}
    watch.role = Resigned(0, [first, last])
    judge.role(watch, led, 0)
    watch.role = Resigned(0, [last, first])
    judge.role(watch, led, 0)


@plant
def AddedVoterCaughtUp(world: World, watch: NodeWatch, judge: Any) -> None:
    voters = watch.quorum.voters.latest
    record = (0, ControlRecordType.KRAFT_VOTERS, voters.to_record())
    batch = SimpleNamespace(is_control=True, controls=lambda: [record])
    added = next(node for node in voters.nodes if node != watch.id)
    watch.voters = VoterSet.of(node for node in voters.nodes.values() if node.key.id != added)
    judge.appended(watch, batch, None)
    world.judge.watches[added].log = LogWatch()
    judge.appended(watch, batch, None)


@plant
def SingleLeaderPerEpoch(world: World, watch: NodeWatch, judge: Any) -> None:
    world.judge.ledger.leaders[watch.epoch] = (99, b"")
    judge.role(watch, None, 0)


@plant
def EpochMonotone(world: World, watch: NodeWatch, judge: Any) -> None:
    judge.election(watch, Election(5, 1, -1, ""), Election(4, 1, -1, ""))


@plant
def OneVotePerEpoch(world: World, watch: NodeWatch, judge: Any) -> None:
    judge.election(watch, None, Election(77, -1, 2, "x"))
    judge.election(watch, None, Election(77, -1, 3, "y"))


def grant(
    watch: NodeWatch, judge: Any, candidate: int, directory: bytes, *, pre_vote: bool = False
) -> None:
    """Have an answer leave that grants a vote of epoch 77."""
    asked = VotePartition(
        replica_epoch=77,
        replica_id=candidate,
        replica_directory_id=Uuid(directory),
        pre_vote=pre_vote,
    )
    watch.vote_asked = VoteRequest(topics=[VoteTopic(partitions=[asked])])
    answer = VoteAnswer(leader_epoch=77, vote_granted=True)
    judge.sent(watch, VoteResponse(topics=[VoteAnswers(partitions=[answer])]), -1)


DIRECTORY, OTHER_DIRECTORY = bytes(15) + b"\x02", bytes(15) + b"\x03"


def voted(watch: NodeWatch, judge: Any) -> None:
    """A durable vote for node 2 that was granted once, and may be again."""
    judge.election(watch, None, Election(77, -1, 2, uuid_to_text(Uuid(DIRECTORY))))
    grant(watch, judge, 2, DIRECTORY)
    grant(watch, judge, 2, DIRECTORY)
    grant(watch, judge, 3, OTHER_DIRECTORY, pre_vote=True)


@pytest.mark.parametrize(("candidate", "directory"), [(3, DIRECTORY), (2, OTHER_DIRECTORY)])
def test_vote_that_is_granted_again_to_another_candidate_is_found(
    candidate: int, directory: bytes, world: World
) -> None:
    watch, judge = leader_watch(world), asked(world, OneVote)
    voted(watch, judge)
    with pytest.raises(Violation, match="S03 OneVotePerEpoch"):
        grant(watch, judge, candidate, directory)


def test_vote_that_is_granted_before_it_is_durable_is_found(world: World) -> None:
    watch, judge = leader_watch(world), asked(world, OneVote)
    with pytest.raises(Violation, match="S03 OneVotePerEpoch"):
        grant(watch, judge, 2, DIRECTORY)


def test_candidate_that_names_no_directory_is_known_by_its_id(world: World) -> None:
    watch, judge = leader_watch(world), asked(world, OneVote)
    judge.election(watch, None, Election(77, -1, 2, uuid_to_text(ZERO_UUID)))
    grant(watch, judge, 2, ZERO_UUID)
    grant(watch, judge, 2, DIRECTORY)
    with pytest.raises(Violation, match="S03 OneVotePerEpoch"):
        grant(watch, judge, 3, DIRECTORY)


@plant
def MonotoneHighWatermark(world: World, watch: NodeWatch, judge: Any) -> None:
    judge.high_watermark(watch, 5, 4)


@plant
def CommittedOnMajority(world: World, watch: NodeWatch, judge: Any) -> None:
    watch.has_led = True
    end = world.judge.ledger.committed_end
    world.judge.ledger.ends[-1] = end - 1
    for other in world.judge.watches.values():
        if other is not watch:
            other.log.durable_end = end - 1
    judge.high_watermark(watch, end - 1, end)


@plant
def LeaderCompleteness(world: World, watch: NodeWatch, judge: Any) -> None:
    watch.log.batches.pop()
    watch.log.ends.pop()
    watch.epoch += 1
    judge.role(watch, None, 0)


@plant
def LogMatching(world: World, watch: NodeWatch, judge: Any) -> None:
    last = watch.log.batches[-1]
    judge.appended(watch, changed(last, crc=last.crc ^ 1), watch.log.batches[-2])


@plant
def NoTruncateBelowHighWatermark(world: World, watch: NodeWatch, judge: Any) -> None:
    assert watch.high_watermark is not None
    judge.cut(watch, watch.high_watermark - 1, False)


@plant
def CommittedIsForever(world: World, watch: NodeWatch, judge: Any) -> None:
    ledger = world.judge.ledger
    ledger.batches[-1] = changed(ledger.batches[-1], crc=0)
    judge.high_watermark(watch, 0, ledger.committed_end)


@plant
def BatchAtomicity(world: World, watch: NodeWatch, judge: Any) -> None:
    watch.log.batches[-1].segment.content += b"torn"
    judge.started(watch)


@plant
def OffsetContiguity(world: World, watch: NodeWatch, judge: Any) -> None:
    last = watch.log.batches[-1]
    judge.appended(watch, changed(last, base_offset=last.end_offset + 1), last)


@plant
def SnapshotIsReplay(world: World, watch: NodeWatch, judge: Any) -> None:
    ledger = world.judge.ledger
    assert ledger.entries, "something was written"
    empty = SeenSnapshot(ledger.committed_end, ledger.batches[-1].epoch, b"")
    judge.snapshot(watch, empty)


@plant
def SnapshotAtLogStart(world: World, watch: NodeWatch, judge: Any) -> None:
    watch.log.start_offset = 3
    watch.log.snapshots.clear()
    judge.disk(watch)


@plant
def LeaderNeverLoadsSnapshot(world: World, watch: NodeWatch, judge: Any) -> None:
    judge.cut(watch, 50, True)


@plant
def StateMachineEquality(world: World, watch: NodeWatch, judge: Any) -> None:
    world.judge.ledger.images[watch.applied_offset] = "another"
    judge.applied(watch)


@plant
def OnlyVotersCount(world: World, watch: NodeWatch, judge: Any) -> None:
    watch.quorum.voters.latest.nodes.pop(watch.id)  # type: ignore[attr-defined]  # a dict inside
    watch.role = Candidate(0)
    judge.role(watch, None, 0)


@plant
def OneVoterChange(world: World, watch: NodeWatch, judge: Any) -> None:
    watch.voters = VoterSet({})
    judge.voters(watch)


@plant
def LeaderChangeFirst(world: World, watch: NodeWatch, judge: Any) -> None:
    last = next(each for each in reversed(watch.log.batches) if not each.is_control)
    judge.appended(watch, changed(last, epoch=last.epoch + 1), last)


@plant
def FetchIsFlushed(world: World, watch: NodeWatch, judge: Any) -> None:
    follower = next(each for each in world.judge.watches.values() if each is not watch)
    last = watch.log.batches[-1]
    partition = FetchPartition(
        current_leader_epoch=follower.epoch,
        fetch_offset=last.end_offset,
        last_fetched_epoch=last.epoch,
    )
    follower.log.durable_end = last.base_offset
    request = FetchRequest(topics=[FetchTopic(partitions=[partition])])
    judge.sent(follower, request, watch.id)


@plant
def BoundedMemory(world: World, watch: NodeWatch, judge: Any) -> None:
    machine = SimpleNamespace(links=range(10_000), served=())
    judge.after(SimpleNamespace(machine=machine, id=1))


@plant
def CommittedReadOnly(world: World, watch: NodeWatch, judge: Any) -> None:
    watch.has_led = False
    judge.high_watermark(watch, 0, world.judge.ledger.committed_end + 1)


@plant
def StaleIsFenced(world: World, watch: NodeWatch, judge: Any) -> None:
    last = watch.log.batches[-1]
    judge.appended(watch, changed(last, epoch=watch.epoch + 1), last)


@plant
def StepsAreInModel(world: World, watch: NodeWatch, judge: Any) -> None:
    """A leader that takes another epoch by itself, as seen by its next step."""
    judge.started(watch)
    quorum, replica = watch.quorum, watch.node.raft.replica
    replica.step(TimerFired(), replica.stepped_ms)
    quorum.election = replace(quorum.election, leader_epoch=LeaderEpoch(quorum.epoch + 1))
    replica.step(TimerFired(), replica.stepped_ms)


@plant
def SnapshotHasVotersBelow(world: World, watch: NodeWatch, judge: Any) -> None:
    assert newest_voters(watch.log) is not None
    judge.snapshot(watch, committed_snapshot(world, snapshot_bytes(world, [])))


@plant
def TransactionIsWhole(world: World, watch: NodeWatch, judge: Any) -> None:
    end = world.judge.ledger.committed_end
    judge.snapshot(watch, SeenSnapshot(end, 1, b""))
    world.judge.ledger.transactions.append(Transaction(end - 2))
    judge.snapshot(watch, SeenSnapshot(end, 1, b""))


@plant
def SnapshotInterval(world: World, watch: NodeWatch, judge: Any) -> None:
    judge.started(watch)
    judge.snapshot(watch, SeenSnapshot(world.judge.ledger.ends[0], 1, b""))


@plant
def LeaderNamesItself(world: World, watch: NodeWatch, judge: Any) -> None:
    first = next(each for each in watch.log.batches if each.epoch == watch.epoch)
    judge.appended(watch, first, None)
    watch.machine.host = "elsewhere"
    judge.appended(watch, first, None)


@plant
def ImageIsReplay(world: World, watch: NodeWatch, judge: Any) -> None:
    key = ("config", 16, "r0", "interval.ms")
    judge.applied(watch)
    world.judge.twin.replay(ConfigRecord(resource_type=16, resource_name="r0", name=key[3]), 0)
    watch.applied_offset = 16 * (world.judge.ledger.committed_end // 16 + 1)
    judge.applied(watch)


@plant
def DecisionIsAllowed(world: World, watch: NodeWatch, judge: Any) -> None:
    topic = TopicRecord(name="t", topic_id=Uuid(b"id of the topic."))
    partition = PartitionRecord(topic_id=topic.topic_id, replicas=[1], isr=[1], leader=1)
    judge.committed(watch, batch_of(world, [topic]))
    judge.committed(watch, batch_of(world, [partition]))


def test_leader_needs_the_directory_of_its_replica(world: World) -> None:
    """KIP-858: a broker that lost its disk registers another directory, and leads nothing of it."""
    watch, judge = leader_watch(world), asked(world, Decisions)
    topic = TopicRecord(name="t", topic_id=Uuid(b"id of the topic."))
    registered, lost = Uuid(b"its directory no"), Uuid(b"the lost one now")
    broker = RegisterBrokerRecord(
        broker_id=31, incarnation_id=Uuid(b"its incarnation."), log_dirs=[registered], fenced=False
    )
    offline = PartitionRecord(
        topic_id=topic.topic_id,
        partition_id=0,
        replicas=[31],
        isr=[31],
        leader_epoch=0,
        partition_epoch=0,
        directories=[lost],
    )
    judge.committed(watch, batch_of(world, [topic, broker, offline]))
    led = PartitionChangeRecord(topic_id=topic.topic_id, partition_id=0, leader=31)
    with pytest.raises(Violation, match="leads, and may not"):
        judge.committed(watch, batch_of(world, [led]))
    found = PartitionChangeRecord(topic_id=topic.topic_id, partition_id=0, directories=[registered])
    with pytest.raises(Violation, match="has no leader"):
        judge.committed(watch, batch_of(world, [found]))


def test_leader_is_the_first_replica_that_may_lead(world: World) -> None:
    """`PartitionChangeBuilder` of 4.3.1 looks through the replicas in their order."""
    watch, judge = leader_watch(world), asked(world, Decisions)
    topic = TopicRecord(name="t", topic_id=Uuid(b"id of the topic."))
    brokers = [
        RegisterBrokerRecord(
            broker_id=each, incarnation_id=Uuid(b"an incarnation%02d" % each), fenced=False
        )
        for each in (31, 32, 33)
    ]
    replicas = [31, 32, 33]
    partition = PartitionRecord(
        topic_id=topic.topic_id,
        partition_id=0,
        replicas=replicas,
        isr=replicas,
        leader=31,
        leader_epoch=0,
        partition_epoch=0,
    )
    judge.committed(watch, batch_of(world, [topic, *brokers, partition]))
    second, third = (
        PartitionChangeRecord(topic_id=topic.topic_id, partition_id=0, isr=[32, 33], leader=each)
        for each in (32, 33)
    )
    with pytest.raises(Violation, match="is not the first that may lead"):
        judge.committed(watch, batch_of(world, [third]))
    judge.committed(watch, batch_of(world, [second]))


def batch_of(world: World, records: list[Message]) -> SeenBatch:
    """Return a batch of data that would come behind what is committed."""
    values = [encode_record(VersionedRecord(each, each.MAX_VERSION)) for each in records]
    data = build_batch(
        [Record(None, value, timestamp=0) for value in values],
        base_offset=world.judge.ledger.committed_end,
        partition_leader_epoch=1,
    )
    (batch,), _ = read_batches(bytes(data), 0, FileNode(b""))
    return batch


def snapshot_bytes(world: World, controls: list[Message]) -> bytes:
    """Return a snapshot with a head and nothing else."""
    head = SnapshotHead(0, 0, tuple(controls))
    return b"".join(
        map(bytes, snapshot_batches(OffsetAndEpoch(Offset(1), LeaderEpoch(1)), head, []))
    )


def committed_snapshot(world: World, data: bytes) -> SeenSnapshot:
    """Return a snapshot at the end of what is committed."""
    ledger = world.judge.ledger
    return SeenSnapshot(ledger.committed_end, ledger.batches[-1].epoch, data)


def test_fenced_before_its_session_ends_is_found(world: World) -> None:
    broker = StubBroker(world, world.traffic, world.judge, 31)
    leader = world.leader()
    assert leader is not None
    broker.epoch = 7
    broker._heard = (leader.id, leader.quorum.epoch, world.now_us - broker.session_ms * 1_000 + 1)
    leader.disturbed_us = 0
    with pytest.raises(Violation, match="S48 SessionIsKept"):
        broker.fenced(leader.quorum.epoch, 7, led=False)
    broker._heard = (leader.id, leader.quorum.epoch, world.now_us - 10_000_000)
    broker.fenced(leader.quorum.epoch, 7, led=False)


def test_stopping_broker_that_is_fenced_while_it_leads_is_found(world: World) -> None:
    broker = StubBroker(world, world.traffic, world.judge, 31)
    leader = world.leader()
    assert leader is not None
    broker.epoch = broker._asked_to_stop = 7
    broker._heard = (leader.id, leader.quorum.epoch, world.now_us)
    leader.disturbed_us = -1
    broker.fenced(leader.quorum.epoch, 7, led=False)
    with pytest.raises(Violation, match="S48 SessionIsKept"):
        broker.fenced(leader.quorum.epoch, 7, led=True)
    broker._asked_to_be_fenced = 7
    broker.fenced(leader.quorum.epoch, 7, led=True)


def test_silent_broker_that_stays_unfenced_is_found(world: World) -> None:
    broker = StubBroker(world, world.traffic, world.judge, 31)
    leader = world.leader()
    assert leader is not None
    broker.epoch = 7
    broker._heard = (leader.id, leader.quorum.epoch, 0)
    broker._must_be_fenced()
    world.judge.twin.now["broker", 31] = {"epoch": 7, "fenced": False}
    world.scheduler.now_us += 100_000_000
    with pytest.raises(Violation, match="S48 SessionIsKept"):
        broker._must_be_fenced()


def test_answer_that_the_log_contradicts_is_found(world: World) -> None:
    administrator = Administrator(world, world.traffic, world.judge, 0)
    request, outcomes = administrator._alter_quota()
    entry = alter_client_quotas.ResponseEntryData(error_code=0)
    answer = alter_client_quotas.AlterClientQuotasResponse(entries=[entry])
    with pytest.raises(Violation, match="S47 AnswerIsRight"):
        administrator._answered(1, request, {ErrorCode.NONE: {("quota", "x"): 1}}, answer)
    with pytest.raises(Violation, match="S47 AnswerIsRight"):
        administrator._answered(1, request, {}, answer)
    assert outcomes


def test_voter_whose_new_address_nobody_writes_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kraft_wire.raft.self_update._has_news", lambda *given: False)
    monkeypatch.setattr("kraft_wire.sim.runs.run._SETTLES_WITHIN_US", 5_000_000)
    faults = (Fault(at_us=1_200_000, kind="move", target="shortest", span_us=50_000),)
    plan = Plan(seed=1, setup=Setup(is_dynamic=True, clients=1), faults=faults, events=1_500)
    failure = run_plan(plan).failure
    assert failure is not None
    assert failure.invariant == "L8 AddressIsKnown"


def test_every_invariant_has_a_plant() -> None:
    assert sorted(PLANTS) == sorted(kind.__name__ for kind in SAFETY)


@pytest.mark.parametrize("kind", SAFETY, ids=lambda kind: kind.__name__)
def test_planted_violation_is_found(kind: type[Signals], world: World) -> None:
    watch, judge = leader_watch(world), asked(world, kind)
    with pytest.raises(Violation) as found:
        PLANTS[kind.__name__](world, watch, judge)
    assert found.value.invariant == f"{kind.id} {kind.name}"


def test_every_invariant_is_looked_at_in_a_few_seeds() -> None:
    looked: Counter[str] = Counter()
    for seed in (3, 5, 14, 40, 387):
        looked += run_plan(drawn_plan(seed)).looked
    assert {f"{kind.id} {kind.name}" for kind in SAFETY} <= set(looked)


def test_acknowledged_write_that_is_nowhere_is_found(world: World) -> None:
    operation = Operation(1, "write", ("config", "16", "r9", "interval.ms"), "12345", 1)
    world.history.invoked(operation)
    with pytest.raises(Violation, match="S10 AckedIsCommitted"):
        world.history.returned(operation, 5, "ok")


def test_shown_value_that_is_nowhere_is_found(world: World) -> None:
    operation = Operation(1, "read", ("config", "16", "r9", "interval.ms"), "12345", 1)
    world.history.invoked(operation)
    with pytest.raises(Violation, match="S26 CommittedReadOnly"):
        world.history.returned(operation, 5, "ok")


def test_producer_id_given_twice_is_found(world: World) -> None:
    first = Operation(1, "producer-id", ("producer-ids",), "7", 1)
    world.history.returned(first, 5, "ok")
    again = Operation(2, "producer-id", ("producer-ids",), "7", 2)
    with pytest.raises(Violation, match="given twice"):
        world.history.returned(again, 6, "ok")


def test_node_that_wants_to_be_woken_at_once_for_ever_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Node, "deadline_ms", lambda self: 0)
    failure = run_plan(Plan(seed=1, setup=Setup(), events=500)).failure
    assert failure is not None
    assert failure.invariant == "S24 NoBusyLoop"


def test_node_that_raises_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def receive(self: Node, *given: object) -> None:
        raise KeyError("a mistake of ours")

    monkeypatch.setattr(Node, "receive", receive)
    failure = run_plan(Plan(seed=1, setup=Setup(), events=500)).failure
    assert failure is not None
    assert failure.invariant == "S28 CrashDontLimp"


def test_cluster_that_never_elects_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    from kraft_wire.raft.rpc import vote

    monkeypatch.setattr(vote, "grants_vote", lambda *given: False)
    monkeypatch.setattr("kraft_wire.sim.runs.run._SETTLES_WITHIN_US", 5_000_000)
    failure = run_plan(Plan(seed=1, setup=Setup(clients=0), events=100)).failure
    assert failure is not None
    assert failure.invariant == "L1 LeaderElected"


def test_ids_are_those_of_the_reliability_page() -> None:
    ids = [kind.id for kind in SAFETY]
    assert ids == sorted(set(ids))
