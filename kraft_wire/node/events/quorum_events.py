"""Log events of the metadata quorum: roles of this replica, leaders, the active controller.

The raft core writes no lines. Its host compares the role after each step with the previous one; the
core only has the trigger of the change. Not here: changes of metadata (`metadata_events`).
"""

from kraft_wire.model import NO_REPLICA, LeaderEpoch, ReplicaId, ReportEvent
from kraft_wire.node.event_log import Line
from kraft_wire.raft.figures import state_name
from kraft_wire.raft.quorum import Quorum

__all__ = ["QuorumEvents"]


class QuorumEvents:
    """Logs the changes of one replica."""

    def __init__(self, report: ReportEvent) -> None:
        self._report = report
        self._state = "-"
        self._leader: ReplicaId = NO_REPLICA
        self._is_active = False

    def role_changed(self, quorum: Quorum) -> None:
        """Log that the replica has entered a role, and why."""
        state, was = state_name(quorum), self._state
        self._state = state
        trigger = quorum.trigger
        self._report(
            "role_changed",
            role=state,
            before=was,
            epoch=quorum.epoch,
            leader=_node(quorum.leader_id),
            reason=Line("the process has started" if trigger is None else trigger.value),
        )

    def leader_elected(self, leader_id: ReplicaId, leader_epoch: LeaderEpoch) -> None:
        """Log the leader of a new epoch."""
        was, self._leader = self._leader, leader_id
        self._report(
            "quorum_leader_elected", leader=leader_id, epoch=leader_epoch, before=_node(was)
        )

    def controller_is(self, *, active: bool, epoch: int) -> None:
        """Log that the controller of this node became active or inactive."""
        if active != self._is_active:
            self._is_active = active
            self._report("controller_active" if active else "controller_resigned", epoch=epoch)


def _node(node_id: int) -> object:
    return "-" if node_id == NO_REPLICA else node_id
