"""Guards of requests about the cluster: Metadata, DescribeTopicPartitions, DescribeCluster.

Topics that the client may not describe are hidden from a request for all topics, and refused in a
request that names them, whether or not they exist. A refusal by id never has the topic's name.
Unknown ids are refused first, as in Kafka.
"""

from functools import partial
from typing import Final, cast

from kraft_wire.apis.rights import ResourceType
from kraft_wire.broker.metadata.metadata_cache import is_internal
from kraft_wire.model import ZERO_UUID, Uuid
from kraft_wire.node.authorization.asker import NO_OPERATIONS, Asked, Passed, Verdict
from kraft_wire.node.authorization.splitting import finishing, split
from kraft_wire.node.authorization.whole import cluster
from kraft_wire.wire.generated.describe_cluster import DescribeClusterResponse
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from kraft_wire.wire.message import Message

__all__ = ["describe_cluster", "describe_cluster_of_controllers", "metadata"]

_REFUSED: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED
_FIRST_BY_ID: Final = 12


def metadata(asked: Asked) -> Verdict:
    """Metadata: hide or refuse topics, and create none without the right."""
    request = cast("MetadataRequest", asked.request)
    wanted, version = request.topics, asked.context.api_version
    if wanted is None or (not wanted and version == 0):
        return Passed(request, finishing(MetadataResponse, partial(_visible, asked)))
    if _is_invalid(wanted, version):
        return Passed(request)
    if any(topic.topic_id != ZERO_UUID for topic in wanted):
        request.topics, refused = _by_id(asked, wanted)
    else:
        request.topics, refused = _by_name(asked, request, wanted)
    if not request.topics and version == 0:
        request.topics = None  # an empty list means all there; none of them is shown
        return Passed(request, finishing(MetadataResponse, partial(_instead, refused)))
    return Passed(request, finishing(MetadataResponse, partial(_with, asked, refused)))


def _visible(asked: Asked, answer: MetadataResponse) -> Message:
    """Hide topics in a request for all topics."""
    describe = asked.needs[0]
    answer.topics, _ = split(asked, describe, answer.topics, lambda each: each.name, is_silent=True)
    return _with(asked, [], answer)


def _instead(refused: list[MetadataResponseTopic], answer: MetadataResponse) -> Message:
    answer.topics = refused
    return answer


def _with(asked: Asked, refused: list[MetadataResponseTopic], answer: MetadataResponse) -> Message:
    """Add refused topics, and the allowed operations if requested."""
    for each in answer.topics:
        if each.topic_authorized_operations != NO_OPERATIONS and each.name is not None:
            each.topic_authorized_operations = asked.asker.operations(ResourceType.TOPIC, each.name)
    answer.topics = answer.topics + refused
    if answer.cluster_authorized_operations != NO_OPERATIONS:
        answer.cluster_authorized_operations = _cluster_operations(asked)
    return answer


def _is_invalid(wanted: list[MetadataRequestTopic], version: int) -> bool:
    """Whether the handler refuses the whole request, for any topics."""
    has_id = any(topic.topic_id != ZERO_UUID for topic in wanted)
    has_no_name = any(topic.name is None for topic in wanted)
    return (version < _FIRST_BY_ID and (has_id or has_no_name)) or (has_no_name and not has_id)


def _by_id(
    asked: Asked, wanted: list[MetadataRequestTopic]
) -> tuple[list[MetadataRequestTopic], list[MetadataResponseTopic]]:
    """Refuse topics by id without their names; names beside ids are ignored."""
    ids: list[Uuid] = list(
        dict.fromkeys(each.topic_id for each in wanted if each.topic_id != ZERO_UUID)
    )

    def name_of(topic_id: Uuid) -> str | None:
        topic = asked.image.topic_by_id(topic_id)
        return None if topic is None else topic.name

    served, hidden = split(asked, asked.needs[0], ids, name_of)
    return (
        [MetadataRequestTopic(topic_id=each, name=None) for each in served],
        [MetadataResponseTopic(error_code=_REFUSED, name=None, topic_id=each) for each in hidden],
    )


def _by_name(
    asked: Asked, request: MetadataRequest, wanted: list[MetadataRequestTopic]
) -> tuple[list[MetadataRequestTopic], list[MetadataResponseTopic]]:
    """Refuse topics that may not be described, or that are missing and may not be created."""
    describe, create, _ = asked.needs
    names = list(dict.fromkeys(each.name for each in wanted if each.name is not None))
    served, hidden = split(asked, describe, names, lambda name: name)
    answers: list[MetadataResponseTopic] = []
    creates = request.allow_auto_topic_creation and asked.settings.boolean(
        "auto.create.topics.enable"
    )
    missing = [name for name in served if asked.image.topic(name) is None]
    if missing and creates:
        _, not_created = split(asked, create, missing, lambda name: name)
        refused = set(not_created)
        served = [name for name in served if name not in refused]
        answers = [
            MetadataResponseTopic(error_code=_REFUSED, name=name, is_internal=is_internal(name))
            for name in not_created
        ]
    answers += [MetadataResponseTopic(error_code=_REFUSED, name=name) for name in hidden]
    return [MetadataRequestTopic(name=name) for name in served], answers


def describe_cluster(asked: Asked) -> Verdict:
    """DescribeCluster: needs no right on brokers, except for the operations in the answer."""

    def change(answer: DescribeClusterResponse) -> Message:
        if answer.cluster_authorized_operations != NO_OPERATIONS:
            answer.cluster_authorized_operations = _cluster_operations(asked)
        return answer

    return Passed(asked.request, finishing(DescribeClusterResponse, change))


def describe_cluster_of_controllers(asked: Asked) -> Verdict:
    """DescribeCluster on a controller's listener: ALTER on the cluster."""
    verdict = cluster(asked)
    return describe_cluster(asked) if isinstance(verdict, Passed) else verdict


def _cluster_operations(asked: Asked) -> int:
    """Return the operations on the cluster; 0 for clients that may not describe it."""
    asker = asked.asker
    return asker.operations(ResourceType.CLUSTER) if asker.describes_cluster() else 0
