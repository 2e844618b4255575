"""A consumer group as ConsumerGroupDescribe shows it."""

from kraft_wire.broker.groups.consumer.group import ConsumerGroup
from kraft_wire.broker.groups.consumer.member import AssignedPartitions, ConsumerMember
from kraft_wire.broker.groups.consumer.target_assignment import most_used
from kraft_wire.broker.groups.java_collections import JavaHashMap
from kraft_wire.metadata.image import MetadataImage
from kraft_wire.model import Uuid
from kraft_wire.wire.generated.consumer_group_describe import (
    Assignment,
    DescribedGroup,
    Member,
    TopicPartitions,
)

__all__ = ["described_group"]

_CLASSIC, _CONSUMER = 0, 1


def described_group(
    group: ConsumerGroup, image: MetadataImage, default_assignor: str
) -> DescribedGroup:
    """Describe a group; topics that no longer exist are left out."""
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state_name,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=most_used(group.assignor_users.items(), default_assignor),
        members=[_member(group, each, image) for each in group.members.values()],
    )


def _member(group: ConsumerGroup, member: ConsumerMember, image: MetadataImage) -> Member:
    """Describe a member: it still has what it must give up."""
    has: JavaHashMap[Uuid, list[int]] = JavaHashMap()
    for topics in (member.assigned, member.pending_revocation):
        _add(has, topics)
    target: JavaHashMap[Uuid, list[int]] = JavaHashMap()
    for topic_id, partitions in (group.targets.get(member.member_id) or {}).items():
        target[topic_id] = list(partitions)
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(member.subscribed_topic_names),
        subscribed_topic_regex=member.subscribed_topic_regex,
        assignment=_assignment(has, image),
        target_assignment=_assignment(target, image),
        member_type=_CONSUMER if member.classic_metadata is None else _CLASSIC,
    )


def _add(has: JavaHashMap[Uuid, list[int]], topics: AssignedPartitions) -> None:
    for topic_id, partitions in topics.items():
        has.compute_if_absent(topic_id, []).extend(partitions)


def _assignment(topics: JavaHashMap[Uuid, list[int]], image: MetadataImage) -> Assignment:
    found = [
        (image.topic_by_id(topic_id), topic_id, partitions)
        for topic_id, partitions in topics.items()
    ]
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, topic_name=topic.name, partitions=partitions)
            for topic, topic_id, partitions in found
            if topic is not None
        ]
    )
