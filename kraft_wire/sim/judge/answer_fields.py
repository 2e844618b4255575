"""Judges fields of answers that clients of brokers do not need: each against the metadata.

S68 AnswersAreTrue. Values of a broker may be old, but they were true once; offsets of one answer
are consistent.
"""

from __future__ import annotations

from typing import Final

from kraft_wire.sim.judge.partition_truth import PartitionTruth, Truth
from kraft_wire.sim.judge.violation import Violation
from kraft_wire.sim.setup import BROKER_PORT, host_of
from kraft_wire.wire.generated.fetch import PartitionData
from kraft_wire.wire.generated.find_coordinator import Coordinator
from kraft_wire.wire.generated.metadata import MetadataResponse
from kraft_wire.wire.generated.produce import PartitionProduceResponse

__all__ = ["judge_coordinator", "judge_fetched", "judge_metadata", "judge_produced"]

_ID: Final = "S68 AnswersAreTrue"
_NONE: Final = -1


def judge_metadata(node_id: int, response: MetadataResponse, truth: Truth) -> None:
    """A partition's leader was elected in the epoch named; brokers are where they listen."""
    for broker in response.brokers:
        _check(node_id, (broker.host, broker.port) == _address_of(broker.node_id), broker)
    for topic in response.topics:
        for each in topic.partitions if topic.error_code == 0 else ():
            partition = truth.partitions.get((topic.topic_id, each.partition_index))
            _check(node_id, partition is not None, topic.name, each)
            assert partition is not None, each
            is_elected = partition.leaders.get(each.leader_epoch, _NONE) == each.leader_id
            # A leader that is fenced, or has no such listener, is not named.
            _check(node_id, is_elected or each.leader_id == _NONE, topic.name, each)
            is_subset = set(each.isr_nodes) | {*each.offline_replicas} <= set(each.replica_nodes)
            _check(node_id, is_subset and len(each.replica_nodes) > 0, topic.name, each)


def judge_coordinator(node_id: int, found: Coordinator, partitions: list[PartitionTruth]) -> None:
    """A coordinator led some partition of the offsets topic, and has that address."""
    leaders = {leader for each in partitions for leader in each.leaders.values()}
    is_there = (found.host, found.port) == _address_of(found.node_id)
    _check(node_id, found.node_id in leaders and is_there, found, "leaders were", leaders)


def judge_fetched(node_id: int, data: PartitionData, truth: PartitionTruth) -> None:
    """Log start, last stable offset and high watermark are in their order."""
    offsets = (data.log_start_offset, data.last_stable_offset, data.high_watermark)
    is_right = 0 <= offsets[0] <= offsets[1] <= offsets[2] and data.preferred_read_replica == _NONE
    _check(node_id, is_right, truth.name, "log start, stable and high watermark", offsets)


def judge_produced(
    node_id: int, answer: PartitionProduceResponse, truth: PartitionTruth, *, may_repeat: bool
) -> None:
    """The log begins at or below the appended batch; a time is present with LogAppendTime only.

    `may_repeat`: for a duplicate batch, the time of the first one is returned, and it may be gone.
    """
    is_stamped = truth.rules is not None and truth.rules.is_append_time
    is_right = answer.log_start_offset >= 0 and not answer.record_errors
    if not may_repeat:
        is_right &= (answer.log_append_time_ms != _NONE) == is_stamped
        is_right &= answer.log_start_offset <= answer.base_offset
    _check(node_id, is_right, truth.name, answer)


def _address_of(node_id: int) -> tuple[str, int]:
    return host_of(node_id), BROKER_PORT


def _check(node_id: int, is_right: bool, *facts: object) -> None:
    if not is_right:
        raise Violation(_ID, node_id, *facts)
