"""A consumer group becomes a classic group again while its members are in it (KIP-848).

That happens when its last member of the consumer protocol leaves and members of the classic
protocol remain. The group's epoch becomes the generation, the targets become the assignments, and
the members rebalance, because the partitions of the member that left have no owner.
"""

from collections.abc import Collection, Mapping, Sequence

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.coordination.log import Appended, CoordinatorRecord
from kraft_wire.broker.groups.assignors.spec import Target
from kraft_wire.broker.groups.classic.group import CONSUMER_PROTOCOL_TYPE, ClassicGroup
from kraft_wire.broker.groups.classic.member import Member
from kraft_wire.broker.groups.classic.rebalance import begin_rebalance
from kraft_wire.broker.groups.classic.states import GroupState
from kraft_wire.broker.groups.consumer.group import ConsumerGroup
from kraft_wire.broker.groups.consumer.member import ConsumerMember
from kraft_wire.broker.groups.consumer.migration.embedded_protocol import (
    encoded_assignment,
    version_of,
)
from kraft_wire.broker.groups.consumer.migration.policy import migration_policy
from kraft_wire.broker.groups.consumer.records import group_tombstones
from kraft_wire.broker.groups.java_collections import java_hash_set
from kraft_wire.broker.groups.records import group_record
from kraft_wire.broker.groups.shard import GroupShard, put_classic_group
from kraft_wire.frozen import frozen
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.message import MalformedMessage

__all__ = ["Downgrade", "downgrade", "is_downgrade_due"]


@frozen
class Downgrade:
    """What a group is turned into, and what is written before."""

    group: ConsumerGroup
    members: Sequence[ConsumerMember]
    """The members that are left, the first of which leads."""
    targets: Mapping[str, Target]
    replaced: Mapping[str, str]
    """A static member's id to that of the one that takes its place."""
    records: Sequence[CoordinatorRecord]
    rebalances: bool


def is_downgrade_due(
    shard: GroupShard,
    group: ConsumerGroup,
    gone: Collection[str],
    *,
    replacements: int = 0,
) -> bool:
    """Whether only classic members are left without some.

    `replacements` is the number of classic members that take the places of those.
    """
    settings = shard.env.settings()
    left = [each for each in group.members.values() if each.member_id not in gone]
    count = len(left) + replacements
    return (
        0 < count <= settings.group_max_size
        and all(each.classic_metadata is not None for each in left)
        and migration_policy(settings).allows_downgrade
    )


def downgrade(shard: GroupShard, done: Downgrade, at: ClockReading) -> Appended:
    """Write the tombstones of the group and the classic one as one batch, and rebalance.

    Errors, as in Kafka, first match wins: UNKNOWN_SERVER_ERROR if no protocol is one of all members
    (their records may say so), GROUP_ID_NOT_FOUND if the subscriptions cannot be read.
    """
    group = done.group
    if not _shares_protocol(done.members):
        return Appended(ErrorCode.UNKNOWN_SERVER_ERROR)
    try:
        classic = _classic_group(shard, done, at)
    except MalformedMessage:
        return Appended(ErrorCode.GROUP_ID_NOT_FOUND)
    known = (*group.members, *group.targets)
    member_ids = list(dict.fromkeys(done.replaced.get(each, each) for each in known))
    assignments = {each.member_id: each.assignment for each in classic.members.values()}
    records = [
        *done.records,
        *group_tombstones(group.group_id, member_ids, list(group.regexes)),
        group_record(classic, assignments),
    ]
    appended = shard.log.append_for_later(records, at)
    if appended.error is not ErrorCode.NONE:
        classic.release()
        return appended
    put_classic_group(shard, classic)
    for member in classic.members.values():
        shard.schedule_session(classic, member, at)
    if done.rebalances:
        begin_rebalance(shard, classic, at)
    return appended


def _shares_protocol(members: Sequence[ConsumerMember]) -> bool:
    """Whether a protocol is one of all members: JoinGroup requests of others are refused."""
    names = [
        [protocol.name for protocol in each.classic_metadata.supported_protocols]
        for each in members
        if each.classic_metadata is not None
    ]
    assert len(names) == len(members), "members of the consumer protocol prevent it"
    return any(all(name in each for each in names) for name in names[0])


def _classic_group(shard: GroupShard, done: Downgrade, at: ClockReading) -> ClassicGroup:
    """Return the classic group, stable with its assignments; MalformedMessage."""
    group_id = done.group.group_id
    classic = ClassicGroup(group_id, shard.env.memory, at.wall_ms, GroupState.STABLE)
    classic.generation_id = done.group.epoch
    by_id = {each.member_id: each for each in done.members}
    for member_id in java_hash_set(by_id):
        classic.add(_classic_member(by_id[member_id]), None)
    classic.leader_id = done.members[0].member_id
    protocol = classic.protocol_name = classic.select_protocol()
    classic.subscribed_topics = classic.read_subscriptions()
    try:
        for member in classic.members.values():
            version = version_of(member.protocols[protocol])
            target = done.targets.get(member.member_id) or {}
            assignment = encoded_assignment(target, version, shard.env.image())
            classic.set_assignment(member, assignment)
    except MalformedMessage:
        classic.release()
        raise
    return classic


def _classic_member(member: ConsumerMember) -> Member:
    classic = member.classic_metadata
    assert classic is not None, member.member_id
    return Member(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        session_timeout_ms=classic.session_timeout_ms,
        protocol_type=CONSUMER_PROTOCOL_TYPE,
        protocols={each.name: bytes(each.metadata) for each in classic.supported_protocols},
    )
