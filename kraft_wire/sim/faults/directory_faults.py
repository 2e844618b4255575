"""An operator who moves replicas between the log directories of brokers, and calls moves off.

Each request goes to the broker whose replica is to move (AlterReplicaLogDirs). The response only
says whether the move begins; `judge.move_judge` watches the rest.
"""

from __future__ import annotations

from typing import Final

from kraft_wire.metadata.image import BROKER_RESOURCE
from kraft_wire.sim.clients.link import ClientLink
from kraft_wire.sim.faults.upkeep_faults import UpkeepFaults
from kraft_wire.sim.judge.move_judge import MoveJudge
from kraft_wire.sim.judge.partition_truth import PartitionTruth
from kraft_wire.sim.judge.replica_places import FUTURE, is_there, names_in
from kraft_wire.sim.judge.violation import Violation
from kraft_wire.sim.machine import Machine
from kraft_wire.sim.plans.plan import Fault, Habits
from kraft_wire.sim.setup import BROKER_PORT
from kraft_wire.sim.world import World
from kraft_wire.wire.generated.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kraft_wire.wire.message import Buffer, Message

__all__ = ["DirectoryFaults"]

_PLACE: Final = -1_002
_TIMEOUT_US: Final = 1_500_000
_CHANGES_MAX: Final = 40
"""Of a disk, within which a process dies after its move has begun."""
_RATE: Final = "replica.alter.log.dirs.io.max.bytes.per.second"
_SET: Final = 0
_DELETE: Final = 1
_UNKNOWN: Final = "no/such/directory"


class DirectoryFaults(UpkeepFaults):
    """Adds moves between log directories."""

    def __init__(self, world: World, habits: Habits) -> None:
        super().__init__(world, habits)
        self._mover = ClientLink(world, world.traffic, _PLACE)

    @property
    def moves(self) -> MoveJudge:
        """The judge of moves."""
        found = self.cluster.judge.moves
        assert found is not None, "brokers with one directory have no moves"
        return found

    def _alter_log_dirs(self, fault: Fault) -> bool:
        """Have a broker move replicas to another log directory.

        `other`: "all" of them; one that is "absent" on that broker; to an "unknown" directory;
        "back" to where a replica that moves has its log, which cancels the move; "dies" lets the
        process die soon after the beginning, hard if `is_hard`.
        """
        machine = self._target(fault.target)
        is_ready = self.cluster.judge.moves is not None and not self._mover.is_busy
        if machine is None or not machine.is_broker_only or not is_ready:
            return False
        roots = self.world.setup.log_directories(machine.id)
        chosen = self._chosen(machine, fault)
        if not chosen:
            return False
        path = roots[(fault.amount >> 6) % len(roots)]
        if fault.other == "back":
            path = _root_of(machine, chosen[0], roots)
        elif fault.other == "unknown":
            path = _UNKNOWN
        self._ask(machine, path, chosen, fault)
        return True

    def _slow_moves(self, fault: Fault) -> bool:
        """Limit the bytes of a second that moves copy; 0 takes the limit away."""
        config = AlterableConfig(
            name=_RATE,
            config_operation=_SET if fault.amount else _DELETE,
            value=str(fault.amount) if fault.amount else None,
        )
        everywhere = AlterConfigsResource(
            resource_type=BROKER_RESOURCE, resource_name="", configs=[config]
        )
        return self._order(IncrementalAlterConfigsRequest(resources=[everywhere]))

    def _chosen(self, machine: Machine, fault: Fault) -> list[PartitionTruth]:
        """Return the partitions of a request."""
        found = self.cluster.truth.existing()
        is_absent = fault.other == "absent"
        found = [each for each in found if (machine.id in each.replicas) is not is_absent]
        if fault.other == "all":
            return found
        if fault.other == "back":
            moving = _moving(machine, self.world.setup.log_directories(machine.id))
            found = [each for each in found if each.name in moving]
        return [found[fault.amount % len(found)]] if found else []

    def _ask(self, machine: Machine, path: str, chosen: list[PartitionTruth], fault: Fault) -> None:
        topics: dict[str, list[int]] = {}
        for each in chosen:
            topics.setdefault(each.topic, []).append(each.number)
        named = [AlterReplicaLogDirTopic(name=n, partitions=each) for n, each in topics.items()]
        request = AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=path, topics=named)])

        for each in chosen:
            self.moves.asked(machine.id, each)

        def answered(response: Message | None) -> None:
            if isinstance(response, AlterReplicaLogDirsResponse):
                self._answered(machine, path, chosen, response)
                if fault.other == "dies" and machine.is_up and not self.is_over:
                    self._arm(machine, fault)
            else:
                self.moves.unanswered(machine.id)

        self._mover.ask(machine.id, BROKER_PORT, request, _TIMEOUT_US, answered)

    def _answered(
        self,
        machine: Machine,
        path: str,
        chosen: list[PartitionTruth],
        response: AlterReplicaLogDirsResponse,
    ) -> None:
        """S73: each partition has an answer, and only an unknown directory is not found."""
        named = {(each.topic, each.number): each for each in chosen}
        errors = {
            (each.topic_name, one.partition_index): ErrorCode(one.error_code)
            for each in response.results
            for one in each.partitions
        }
        facts = (path, errors, "for", [*named])
        is_unknown = path == _UNKNOWN
        missing = [error is ErrorCode.LOG_DIR_NOT_FOUND for error in errors.values()]
        if errors.keys() != named.keys() or missing != [is_unknown] * len(missing):
            raise Violation("S73 MoveIsAnswered", machine.id, *facts)
        self.cluster.judge.looked["S73 MoveIsAnswered"] += 1
        for key, error in errors.items():
            self.world.marks[f"AlterReplicaLogDirs {error.name}"] += 1
            if error is ErrorCode.NONE:
                self.moves.answered(machine.id, named[key], path)

    def _arm(self, machine: Machine, fault: Fault) -> None:
        """Let a process die while it moves replicas."""
        machine.down_us = fault.span_us
        loses_power = fault.is_hard and machine.may_lose_power
        machine.arm_death("change", (fault.amount >> 8) % _CHANGES_MAX, loses_power=loses_power)

    def _may_be_replayed(self, data: Buffer) -> bool:
        """After an old request no directory is wrong."""
        if int.from_bytes(data[4:6], "big") == AlterReplicaLogDirsRequest.API_KEY:
            for node_id in self.world.setup.brokers:
                self.moves.unanswered(node_id)
        return super()._may_be_replayed(data)


def _moving(machine: Machine, roots: tuple[str, ...]) -> dict[str, None]:
    """Return the names of the replicas with a copy in some directory."""
    names = (name for root in roots for name in names_in(machine.fs, root))
    return {name.rpartition(".")[0]: None for name in names if name.endswith(FUTURE)}


def _root_of(machine: Machine, truth: PartitionTruth, roots: tuple[str, ...]) -> str:
    """Return the log directory that has a replica's log, the first one without a log."""
    return next((each for each in roots if is_there(machine.fs, f"{each}/{truth.name}")), roots[0])
