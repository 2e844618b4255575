"""One step of a member towards its target: revoke, then advance, then get what others let go.

`reconciled` is a pure function: the member as it is, its target, what it says that it owns, and
who holds which partition. The states are those of `MemberState`.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from kraft_wire.broker.groups.assignors.spec import Target
from kraft_wire.broker.groups.consumer.member import (
    AssignedPartitions,
    ConsumerMember,
    MemberState,
)
from kraft_wire.broker.groups.java_collections import JavaHashMap, java_hash_set
from kraft_wire.broker.groups.refusal import Refusal
from kraft_wire.frozen import frozen
from kraft_wire.model import Uuid
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["Owned", "Reconciliation", "owns_any", "reconciled"]

Owned = Mapping[Uuid, Sequence[int]] | None
"""The partitions that a member says it owns; None if it says nothing."""


@frozen
class Reconciliation:
    """What a step of a member depends on."""

    target_epoch: int
    target: Target
    subscribed: Collection[Uuid]
    """The topics that the member subscribes to, and that exist."""
    has_names: bool
    """Whether it subscribes to any topic, existing or not."""
    is_held: Callable[[Uuid, int], bool]
    """Whether a member holds a partition, or must still revoke it."""
    owned: Owned
    has_new_subscription: bool


def reconciled(member: ConsumerMember, step: Reconciliation) -> ConsumerMember | Refusal:
    """Return the member after the step; FENCED_MEMBER_EPOCH from an unknown state."""
    match member.state:
        case MemberState.STABLE:
            if member.member_epoch != step.target_epoch:
                return _advanced(member, step, member.member_epoch)
            return _trimmed(member, step) if step.has_new_subscription else member
        case MemberState.UNREVOKED_PARTITIONS:
            if owns_any(step.owned, member.pending_revocation):
                return _trimmed(member, step) if step.has_new_subscription else member
            return _advanced(member, step, member.member_epoch)
        case MemberState.UNRELEASED_PARTITIONS:
            return _advanced(member, step, member.member_epoch)
        case MemberState.UNKNOWN:
            if step.owned is None or step.owned:
                return Refusal(ErrorCode.FENCED_MEMBER_EPOCH, _UNKNOWN_STATE)
            return _advanced(member, step, step.target_epoch)


_UNKNOWN_STATE = (
    "The consumer group member is in a unknown state. "
    "The member must abandon all its partitions and rejoin."
)


def owns_any(owned: Owned, partitions: AssignedPartitions) -> bool:
    """Whether a member may own one of the partitions: it says so, or says nothing."""
    if owned is None:
        return True
    return any(
        partition in (partitions.get(topic_id) or ())
        for topic_id, numbers in owned.items()
        for partition in numbers
    )


def _advanced(member: ConsumerMember, step: Reconciliation, epoch: int) -> ConsumerMember:
    """Revoke what is not in the target, or move to the target's epoch and take what is free."""
    kept: AssignedPartitions = JavaHashMap()
    revoked: AssignedPartitions = JavaHashMap()
    wanted: JavaHashMap[Uuid, list[int]] = JavaHashMap()
    has_unreleased = False
    for topic_id in _all_topics(member, step):
        target = step.target.get(topic_id, ()) if topic_id in step.subscribed else ()
        current = member.assigned.get(topic_id) or JavaHashMap[int, int]()
        assigned, given_up = current.copy(), current.copy()
        for partition in list(current):
            (given_up if partition in target else assigned).pop(partition)
        pending = member.pending_revocation.get(topic_id) or ()
        missing = [each for each in _hash_ordered(target) if each not in assigned]
        free = [each for each in missing if each in pending or not step.is_held(topic_id, each)]
        has_unreleased = has_unreleased or len(free) < len(missing)
        for partitions, found in ((kept, assigned), (revoked, given_up)):
            if len(found):
                partitions[topic_id] = found
        if free:
            wanted[topic_id] = free
    if len(revoked) and owns_any(step.owned, revoked):
        return _moved(member, MemberState.UNREVOKED_PARTITIONS, epoch, kept, revoked)
    for topic_id, numbers in wanted.items():
        epochs = kept.compute_if_absent(topic_id, JavaHashMap())
        for partition in numbers:
            epochs[partition] = step.target_epoch
    state = MemberState.UNRELEASED_PARTITIONS if has_unreleased else MemberState.STABLE
    return _moved(member, state, step.target_epoch, kept, JavaHashMap())


def _all_topics(member: ConsumerMember, step: Reconciliation) -> JavaHashMap[Uuid, None]:
    topics = java_hash_set(step.target, max(int(len(step.target) / 0.75) + 1, 16))
    for topic_id in member.assigned:
        topics[topic_id] = None
    return topics


def _hash_ordered(partitions: tuple[int, ...]) -> JavaHashMap[int, None]:
    return java_hash_set(partitions, max(int(len(partitions) / 0.75) + 1, 16))


def _trimmed(member: ConsumerMember, step: Reconciliation) -> ConsumerMember:
    """Give up the partitions of topics that the member no longer subscribes to."""
    gone = [topic_id for topic_id in member.assigned if topic_id not in step.subscribed]
    if not step.has_names and not len(member.pending_revocation):
        return _with_revoked(member, step, JavaHashMap(), member.assigned)
    if not gone:
        return member
    kept, revoked = member.assigned.copy(), member.pending_revocation.copy()
    for topic_id in gone:
        partitions = kept.pop(topic_id)
        assert partitions is not None, topic_id
        present = revoked.get(topic_id)
        if present is None:
            revoked.compute_if_absent(topic_id, partitions)  # Java's merge has the same order
            continue
        merged = present.copy()
        for partition, epoch in partitions.items():
            merged[partition] = epoch
        revoked[topic_id] = merged
    return _with_revoked(member, step, kept, revoked)


def _with_revoked(
    member: ConsumerMember,
    step: Reconciliation,
    kept: AssignedPartitions,
    revoked: AssignedPartitions,
) -> ConsumerMember:
    """Have the member revoke, unless it says that it owns nothing of that any more."""
    if len(revoked) and owns_any(step.owned, revoked):
        unrevoked = MemberState.UNREVOKED_PARTITIONS
        return _moved(member, unrevoked, member.member_epoch, kept, revoked)
    return _moved(member, member.state, member.member_epoch, kept, member.pending_revocation)


def _moved(
    member: ConsumerMember,
    state: MemberState,
    epoch: int,
    assigned: AssignedPartitions,
    pending: AssignedPartitions,
) -> ConsumerMember:
    return replace(
        member,
        state=state,
        member_epoch=epoch,
        previous_member_epoch=member.member_epoch,
        assigned=assigned,
        pending_revocation=pending,
    )
