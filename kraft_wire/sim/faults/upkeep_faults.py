"""Faults and operators' changes of logs that are kept small.

DeleteRecords (to the high watermark, into a batch, to an epoch's end, a partition twice), disks
that fill up and have room again, reassignments to fewer and to more replicas, and transactions that
an Apache leader left open.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kraft_wire.broker.coordination.topic import key_partition
from kraft_wire.broker.metadata.metadata_cache import TRANSACTION_TOPIC
from kraft_wire.sim.faults.cluster_faults import ClusterFaults
from kraft_wire.sim.faults.open_transactions import (
    aged_id,
    append_to_last_segment,
    transactions_of_another_leader,
)
from kraft_wire.sim.judge.partition_truth import PartitionTruth
from kraft_wire.sim.plans.plan import Fault
from kraft_wire.sim.setup import BROKER_PORT
from kraft_wire.sim.workload import AGED_ID
from kraft_wire.wire.generated.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kraft_wire.wire.generated.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from kraft_wire.wire.message import Message

__all__ = ["UpkeepFaults"]

_UP_TO_HIGH_WATERMARK: Final = -1
_TIMEOUT_US: Final = 3_000_000
_DOWN_US_MAX: Final = 400_000
_FIRST_PRODUCER: Final = 1 << 40
_AGED_PRODUCER: Final = 1 << 39
"""No broker of ours gives such ids in a simulation."""


class UpkeepFaults(ClusterFaults):
    """Adds the faults of compaction, retention and disk space."""

    def _deletable_partition(self, number: int) -> PartitionTruth | None:
        """Return a partition whose records may be deleted, sometimes one that refuses it."""
        found = [each for each in self.cluster.truth.existing() if each.rules is not None]
        if number % 8:
            found = [each for each in found if each.rules is not None and each.rules.is_deleted]
        return found[number % len(found)] if found else None

    def _delete_records(self, fault: Fault) -> bool:
        """Have records deleted below some offset."""
        truth = self._deletable_partition(fault.amount)
        operator = self.cluster.operator
        if truth is None or truth.leader < 0 or operator.is_busy:
            return False
        offsets = [self._offset(truth, fault)]
        if fault.amount % 5 == 0:
            offsets.append(self._offset(truth, fault, 7))
        truth.starts_ordered += offsets
        places = [
            DeleteRecordsPartition(partition_index=truth.number, offset=each) for each in offsets
        ]
        topic = DeleteRecordsTopic(name=truth.topic, partitions=places)
        request = DeleteRecordsRequest(topics=[topic], timeout_ms=2_000)

        def answered(response: Message | None) -> None:
            if isinstance(response, DeleteRecordsResponse):
                self.cluster.history.records_deleted(truth, offsets, response)

        operator.ask(truth.leader, BROKER_PORT, request, _TIMEOUT_US, answered)
        return True

    def _offset(self, truth: PartitionTruth, fault: Fault, shift: int = 0) -> int:
        """Return an offset to delete up to: the end, an epoch's end, inside a batch, or beyond."""
        draw = (fault.amount >> 4) + shift
        match draw % 6:
            case 0:
                return _UP_TO_HIGH_WATERMARK
            case 1:
                ends = [b.base_offset for b in truth.batches if truth.ends_epoch(b.base_offset)]
                if ends:
                    return ends[(draw >> 4) % len(ends)]
            case 2:
                return truth.end + 1 + draw % 3
            case _:
                pass
        first = max(truth.start, 0)
        return first + (draw >> 3) % max(1, truth.end - first + 1)

    def _resize(self, fault: Fault) -> bool:
        """Give a partition fewer replicas, or all that there can be."""
        partition = self._partition(fault.amount)
        if partition is None:
            return False
        brokers = self.world.setup.brokers
        at = (fault.amount >> 4) % len(brokers)
        turned = [*brokers[at:], *brokers[:at]]
        count = self.world.setup.data.min_isr if fault.is_hard else len(brokers)
        place = ReassignablePartition(partition_index=partition.number, replicas=turned[:count])
        topic = ReassignableTopic(name=partition.topic, partitions=[place])
        request = AlterPartitionReassignmentsRequest(
            timeout_ms=2_000, topics=[topic], allow_replication_factor_change=True
        )
        return self._order(request)

    def _full_disk(self, fault: Fault) -> bool:
        """Let a broker's disk fill up for a while."""
        machine = self._target(fault.target)
        if machine is None or not machine.is_broker_only or machine.fs.capacity_bytes is not None:
            return False
        machine.fs.capacity_bytes = machine.fs.used_bytes() + fault.amount % 600
        self.world.scheduler.after(fault.span_us, self._room_again, machine.id)
        return True

    def _room_again(self, node_id: int) -> None:
        self.world.machines[node_id].fs.capacity_bytes = None

    def heal(self) -> None:
        for node_id in self.world.setup.brokers:
            self._room_again(node_id)
        super().heal()

    def _open_transaction(self, fault: Fault) -> bool:
        """Let an Apache leader have left a transaction open, after one of each other outcome.

        Our brokers take over logs of brokers with transactions. The replicas' processes end at
        once; the leader's log, and the logs that are level with it, get the records that such a
        leader would have written and replicated before they start again.
        """
        topics = self.cluster.upkeep_topics
        found = [each for each in self.cluster.truth.existing() if each.topic in topics]
        truth = found[fault.amount % len(found)] if found else None
        if truth is None or truth.leader < 0 or truth.has_open_transaction:
            return False
        return self._append_while_down(
            truth,
            fault,
            lambda offset: transactions_of_another_leader(
                offset,
                truth.leader_epoch,
                _FIRST_PRODUCER + fault.at_us,
                fault.amount,
                is_append_time=truth.rules is not None and truth.rules.is_append_time,
            ),
        )

    def _aged_id(self, fault: Fault) -> bool:
        """Let an Apache coordinator have left an id whose producer has few epochs left."""
        transactions, data = self.cluster.judge.transactions, self.world.setup.data
        if transactions is None or AGED_ID in transactions.ids.ids:
            return False
        found = self.cluster.truth.of_topic(TRANSACTION_TOPIC)
        number = key_partition(AGED_ID, max(len(found), 1))
        truth = next((each for each in found if each.number == number), None)
        if truth is None or truth.leader < 0:
            return False
        return self._append_while_down(
            truth,
            fault,
            lambda offset: aged_id(
                offset, truth.leader_epoch, AGED_ID, _AGED_PRODUCER, data.transaction_timeout_ms
            ),
        )

    def _append_while_down(
        self, truth: PartitionTruth, fault: Fault, batches: Callable[[int], bytes]
    ) -> bool:
        """Append to a partition's log at the given offset, while no process has it open."""
        watches = [self.cluster.judge.watch_of(each, truth) for each in truth.isr]
        machines = [self.world.machines[each] for each in truth.replicas]
        if any(each.fs.capacity_bytes is not None for each in machines):
            return False
        for machine in machines:
            machine.down_us = 1_000 + fault.span_us % _DOWN_US_MAX
            machine.kill()
        for watch in watches:
            watch.look()
        leader = next(each for each in watches if each.machine.id == truth.leader)
        data = batches(leader.log.end_offset)
        if truth.has_placed(truth.leader_epoch, leader.log.end_offset):
            return True  # a leader that lost records writes in a new epoch
        for watch in watches:
            is_level = watch.log.end_offset == leader.log.end_offset
            if is_level and watch.log.last_epoch == leader.log.last_epoch:
                append_to_last_segment(watch.machine.fs, watch.log.directory, data)
        return True
