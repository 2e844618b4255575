"""A share group as ShareGroupDescribe shows it."""

from kraft_wire.broker.groups.share.group import ShareGroup
from kraft_wire.broker.groups.share.member import ShareMember
from kraft_wire.metadata.image import MetadataImage
from kraft_wire.wire.generated.share_group_describe import (
    Assignment,
    DescribedGroup,
    Member,
    TopicPartitions,
)

__all__ = ["described_share_group"]

_ASSIGNOR = "simple"


def described_share_group(group: ShareGroup, image: MetadataImage) -> DescribedGroup:
    """Describe a group; topics that no longer exist are left out."""
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state_name,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=_ASSIGNOR,
        members=[_member(each, image) for each in group.members.values()],
    )


def _member(member: ShareMember, image: MetadataImage) -> Member:
    assigned = [
        (image.topic_by_id(topic_id), topic_id, partitions)
        for topic_id, partitions in member.assigned.items()
    ]
    return Member(
        member_id=member.member_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(member.subscribed_topic_names),
        assignment=Assignment(
            topic_partitions=[
                TopicPartitions(
                    topic_id=topic_id, topic_name=topic.name, partitions=list(partitions)
                )
                for topic, topic_id, partitions in assigned
                if topic is not None
            ]
        ),
    )
