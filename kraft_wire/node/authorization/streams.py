"""Guards of requests about streams groups: the group, then all topics that a topology names."""

from collections.abc import Iterable
from typing import Final, cast

from kraft_wire.apis.rights import ResourceType
from kraft_wire.broker.groups.streams.topology.request_checks import (
    check_topic_names,
    named_topics,
)
from kraft_wire.node.authorization.asker import NO_OPERATIONS, Asked, Passed, Verdict
from kraft_wire.node.authorization.splitting import finishing, split
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.streams_group_describe import (
    DescribedGroup,
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)
from kraft_wire.wire.generated.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)
from kraft_wire.wire.message import Message

__all__ = ["streams_group_describe", "streams_group_heartbeat"]

_HIDDEN_TOPICS: Final = (
    "The described group uses topics that the client is not authorized to describe."
)


def streams_group_heartbeat(asked: Asked) -> Verdict:
    """StreamsGroupHeartbeat: the group, the topics' names, then the right to describe them all.

    The right to create internal topics is asked for when they are known to be missing.
    """
    request = cast("StreamsGroupHeartbeatRequest", asked.request)
    read, describe = asked.needs[:2]
    if not asked.asker.meets(read, request.group_id):
        return StreamsGroupHeartbeatResponse(error_code=read.error)
    if request.topology is None:
        return Passed(request)
    names = named_topics(request.topology)
    if check_topic_names(names) is not None:
        return Passed(request)  # its handler refuses it
    if not all(asked.asker.allowed(describe, names).values()):
        return StreamsGroupHeartbeatResponse(error_code=describe.error)
    return Passed(request)


def streams_group_describe(asked: Asked) -> Verdict:
    """StreamsGroupDescribe: group by group; one with a hidden topic shows nothing but that."""
    request = cast("StreamsGroupDescribeRequest", asked.request)
    describe, topic = asked.needs
    served, hidden = split(asked, describe, request.group_ids, lambda name: name)
    request.group_ids = served
    answers = [
        DescribedGroup(group_id=name, error_code=describe.error, topology=None) for name in hidden
    ]

    def change(answer: StreamsGroupDescribeResponse) -> Message:
        topics = {name for group in answer.groups for name in _topics_of(group)}
        may_describe = asked.asker.allowed(topic, topics)
        for group in answer.groups:
            if group.error_code == ErrorCode.NONE and group.authorized_operations != NO_OPERATIONS:
                operations = asked.asker.operations(ResourceType.GROUP, group.group_id)
                group.authorized_operations = operations
        answer.groups = answers + [
            group
            if all(may_describe[name] for name in _topics_of(group))
            else DescribedGroup(
                group_id=group.group_id,
                error_code=topic.error,
                error_message=_HIDDEN_TOPICS,
                topology=None,
            )
            for group in answer.groups
        ]
        return answer

    if not served and hidden:
        return change(StreamsGroupDescribeResponse())
    return Passed(request, finishing(StreamsGroupDescribeResponse, change))


def _topics_of(group: DescribedGroup) -> Iterable[str]:
    if group.topology is None:
        return
    for subtopology in group.topology.subtopologies or ():
        yield from subtopology.source_topics
        yield from subtopology.repartition_sink_topics
        for topic in (*subtopology.repartition_source_topics, *subtopology.state_changelog_topics):
            yield topic.name
