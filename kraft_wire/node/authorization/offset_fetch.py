"""Guards OffsetFetch: group by group, then topic by topic; hides topics in a request for all."""

from typing import Final, TypeVar, cast

from kraft_wire.apis.rights import Need
from kraft_wire.broker.handlers.offset_fetch import failed_topic
from kraft_wire.node.authorization.asker import Asked, Passed, Verdict
from kraft_wire.node.authorization.splitting import by_id_or_name, finishing, split
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from kraft_wire.wire.message import Message

__all__ = ["offset_fetch"]

_TOP_LEVEL_ERROR_FROM: Final = 2
_SEVERAL_GROUPS_FROM: Final = 8
_TOPIC_IDS_FROM: Final = 10

TopicT = TypeVar("TopicT", OffsetFetchResponseTopic, OffsetFetchResponseTopics)


def offset_fetch(asked: Asked) -> Verdict:
    """Serve the groups that may be described, and their topics that may be described."""
    request = cast("OffsetFetchRequest", asked.request)
    if asked.context.api_version < _SEVERAL_GROUPS_FROM:
        return _one(asked, request)
    group_need, topic_need = asked.needs
    groups, refused = split(asked, group_need, request.groups, lambda group: group.group_id)
    hidden = {each.group_id: group_need.error for each in refused}
    order = [each.group_id for each in request.groups]
    all_topics = {each.group_id for each in groups if each.topics is None}
    extra: dict[str, list[OffsetFetchResponseTopics]] = {}
    name_of = by_id_or_name(asked, _TOPIC_IDS_FROM)
    for group in groups:
        if group.topics is not None:
            group.topics, unseen = split(asked, topic_need, group.topics, name_of)
            extra[group.group_id] = [failed_topic(each, topic_need.error) for each in unseen]
    request.groups = groups

    def change(answer: OffsetFetchResponse) -> Message:
        served = iter(answer.groups)
        answer.groups = [
            OffsetFetchResponseGroup(group_id=name, error_code=hidden[name])
            if name in hidden
            else next(served)
            for name in order
        ]
        for group in answer.groups:
            if group.error_code == ErrorCode.NONE:
                if group.group_id in all_topics:
                    group.topics = _visible(asked, topic_need, group.topics)
                group.topics += extra.get(group.group_id, [])
        return answer

    if not groups:
        return change(OffsetFetchResponse())
    return Passed(request, finishing(OffsetFetchResponse, change))


def _one(asked: Asked, request: OffsetFetchRequest) -> Verdict:
    """Answer for the one group of a request before version 8."""
    group_need, topic_need = asked.needs
    error = group_need.error
    if not asked.asker.meets(group_need, request.group_id):
        if asked.context.api_version >= _TOP_LEVEL_ERROR_FROM:
            return OffsetFetchResponse(error_code=error)
        return OffsetFetchResponse(
            topics=[_refused_before_v8(each, error) for each in request.topics or ()]
        )
    is_of_all = request.topics is None
    extra: list[OffsetFetchResponseTopic] = []
    if request.topics is not None:
        request.topics, unseen = split(asked, topic_need, request.topics, lambda each: each.name)
        extra = [_refused_before_v8(each, topic_need.error) for each in unseen]

    def change(answer: OffsetFetchResponse) -> Message:
        if answer.error_code == ErrorCode.NONE:
            if is_of_all:
                answer.topics = _visible(asked, topic_need, answer.topics)
            answer.topics += extra
        return answer

    return Passed(request, finishing(OffsetFetchResponse, change))


def _visible(asked: Asked, need: Need, topics: list[TopicT]) -> list[TopicT]:
    """Return the topics that may be described; the others are hidden silently."""
    return split(asked, need, topics, lambda each: each.name, is_silent=True)[0]


def _refused_before_v8(
    topic: OffsetFetchRequestTopic, error: ErrorCode
) -> OffsetFetchResponseTopic:
    return OffsetFetchResponseTopic(
        name=topic.name,
        partitions=[
            OffsetFetchResponsePartition(
                partition_index=index, committed_offset=-1, metadata="", error_code=error
            )
            for index in topic.partition_indexes
        ],
    )
