"""The faults of a world with brokers, and its operator's changes of partitions.

All faults of `quorum_faults`, for controllers and brokers alike, within the promised limits: a
broker that does not flush is killed and keeps its power; at most one disk is lost, and a broker's
only while every partition is in sync. After that no other fault happens until the controller has
noticed the loss: without eligible leader replicas (KIP-966) that broker may be alone in an ISR.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from kraft_wire.sim.cluster import Cluster
from kraft_wire.sim.faults.quorum_faults import QuorumFaults
from kraft_wire.sim.judge.partition_truth import PartitionTruth
from kraft_wire.sim.machine import Machine
from kraft_wire.sim.plans.plan import Fault, Habits
from kraft_wire.sim.scheduler import Clock
from kraft_wire.sim.setup import BROKER_PORT, CONTROLLER_PORT
from kraft_wire.sim.world import World
from kraft_wire.wire.generated.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kraft_wire.wire.generated.delete_share_group_state import DeleteShareGroupStateRequest
from kraft_wire.wire.generated.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kraft_wire.wire.generated.elect_leaders import ElectLeadersRequest, TopicPartitions
from kraft_wire.wire.generated.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
)
from kraft_wire.wire.generated.write_share_group_state import WriteShareGroupStateRequest
from kraft_wire.wire.message import Buffer, Message

__all__ = ["ClusterFaults"]

_PREFERRED: Final = 0
_UNCLEAN: Final = 1
_QUORUM_APIS: Final = (52, 53, 54, 59)
"""Messages that may be sent with flipped bits: in others a receiver cannot detect the damage."""
_CHANGES_OF_SHARE_STATE: Final = (
    InitializeShareGroupStateRequest.API_KEY,
    WriteShareGroupStateRequest.API_KEY,
    DeleteShareGroupStateRequest.API_KEY,
)
"""Messages that may not be sent again later."""


class ClusterFaults(QuorumFaults):
    """The faults of one world with brokers."""

    def __init__(self, world: World, habits: Habits) -> None:
        super().__init__(world, habits)
        assert world.cluster is not None, "a world without brokers has no partitions"
        self.cluster: Cluster = world.cluster
        for client in self.cluster.clients:
            client.think_us = habits.think_us
        self._replaced: int | None = None
        """A broker whose disk was replaced, until it is in no ISR any more."""

    def heal(self) -> None:
        super().heal()
        for machine in self.world.running():
            if self.cluster.offline(machine):
                machine.kill()
                machine.start_if_down()

    def _target(self, name: str, *, down: bool = False) -> Machine | None:
        """Resolve brokers too: "broker:N", and "leads:N" for the leader of the N-th partition."""
        kind, _, number = name.partition(":")
        if kind not in ("broker", "leads"):
            return super()._target(name, down=down)
        node_id = -1
        if kind == "leads":
            partition = self._partition(int(number))
            node_id = -1 if partition is None else partition.leader
        else:
            brokers = self.world.setup.brokers
            node_id = brokers[int(number) % len(brokers)]
        machine = self.world.machines.get(node_id)
        return machine if machine is not None and (down or machine.is_up) else None

    def _partition(self, number: int) -> PartitionTruth | None:
        existing = self.cluster.truth.existing()
        return existing[number % len(existing)] if existing else None

    # -- machines --------------------------------------------------------------------------------

    def _crash(self, fault: Fault) -> bool:
        machine = self._target(fault.target)
        if machine is not None and not machine.may_lose_power:
            fault = replace(fault, is_hard=False, target=str(machine.id))
        return super()._crash(fault)

    def _disk_error(self, fault: Fault) -> bool:
        machine = self._target(fault.target)
        if machine is not None and not machine.may_lose_power:
            return False  # a failed fsync leaves the disk as after a loss of power
        return super()._disk_error(fault)

    def _wipe(self, fault: Fault) -> bool:
        machine = self._target(fault.target, down=True)
        if machine is None or not machine.is_broker_only:
            return self.world.setup.is_dynamic and super()._wipe(fault)
        if self.wiped or not self._is_whole():
            return False
        self.wiped[machine.id] = True
        self._calm_down()
        self._replaced = machine.id
        machine.down_us = fault.span_us
        machine.wipe()
        return True

    def _is_whole(self) -> bool:
        """Whether all nodes run, and all replicas of every partition are in sync.

        This must last: the session of a former process that is about to end, a stop, a clock that
        delays heartbeats, a controller that has moved away from brokers, or a requested change of
        an ISR may leave the broker whose disk is lost alone in an ISR.
        """
        partitions = self.cluster.truth.existing()
        if any(map(self.world.addresses.is_outdated, self.world.machines)):
            return False
        return (
            bool(partitions)
            and not any(self._may_end_a_session(*each) for each in self.world.network.cuts)
            and all(_is_well(each) for each in self.world.machines.values())
            and all(len(each.isr) > 1 and {*each.isr} == {*each.replicas} for each in partitions)
        )

    def _may_end_a_session(self, source: int, target: int) -> bool:
        """Return whether a cut is between a broker and a controller."""
        brokers = self.world.setup.brokers
        return (source in brokers) != (target in brokers)

    def _calm_down(self) -> None:
        """End the faults that may make a broker's session end."""
        self.world.network.heal_all()
        self.world.network.delays.slow.clear()
        for machine in self.world.machines.values():
            machine.disarm()
            machine.fs.fault = None
            machine.clock.change_rate(self.world.now_us, Clock.USUAL_PERMILLE)
            machine.wake_anew()

    def _is_replacing(self) -> bool:
        """Whether a broker that lost its disk is still assumed to have its records."""
        partitions = self.cluster.truth.existing()
        if self._replaced is not None and not any(self._replaced in p.isr for p in partitions):
            self._replaced = None
        return self._replaced is not None

    def _happen(self, fault: Fault) -> None:
        if not self._is_replacing():
            super()._happen(fault)

    def _flap_down(self, one: list[int], other: list[int]) -> None:
        if not self._is_replacing():
            super()._flap_down(one, other)

    def _may_be_garbled(self, data: bytes) -> bool:
        return int.from_bytes(data[4:6], "big") in _QUORUM_APIS

    def _may_be_replayed(self, data: Buffer) -> bool:
        """A change of share state does not say that it is older than the state, as in Kafka."""
        return int.from_bytes(data[4:6], "big") not in _CHANGES_OF_SHARE_STATE

    def _port_of(self, machine: Machine) -> int:
        return BROKER_PORT if machine.is_broker_only else CONTROLLER_PORT

    # -- the operator ----------------------------------------------------------------------------

    def _order(self, request: Message) -> bool:
        if self.cluster.operator.is_busy:
            return False
        self.cluster.order(request)
        return True

    def _reassign(self, fault: Fault) -> bool:
        """Give a partition as many replicas on other brokers, or call a reassignment off."""
        partition = self._partition(fault.amount)
        if partition is None:
            return False
        brokers = self.world.setup.brokers
        at = (fault.amount >> 4) % len(brokers)
        turned = [*brokers[at:], *brokers[:at]]
        wanted = turned[: min(self.world.setup.data.replicas, len(brokers))]
        is_called_off = partition.is_moving and fault.is_hard
        place = ReassignablePartition(
            partition_index=partition.number, replicas=None if is_called_off else wanted
        )
        topic = ReassignableTopic(name=partition.topic, partitions=[place])
        return self._order(AlterPartitionReassignmentsRequest(timeout_ms=2_000, topics=[topic]))

    def _elect_preferred(self, fault: Fault) -> bool:
        request = ElectLeadersRequest(
            election_type=_PREFERRED, topic_partitions=None, timeout_ms=2_000
        )
        return self._order(request)

    def _elect_uncleanly(self, fault: Fault) -> bool:
        """Let any available replica lead a partition without a leader."""
        setup = self.world.setup.data
        lost = [
            each
            for each in self.cluster.truth.existing()
            if each.leader < 0 and each.topic in self.cluster.topics
        ]
        if not lost or not setup.may_elect_uncleanly:
            return False
        partition = lost[fault.amount % len(lost)]
        place = TopicPartitions(topic=partition.topic, partitions=[partition.number])
        request = ElectLeadersRequest(
            election_type=_UNCLEAN, topic_partitions=[place], timeout_ms=2_000
        )
        return self._order(request)

    def _delete_topic(self, fault: Fault) -> bool:
        """Delete a topic, but not the group's; it is made again, with another id."""
        name = self.cluster.topics[-1]
        if len(self.cluster.topics) < 2 or name not in self.cluster.truth.topic_ids:
            return False
        return self._order(
            DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=2_000)
        )


def _is_well(machine: Machine) -> bool:
    """Whether a process runs, in time, is registered, and asks for no other ISR."""
    node = machine.node
    if node is None or machine.is_paused or machine.is_stopping or not machine.serves_clients:
        return False
    if machine.clock.rate_permille != Clock.USUAL_PERMILLE:
        return False
    if not machine.is_broker_only:
        return True
    led = [each.leadership for each in node.broker.partitions.values()]
    return all(each is None or each.change is None for each in led)
