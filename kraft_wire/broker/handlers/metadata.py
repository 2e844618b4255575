"""Metadata, API key 3, versions 0-13.

Behaviour:   an empty list in v0, null from v1 on, means every topic · an unknown topic is created
             if both request and broker allow it, and is unknown until it exists · an invalid name
             is INVALID_TOPIC_EXCEPTION · brokers are shown with the address of the request's
             listener
Versions:    v4 AllowAutoTopicCreation (below: allowed) · v8 to v10 cluster operations (KIP-430) ·
             v10 topic ids · v12 requests by id (KIP-516) · v13 top-level error
Left out:    nothing
"""

from collections.abc import Hashable
from typing import Final

from kraft_wire.broker.broker import Broker
from kraft_wire.broker.context import RequestContext
from kraft_wire.broker.metadata.metadata_cache import (
    CLUSTER_OPERATIONS,
    NO_OPERATIONS,
    TOPIC_OPERATIONS,
    alive_brokers,
    endpoint_of,
    is_internal,
    offline_replicas,
)
from kraft_wire.metadata.image import PartitionImage, TopicImage
from kraft_wire.model import ZERO_UUID, Uuid
from kraft_wire.settings.topic_names import topic_name_problem
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kraft_wire.wire.message import Message
from kraft_wire.wire.runtime import new

__all__ = ["handle"]

_NO_LEADER: Final = -1
_NO_ERROR: Final = ErrorCode.NONE  # looking an enum's member up costs what three calls cost
_FIRST_NULL_MEANS_ALL: Final = 1
_FIRST_LISTENER_NOT_FOUND: Final = 6
_FIRST_BY_ID: Final = 12
_FIRST_TOP_LEVEL_ERROR: Final = 13


def handle(broker: Broker, context: RequestContext, request: MetadataRequest) -> Message:
    """Describe brokers and topics; clients ask the same repeatedly.

    Errors per topic: UNKNOWN_TOPIC_ID, INVALID_TOPIC_EXCEPTION, UNKNOWN_TOPIC_OR_PARTITION; per
    partition: LEADER_NOT_AVAILABLE, LISTENER_NOT_FOUND, REPLICA_NOT_AVAILABLE (v0). INVALID_REQUEST
    for the whole request when it names topics by id before v12. Effects: may have topics created.
    """
    wanted = request.topics
    asked = _identity(context, request)
    found = broker.described_topics.find(broker.image, asked)
    if found is not None:
        return found
    if wanted is not None and context.api_version < _FIRST_BY_ID and _uses_ids(wanted):
        return _refused(request, context, ErrorCode.INVALID_REQUEST)
    if wanted is not None and _names_nothing(wanted):
        return _refused(request, context, ErrorCode.UNKNOWN_SERVER_ERROR)
    if wanted is None or (not wanted and context.api_version < _FIRST_NULL_MEANS_ALL):
        topics = [_existing(broker, context, request, topic) for topic in broker.image.topics()]
    else:
        topics = _named(broker, context, request, wanted)
    response = _response(broker, context, request, topics)
    if _depends_on_image_alone(topics, wanted):
        return broker.described_topics.keep(asked, response, context.api_version)
    return response


def _identity(context: RequestContext, request: MetadataRequest) -> Hashable:
    """Return all of a request that its answer depends on."""
    topics = request.topics
    return (
        context.api_version,
        context.listener,
        request.include_cluster_authorized_operations,
        request.include_topic_authorized_operations,
        None if topics is None else tuple([(topic.name, topic.topic_id) for topic in topics]),
    )


def _depends_on_image_alone(
    topics: list[MetadataResponseTopic], wanted: list[MetadataRequestTopic] | None
) -> bool:
    """Whether no topic is missing (it may be created), and none is named twice.

    So the kept state of a request is not larger than its answer.
    """
    is_each_once = not wanted or len(wanted) == len(topics)
    return is_each_once and all(topic.error_code == _NO_ERROR for topic in topics)


def _response(
    broker: Broker,
    context: RequestContext,
    request: MetadataRequest,
    topics: list[MetadataResponseTopic],
) -> MetadataResponse:
    brokers = alive_brokers(broker.image, context.listener)
    response = MetadataResponse(
        brokers=[
            MetadataResponseBroker(
                node_id=each.broker_id, host=each.host, port=each.port, rack=each.rack
            )
            for each in brokers
        ],
        cluster_id=broker.cluster_id,
        controller_id=brokers[0].broker_id if brokers else _NO_LEADER,
        topics=topics,
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = CLUSTER_OPERATIONS
    return response


def _uses_ids(topics: list[MetadataRequestTopic]) -> bool:
    return any(topic.name is None or topic.topic_id != ZERO_UUID for topic in topics)


def _names_nothing(topics: list[MetadataRequestTopic]) -> bool:
    """Whether a topic has neither name nor id, where names count: Kafka fails in itself then."""
    by_name = all(topic.topic_id == ZERO_UUID for topic in topics)
    return by_name and any(topic.name is None for topic in topics)


def _refused(
    request: MetadataRequest, context: RequestContext, error: ErrorCode
) -> MetadataResponse:
    assert request.topics is not None
    response = MetadataResponse(
        topics=[
            MetadataResponseTopic(error_code=error, name=topic.name or "", topic_id=topic.topic_id)
            for topic in request.topics
        ]
    )
    if context.api_version >= _FIRST_TOP_LEVEL_ERROR:
        response.error_code = error
    return response


def _named(
    broker: Broker,
    context: RequestContext,
    request: MetadataRequest,
    wanted: list[MetadataRequestTopic],
) -> list[MetadataResponseTopic]:
    """Describe the topics that a request names, each once, having the missing ones created.

    As in Kafka, a request with any id is one by ids: names in it count for nothing. Unknown ids
    come first, missing names last.
    """
    image = broker.image
    ids = dict.fromkeys(topic.topic_id for topic in wanted if topic.topic_id != ZERO_UUID)
    names = {} if ids else dict.fromkeys(each.name for each in wanted if each.name is not None)
    missing = [name for name in names if image.topic(name) is None]
    errors: dict[str, int] = {}
    if missing:
        errors = _errors_of_missing(broker, context, request, missing)
    answered = [
        _by_id(broker, context, request, topic_id)
        for topic_id in sorted(ids, key=lambda each: image.topic_by_id(each) is not None)
    ]
    for name in sorted(names, key=lambda each: image.topic(each) is None):
        topic = broker.image.topic(name)
        if topic is not None:
            answered.append(_existing(broker, context, request, topic))
        else:
            answered.append(
                MetadataResponseTopic(
                    error_code=errors.get(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
                    name=name,
                    is_internal=is_internal(name),
                    topic_authorized_operations=_operations(request),
                )
            )
    return answered


def _errors_of_missing(
    broker: Broker, context: RequestContext, request: MetadataRequest, missing: list[str]
) -> dict[str, int]:
    """Have missing topics created if that is allowed; return the errors of the others."""
    errors: dict[str, int] = {
        name: ErrorCode.INVALID_TOPIC_EXCEPTION
        for name in missing
        if topic_name_problem(name) is not None
    }
    if request.allow_auto_topic_creation and broker.settings.auto_create_topics_enable:
        valid = [name for name in missing if name not in errors]
        refused = broker.topic_creation.request(valid, broker.settings, context.now_ms)
        broker.controller.ask_now(context.now_ms, context.wall_ms)
        errors.update(refused)
    return errors


def _by_id(
    broker: Broker, context: RequestContext, request: MetadataRequest, topic_id: Uuid
) -> MetadataResponseTopic:
    topic = broker.image.topic_by_id(topic_id)
    if topic is not None:
        return _existing(broker, context, request, topic)
    return MetadataResponseTopic(
        error_code=ErrorCode.UNKNOWN_TOPIC_ID,
        name=None,
        topic_id=topic_id,
        topic_authorized_operations=NO_OPERATIONS,
    )


# Of a large cluster thousands are made, so without their constructors: by keywords they take three
# times as long.


def _existing(
    broker: Broker, context: RequestContext, request: MetadataRequest, topic: TopicImage
) -> MetadataResponseTopic:
    answer = new(MetadataResponseTopic)
    answer.error_code = _NO_ERROR
    answer.name, answer.topic_id = topic.name, topic.topic_id
    answer.is_internal = is_internal(topic.name)
    answer.partitions = [_partition(broker, context, each) for each in topic.partitions.values()]
    answer.topic_authorized_operations = _operations(request)
    answer.unknown_tagged_fields = None
    return answer


def _operations(request: MetadataRequest) -> int:
    """The allowed operations on any topic, if requested."""
    return TOPIC_OPERATIONS if request.include_topic_authorized_operations else NO_OPERATIONS


def _partition(
    broker: Broker, context: RequestContext, view: PartitionImage
) -> MetadataResponsePartition:
    error = _NO_ERROR
    leader = broker.image.brokers.get(view.leader)
    if leader is None or leader.fenced:
        error = ErrorCode.LEADER_NOT_AVAILABLE
    elif endpoint_of(leader, context.listener) is None:
        error = ErrorCode.LEADER_NOT_AVAILABLE
        if context.api_version >= _FIRST_LISTENER_NOT_FOUND:
            error = ErrorCode.LISTENER_NOT_FOUND
    answer = new(MetadataResponsePartition)
    answer.error_code, answer.partition_index = error, view.partition
    answer.leader_id = view.leader if error is _NO_ERROR else _NO_LEADER
    answer.leader_epoch = view.leader_epoch
    answer.replica_nodes, answer.isr_nodes = list(view.replicas), list(view.isr)
    answer.offline_replicas = offline_replicas(broker.image, view, context.listener)
    answer.unknown_tagged_fields = None
    if context.api_version == 0:
        _leave_out_unreachable(answer, broker, context.listener)
    return answer


def _leave_out_unreachable(
    answer: MetadataResponsePartition, broker: Broker, listener: str
) -> None:
    """Name only replicas that a client can reach; if others are missing, that is an error.

    Kafka's `KRaftMetadataCache.partitionMetadata` with `errorUnavailableEndpoints`.
    """
    reachable = {each.broker_id: None for each in alive_brokers(broker.image, listener)}
    for nodes in (answer.replica_nodes, answer.isr_nodes):
        found = [each for each in nodes if each in reachable]
        if len(found) < len(nodes) and answer.error_code == _NO_ERROR:
            answer.error_code = ErrorCode.REPLICA_NOT_AVAILABLE
        nodes[:] = found
