"""An operator who moves replicas between the log directories of brokers, and calls moves off.

Each request goes to the broker whose replica is to move (AlterReplicaLogDirs). The response only
says whether the move begins; `judge.move_judge` watches the rest.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from kraft_wire.metadata.image import BROKER_RESOURCE
from kraft_wire.settings.cordoning import CORDONED_KEY
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
_LOOKS_EVERY_US: Final = 5_000
_UNDONE_AFTER_US: Final = (0, 20_000, 60_000, 120_000)
_SET: Final = 0
_DELETE: Final = 1
_UNKNOWN: Final = "no/such/directory"


class DirectoryFaults(UpkeepFaults):
    """Adds moves between log directories."""

    def __init__(self, world: World, habits: Habits) -> None:
        super().__init__(world, habits)
        self._mover = ClientLink(world, world.traffic, _PLACE)
        self._cordoned: dict[int, None] = {}
        """Brokers that the operator has asked to cordon directories."""

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

    def _undo_move(self, fault: Fault) -> bool:
        """Cancel the next move on any broker that begins within `span_us`."""
        self._undo_until(fault, self.world.now_us + fault.span_us)
        return True

    def _undo_until(self, fault: Fault, until_us: int) -> None:
        if self.is_over or self.world.now_us > until_us:
            return
        setup = self.world.setup
        for node_id in setup.brokers:
            if _moving(self.world.machines[node_id], setup.log_directories(node_id)):
                back = replace(fault, target=str(node_id), other="back")
                delay_us = _UNDONE_AFTER_US[fault.amount % len(_UNDONE_AFTER_US)]
                self.world.scheduler.after(delay_us, self._undo, back)
                return
        self.world.scheduler.after(_LOOKS_EVERY_US, self._undo_until, fault, until_us)

    def _undo(self, back: Fault) -> None:
        if not self.is_over:
            self._alter_log_dirs(back)

    def _slow_moves(self, fault: Fault) -> bool:
        """Limit the bytes of a second that moves copy; 0 takes the limit away."""
        return self._set("", _RATE, str(fault.amount) if fault.amount else None)

    def _cordon(self, fault: Fault) -> bool:
        """Cordon one log directory of a broker (KIP-1066), or none of them if `is_hard`."""
        machine = self._target(fault.target)
        if machine is None or not machine.is_broker_only:
            return False
        roots = self.world.setup.log_directories(machine.id)
        path = roots[(fault.amount >> 6) % len(roots)]
        is_sent = self._set(str(machine.id), CORDONED_KEY, None if fault.is_hard else path)
        if is_sent:
            self._cordoned[machine.id] = None
        return is_sent

    def _set(self, broker: str, key: str, value: str | None) -> bool:
        """Set a key of one broker, of all if it has no name, or take it away; whether it is asked.

        Another request of the operator may be in flight.
        """
        operation = _DELETE if value is None else _SET
        config = AlterableConfig(name=key, config_operation=operation, value=value)
        place = AlterConfigsResource(
            resource_type=BROKER_RESOURCE, resource_name=broker, configs=[config]
        )
        request = IncrementalAlterConfigsRequest(resources=[place])
        operator = self.cluster.operator
        if not broker or operator.is_busy:
            return self._order(request)
        # Only the broker itself takes a change of its own settings.
        operator.ask(int(broker), BROKER_PORT, request, _TIMEOUT_US, lambda response: None)
        return True

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
        """S73: each partition has an answer, and only an unknown directory is not found.

        Only a broker with cordoned directories refuses one.
        """
        named = {(each.topic, each.number): each for each in chosen}
        errors = {
            (each.topic_name, one.partition_index): ErrorCode(one.error_code)
            for each in response.results
            for one in each.partitions
        }
        facts = (path, errors, "for", [*named])
        is_unknown = path == _UNKNOWN
        missing = [error is ErrorCode.LOG_DIR_NOT_FOUND for error in errors.values()]
        refused = ErrorCode.INVALID_REPLICA_ASSIGNMENT in errors.values()
        is_right = errors.keys() == named.keys() and missing == [is_unknown] * len(missing)
        if not is_right or (refused and machine.id not in self._cordoned):
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
