"""Guards of requests that create, delete or grow topics; the controller decides them.

Names that a request repeats are refused first, as in Kafka: the handler does so for every client.
"""

from collections import Counter
from typing import Final, cast

from kraft_wire.model import ZERO_UUID
from kraft_wire.node.authorization.asker import Asked, Passed, Verdict
from kraft_wire.node.authorization.splitting import finishing, split, with_refused
from kraft_wire.settings.topic_names import METADATA_TOPIC
from kraft_wire.wire.generated.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from kraft_wire.wire.generated.create_topics import (
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kraft_wire.wire.generated.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.message import Message

__all__ = ["create_partitions", "create_topics", "delete_topics"]

_REFUSED: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED
_NOT_CREATED: Final = "Authorization failed."
_IDS_FROM: Final = 6


def create_topics(asked: Asked) -> Verdict:
    """CreateTopics: on the cluster or topic by topic; settings have their own right."""
    request = cast("CreateTopicsRequest", asked.request)
    create, show = asked.needs
    counts = Counter(topic.name for topic in request.topics)

    def name_of(name: str) -> str | None:
        return None if counts[name] > 1 or name == METADATA_TOPIC else name

    served, hidden = split(asked, create, list(counts), name_of)
    refused = set(hidden)
    shown = asked.asker.allowed(show, served, is_silent=True)
    request.topics = [topic for topic in request.topics if topic.name not in refused]
    answers = [
        CreatableTopicResult(name=name, error_code=_REFUSED, error_message=_NOT_CREATED, configs=[])
        for name in hidden
    ]

    def change(answer: CreateTopicsResponse) -> Message:
        for each in answer.topics:
            if each.error_code == ErrorCode.NONE and not shown[each.name]:
                each.topic_config_error_code = _REFUSED
                each.num_partitions = each.replication_factor = -1
                each.configs = []
        answer.topics += answers
        return answer

    if not request.topics:
        return change(CreateTopicsResponse())
    return Passed(request, finishing(CreateTopicsResponse, change))


def create_partitions(asked: Asked) -> Verdict:
    """CreatePartitions: topic by topic."""
    request = cast("CreatePartitionsRequest", asked.request)
    (alter,) = asked.needs
    counts = Counter(topic.name for topic in request.topics)
    request.topics, hidden = split(
        asked,
        alter,
        request.topics,
        lambda topic: None if counts[topic.name] > 1 else topic.name,
    )
    answers = [
        CreatePartitionsTopicResult(name=topic.name, error_code=_REFUSED, error_message=None)
        for topic in hidden
    ]

    return with_refused(request, CreatePartitionsResponse, "results", answers, request.topics)


def delete_topics(asked: Asked) -> Verdict:
    """DeleteTopics: on the cluster or topic by topic; an error has the name if DESCRIBE allows it.

    Refusals that do not depend on the client come first: deletion that is disabled, topics that
    are named twice or without name and id, unknown ids.
    """
    request = cast("DeleteTopicsRequest", asked.request)
    if not asked.settings.boolean("delete.topic.enable"):
        return Passed(request)
    delete, describe = asked.needs
    has_cluster = asked.asker.has(delete.rights[0], is_silent=True)
    if has_cluster:
        return Passed(request)
    is_by_state = asked.context.api_version >= _IDS_FROM
    states = (
        request.topics
        if is_by_state
        else [DeleteTopicState(name=name) for name in request.topic_names]
    )
    counts = Counter((each.name, each.topic_id) for each in states)
    named = [
        (each, _name(asked, each) if counts[each.name, each.topic_id] == 1 else None)
        for each in states
    ]
    names = [name for _, name in named if name is not None]
    on_topic = delete._replace(rights=delete.rights[1:])
    described = asked.asker.allowed(describe, names)
    deletable = asked.asker.allowed(on_topic, names)
    served: list[DeleteTopicState] = []
    answers: list[DeletableTopicResult] = []
    for each, name in named:
        if name is None:
            served.append(each)
        elif each.name is None and not deletable[name]:
            answers.append(_refused(name if described[name] else None, each))
        elif each.name is not None and not described[name]:
            answers.append(_refused(each.name, each))
        elif deletable[name] or asked.image.topic(name) is None:
            served.append(each)
        else:
            answers.append(_refused(each.name, each))
    if is_by_state:
        request.topics = served
    else:
        request.topic_names = [each.name or "" for each in served]

    return with_refused(request, DeleteTopicsResponse, "responses", answers, served)


def _name(asked: Asked, state: DeleteTopicState) -> str | None:
    """Return the topic's name; None where the handler refuses the topic for every client."""
    if state.name is not None:
        return state.name if state.topic_id == ZERO_UUID else None
    topic = None if state.topic_id == ZERO_UUID else asked.image.topic_by_id(state.topic_id)
    return None if topic is None else topic.name


def _refused(name: str | None, state: DeleteTopicState) -> DeletableTopicResult:
    return DeletableTopicResult(
        name=name,
        topic_id=state.topic_id,
        error_code=_REFUSED,
        error_message=_REFUSED.message,
    )
