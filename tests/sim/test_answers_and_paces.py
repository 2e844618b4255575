"""Judges of answers that are owed, and of what has to happen in time: each finds a planted bug."""

from __future__ import annotations

from copy import copy
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest

from kraft_wire.broker.replication.leadership import Leadership
from kraft_wire.controller.handlers import alter_partition_reassignments
from kraft_wire.controller.refusal import Refusal
from kraft_wire.model import Uuid
from kraft_wire.raft import version_upgrade
from kraft_wire.raft.rpc import begin_quorum_epoch, end_quorum_epoch, fetch, fetch_snapshot, vote
from kraft_wire.sim.clients.context import ClientContext
from kraft_wire.sim.judge.answer_fields import (
    judge_coordinator,
    judge_fetched,
    judge_metadata,
    judge_produced,
)
from kraft_wire.sim.judge.partition_truth import PartitionTruth
from kraft_wire.sim.judge.violation import Violation
from kraft_wire.sim.plans.cluster_plan import drawn_cluster_plan
from kraft_wire.sim.plans.plan import Fault, Plan
from kraft_wire.sim.runs.run import Run, run_plan
from kraft_wire.sim.setup import BROKER_PORT, Setup, host_of
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.fetch import PartitionData
from kraft_wire.wire.generated.find_coordinator import Coordinator
from kraft_wire.wire.generated.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kraft_wire.wire.generated.produce import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
)

FOREIGN = tuple(
    Fault(at_us=at_us, kind="foreign", target="leader", amount=at_us // 50_000)
    for at_us in range(1_000_000, 3_000_000, 50_000)
)


def broken(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> str | None:
    """Run a plan that settles soon or not at all; the invariant that breaks."""
    monkeypatch.setattr("kraft_wire.sim.runs.run._SETTLES_WITHIN_US", 10_000_000)
    failure = run_plan(plan).failure
    return None if failure is None else failure.invariant


def visited() -> Plan:
    """A quorum that a node of another cluster sends requests to."""
    return Plan(seed=1, setup=Setup(clients=1), faults=FOREIGN, events=2_500)


def test_node_of_another_cluster_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    result = run_plan(visited())
    assert result.failure is None
    assert result.faults["foreign"] > 5


def test_node_of_another_cluster_that_is_served_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (begin_quorum_epoch, end_quorum_epoch, fetch, fetch_snapshot, vote):
        monkeypatch.setattr(module, "is_of_other_cluster", lambda *given: False)
    assert broken(visited(), monkeypatch) == "S61 OtherClusterIsRefused"


def test_request_that_nobody_answers_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "_refuse", lambda *given: None)
    assert broken(visited(), monkeypatch) == "L6 ParkedRequestsEnd"


def upgraded() -> Plan:
    """A static quorum that an operator upgrades."""
    fault = Fault(at_us=1_500_000, kind="upgrade", other="kraft.version", amount=1)
    return Plan(seed=1, setup=Setup(clients=1), faults=(fault,), events=1_500)


def test_quorum_is_upgraded_where_somebody_wants_it() -> None:
    run = Run(upgraded())
    assert run.result().failure is None
    leader = run.world.leader()
    assert leader is not None
    assert leader.quorum.voters.kraft_version == 1


def test_upgrade_that_never_succeeds_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(version_upgrade, "_reported", lambda *given: None)
    assert broken(upgraded(), monkeypatch) == "L12 UpgradeSucceeds"


def test_reassignment_that_cannot_be_cancelled_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*given: object) -> None:
        raise Refusal(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, None)

    setup = Setup(clients=0, administrators=3, paper_brokers=4)
    monkeypatch.setattr(alter_partition_reassignments, "_taken_back", refused)
    plans = (Plan(seed=seed, setup=setup, events=4_000) for seed in range(1, 7))
    assert "S47 AnswerIsRight" in {broken(plan, monkeypatch) for plan in plans}


def test_replica_that_stays_in_the_isr_without_fetching_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Leadership, "wanted_shrinking", lambda *given: None)
    plans = (drawn_cluster_plan(seed, events=4_000) for seed in range(30))
    assert any(broken(plan, monkeypatch) == "S60 StaleReplicaLeaves" for plan in plans)


def test_isr_that_changes_while_nothing_disturbs_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(drawn_cluster_plan(3, events=300))
    usual = run._isrs
    counts = count()

    def changing() -> dict[str, int]:
        return {**usual(), "t0-0": next(counts)}

    monkeypatch.setattr(run, "_isrs", changing)
    failure = run.result().failure
    assert failure is not None
    assert failure.invariant == "L10 IsrRests"


def test_leader_without_an_endpoint_is_found() -> None:
    stage: Any = SimpleNamespace(marks={})
    judge: Any = SimpleNamespace(truth=None)
    context = ClientContext(stage, stage, judge)
    leader = LeaderIdAndEpoch(leader_id=12, leader_epoch=3)
    context.leader_is_reachable(11, leader, [NodeEndpoint(node_id=12, host="twelve", port=1)])
    context.leader_is_reachable(11, LeaderIdAndEpoch(leader_id=-1, leader_epoch=3), [])
    for endpoints in ([], [NodeEndpoint(node_id=13, host="x", port=1)]):
        with pytest.raises(Violation, match="S62 LeaderIsReachable"):
            context.leader_is_reachable(11, leader, endpoints)


def with_fields(message: Any, **fields: object) -> Any:
    """Return a copy of a message with other fields."""
    other = copy(message)
    for name, value in fields.items():
        setattr(other, name, value)
    return other


def truth_of(**fields: Any) -> PartitionTruth:
    return PartitionTruth("t0", Uuid(bytes(16)), 0, (11, 12), (11,), leaders={3: 11}, **fields)


def told(leader_id: int, *, isr: list[int], port: int = BROKER_PORT) -> MetadataResponse:
    partition = MetadataResponsePartition(
        leader_id=leader_id, leader_epoch=3, replica_nodes=[11, 12], isr_nodes=isr
    )
    topic = MetadataResponseTopic(name="t0", topic_id=Uuid(bytes(16)), partitions=[partition])
    broker = MetadataResponseBroker(node_id=11, host=host_of(11), port=port)
    return MetadataResponse(brokers=[broker], topics=[topic])


def test_metadata_that_were_never_true_are_found() -> None:
    truth: Any = SimpleNamespace(partitions={(Uuid(bytes(16)), 0): truth_of()})
    judge_metadata(13, told(11, isr=[11]), truth)
    wrong = [told(12, isr=[11]), told(11, isr=[13]), told(11, isr=[11], port=1)]
    for response in wrong:
        with pytest.raises(Violation, match="S68 AnswersAreTrue"):
            judge_metadata(13, response, truth)


def test_coordinator_that_never_led_is_found() -> None:
    right = Coordinator(node_id=11, host=host_of(11), port=BROKER_PORT)
    judge_coordinator(13, right, [truth_of()])
    for wrong in ({"node_id": 12, "host": host_of(12)}, {"host": host_of(12)}):
        with pytest.raises(Violation, match="S68 AnswersAreTrue"):
            judge_coordinator(13, with_fields(right, **wrong), [truth_of()])


def test_offsets_out_of_their_order_are_found() -> None:
    right = PartitionData(log_start_offset=2, last_stable_offset=5, high_watermark=7)
    judge_fetched(11, right, truth_of())
    for name, value in (("log_start_offset", 6), ("last_stable_offset", 8)):
        with pytest.raises(Violation, match="S68 AnswersAreTrue"):
            judge_fetched(11, with_fields(right, **{name: value}), truth_of())


def test_time_of_a_topic_that_stamps_nothing_is_found() -> None:
    right = PartitionProduceResponse(base_offset=4, log_append_time_ms=-1, log_start_offset=3)
    judge_produced(11, right, truth_of(), may_repeat=False)
    for name, value in (("log_append_time_ms", 9), ("log_start_offset", 5)):
        wrong = with_fields(right, **{name: value})
        judge_produced(11, wrong, truth_of(), may_repeat=True)
        with pytest.raises(Violation, match="S68 AnswersAreTrue"):
            judge_produced(11, wrong, truth_of(), may_repeat=False)
