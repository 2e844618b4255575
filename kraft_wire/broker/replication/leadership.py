"""A leader's state of one partition's replication: the ISR, followers, and the committed end.

KIP-497: the ISR is the one that the controller has committed. While a larger one is requested, the
high watermark already waits for its new member (the maximal ISR). While a smaller one is requested,
the high watermark still waits for the removed members. So every committed record is in the logs of
any ISR that the controller may have by then. KIP-966: below `min.insync.replicas` nothing is
committed.

A requested change ends by the controller's answer or by newer metadata, whichever comes first. Not
here: requests to the controller (`isr_changes`), waking of requests (`leader_side`).
"""

from collections.abc import Sequence
from typing import Final

from kraft_wire.broker.replication.follower_state import NEVER_MS, FollowerState
from kraft_wire.broker.replication.registered_brokers import RegisteredBrokers
from kraft_wire.frozen import slotted
from kraft_wire.metadata.image import PartitionImage
from kraft_wire.model import Offset
from kraft_wire.wire.generated.alter_partition import BrokerState, ResponsePartitionData
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["IsrChange", "Leadership"]

_UNKNOWN_EPOCH: Final = -1
_NOT_APPLIED: Final = (ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED)
"""The controller's state equals the leader's, and the change was not applied."""
_AWAITS_METADATA: Final = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.INVALID_UPDATE_VERSION,
    ErrorCode.INVALID_REQUEST,
    ErrorCode.NEW_LEADER_ELECTED,
)
"""The controller's metadata is newer than the leader's, which receives it later."""


@slotted(eq=False)
class IsrChange:
    """An ISR that the controller is asked for."""

    isr: tuple[int, ...]
    maximal_isr: tuple[int, ...]
    """The replicas for which the high watermark waits meanwhile."""
    members: list[BrokerState]
    """The requested ISR with the known broker epochs of its members."""
    leader_epoch: int
    partition_epoch: int
    """Of the state that is to be changed."""


class Leadership:
    """The state of a leader of a partition with other replicas; new for each leadership."""

    __slots__ = (
        "change",
        "epoch_start_offset",
        "followers",
        "isr",
        "known_high_watermark",
        "leader_epoch",
        "node_id",
        "partition_epoch",
        "registered_brokers",
        "replication_factor",
    )

    def __init__(self, node_id: int, registered_brokers: RegisteredBrokers) -> None:
        """Begin without state; `take` must follow."""
        self.node_id = node_id
        self.registered_brokers = registered_brokers
        self.followers: dict[int, FollowerState] = {}
        """The other replicas, in the order of the assignment."""
        self.isr: tuple[int, ...] = ()
        """The ISR that the controller has committed."""
        self.change: IsrChange | None = None
        """The requested change, until an answer ends it."""
        self.leader_epoch = _UNKNOWN_EPOCH
        self.partition_epoch = _UNKNOWN_EPOCH
        self.epoch_start_offset: Offset
        """Where the log ended when this leader epoch began."""
        self.replication_factor: int
        """Replicas, without those that a reassignment adds."""
        self.known_high_watermark: Offset | None = None
        """The last high watermark that was reported to waiting requests, None before the first."""

    @property
    def maximal_isr(self) -> tuple[int, ...]:
        """The committed ISR and the followers that a pending change adds to it."""
        return self.isr if self.change is None else self.change.maximal_isr

    def take(self, view: PartitionImage, log_end_offset: Offset, now_ms: int) -> bool:
        """Follow the metadata; false for nothing new.

        An image may be older than an answer of the controller. An image of the same partition epoch
        brings nothing new: a change that was requested since then stays pending.
        """
        assert view.leader == self.node_id, view
        is_new_epoch = view.leader_epoch > self.leader_epoch
        # Non-obvious 24: this image must not end a change asked for since.
        if view.partition_epoch <= self.partition_epoch and not is_new_epoch:
            return False
        self.forget_members()
        # Non-obvious 23: a follower may have cut its log under another leader since.
        known = {} if is_new_epoch else self.followers
        isr = tuple(view.isr)
        self.followers = {
            broker_id: known.get(broker_id)
            or FollowerState(broker_id, now_ms if is_new_epoch and broker_id in isr else NEVER_MS)
            for broker_id in view.replicas
            if broker_id != self.node_id
        }
        self.replication_factor = len(view.replicas) - len(view.adding_replicas)
        self._commit(isr, view.partition_epoch)
        if is_new_epoch:
            self.leader_epoch, self.epoch_start_offset = view.leader_epoch, log_end_offset
        return True

    def forget_members(self) -> None:
        """Let no follower that is passed over count as heard of any more."""
        for follower in self.followers.values():
            follower.is_in_isr = False

    def _commit(self, isr: tuple[int, ...], partition_epoch: int) -> None:
        """Take an ISR that the controller has committed; this ends the requested change."""
        self.isr, self.change, self.partition_epoch = isr, None, partition_epoch
        for follower in self.followers.values():
            follower.is_in_isr = follower.broker_id in isr

    # -- what is committed -----------------------------------------------------------------------

    def min_isr(self, configured: int) -> int:
        """Return `min.insync.replicas`, at most the number of replicas."""
        return min(configured, len(self.followers) + 1)

    def committed_end(
        self, own_end: Offset, log_end_offset: Offset, configured_min_isr: int, now_ms: int
    ) -> Offset | None:
        """Return the smallest end of a member of the maximal ISR, None if nothing may be committed.

        `own_end` is the end of this replica that counts. A caught-up follower that may join counts
        as well: else it might stay behind the high watermark forever.
        """
        if len(self.isr) < self.min_isr(configured_min_isr):
            return None
        end: int = own_end
        maximal_isr = self.maximal_isr
        for follower in self.followers.values():
            if follower.log_end_offset < end and (
                follower.broker_id in maximal_isr
                or self._is_about_to_join(follower, log_end_offset, now_ms)
            ):
                end = follower.log_end_offset
        return Offset(end)

    def _is_about_to_join(
        self, follower: FollowerState, log_end_offset: Offset, now_ms: int
    ) -> bool:
        is_caught_up = follower.is_caught_up(
            log_end_offset, now_ms, self.registered_brokers.lag_max_ms
        )
        return is_caught_up and self.registered_brokers.may_join(follower)

    def low_watermark(self, own_start: Offset) -> Offset:
        """Return the smallest log start offset of the replicas that are alive (KIP-107)."""
        low: int = own_start
        for follower in self.followers.values():
            if follower.log_start_offset < low and self.registered_brokers.is_alive(
                follower.broker_id
            ):
                low = follower.log_start_offset
        return Offset(low)

    # -- changes of the ISR ----------------------------------------------------------------------

    def wanted_expansion(self, follower: FollowerState, high_watermark: Offset) -> IsrChange | None:
        """Return the change that adds a follower, None if it may not join now.

        It must have all committed records, and all from before this leader epoch, which an earlier
        leader may have committed.
        """
        if (
            self.change is not None
            or self.node_id not in self.isr
            or follower.broker_id in self.isr
            or follower.log_end_offset < high_watermark
            or follower.log_end_offset < self.epoch_start_offset
            or not self.registered_brokers.may_join(follower)
        ):
            return None
        wanted = (*self.isr, follower.broker_id)
        return self._wanted(wanted, maximal_isr=wanted)

    def wanted_shrinking(self, log_end_offset: Offset, now_ms: int) -> IsrChange | None:
        """Return the change that removes followers that lag for too long, None without one."""
        if self.change is not None or self.node_id not in self.isr:
            return None
        wanted = tuple(
            broker_id
            for broker_id in self.isr
            if broker_id == self.node_id or self._is_in_sync(broker_id, log_end_offset, now_ms)
        )
        return None if wanted == self.isr else self._wanted(wanted, maximal_isr=self.isr)

    def _is_in_sync(self, broker_id: int, log_end_offset: Offset, now_ms: int) -> bool:
        follower, lag_max_ms = self.followers.get(broker_id), self.registered_brokers.lag_max_ms
        return follower is not None and follower.is_caught_up(log_end_offset, now_ms, lag_max_ms)

    def _wanted(self, isr: tuple[int, ...], *, maximal_isr: tuple[int, ...]) -> IsrChange:
        assert self.node_id in isr, isr
        self.change = IsrChange(
            isr, maximal_isr, self._with_epochs(isr), self.leader_epoch, self.partition_epoch
        )
        return self.change

    def _with_epochs(self, isr: Sequence[int]) -> list[BrokerState]:
        """Name the life of each member; -1 for one in the ISR that has not fetched here yet.

        Should that one have died meanwhile, the controller has raised the partition epoch.
        """
        members = []
        for broker_id in isr:
            if broker_id == self.node_id:
                epoch = self.registered_brokers.own_epoch()
            else:
                known = self.followers[broker_id].broker_epoch
                epoch = _UNKNOWN_EPOCH if known is None else known
            members.append(BrokerState(broker_id=broker_id, broker_epoch=epoch))
        return members

    def answered(self, change: IsrChange, answer: ResponsePartitionData) -> bool:
        """Take the controller's answer to a change; true if the change must be requested again.

        An answer that newer metadata have replaced is ignored. If the controller had newer metadata
        than the leader, the change and its maximal ISR stay until the metadata arrive.
        """
        if self.change is not change:
            return False
        error = answer.error_code
        if error == ErrorCode.NONE:
            if self._is_of_now(answer):
                self._commit(tuple(answer.isr), answer.partition_epoch)
            return False
        if error in _NOT_APPLIED:
            self.change = None
            return False
        return error not in _AWAITS_METADATA

    def _is_of_now(self, answer: ResponsePartitionData) -> bool:
        """Whether an answer has an ISR of this epoch, of replicas that are known here."""
        return (
            answer.leader_epoch == self.leader_epoch
            and answer.partition_epoch >= self.partition_epoch
            and self.node_id in answer.isr
            and len(dict.fromkeys(answer.isr)) == len(answer.isr)
            and all(each == self.node_id or each in self.followers for each in answer.isr)
        )
