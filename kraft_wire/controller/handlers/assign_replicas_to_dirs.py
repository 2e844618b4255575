"""AssignReplicasToDirs, API key 73, version 0.

Behaviour:   a broker with several log directories reports the directory of each replica; a replica
             in a failed directory leaves the ISR (KIP-858)
Versions:    v0
Left out:    nothing
"""

from kraft_wire.controller.broker_changes import BrokerChanges
from kraft_wire.controller.controller import Controller, ControllerContext, ControllerResult
from kraft_wire.controller.partition_changes import Election, Elections, PartitionChange
from kraft_wire.metadata.features import DIRECTORIES_FROM
from kraft_wire.metadata.image import PartitionImage, TopicImage
from kraft_wire.metadata.records import VersionedRecord
from kraft_wire.model import Uuid
from kraft_wire.wire.generated.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    ResponseDirectoryData,
    ResponsePartitionData,
    ResponseTopicData,
    TopicData,
)
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["handle", "refuse"]


def handle(
    controller: Controller, context: ControllerContext, request: AssignReplicasToDirsRequest
) -> ControllerResult:
    """Record the directories of a broker's replicas.

    Errors of the request: UNSUPPORTED_VERSION (metadata.version), STALE_BROKER_EPOCH. Errors per
    partition: UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER (no replica).
    """
    assert context.api_version == 0, context.api_version
    image, broker_id = controller.image, request.broker_id
    if image.metadata_version < DIRECTORIES_FROM:
        return ControllerResult(refuse(request, ErrorCode.UNSUPPORTED_VERSION, None))
    broker = image.brokers.get(broker_id)
    if broker is None or broker.broker_epoch != request.broker_epoch:
        return ControllerResult(refuse(request, ErrorCode.STALE_BROKER_EPOCH, None))
    records: list[VersionedRecord] = []
    failed: dict[tuple[str, int], None] = {}
    response = AssignReplicasToDirsResponse()
    for directory in request.directories:
        answer = ResponseDirectoryData(id=directory.id)
        is_online = not broker.log_dirs or directory.id in broker.log_dirs
        for asked in directory.topics:
            topic = image.topic_by_id(asked.topic_id)
            moved = _moved(controller, topic, asked, broker_id, directory.id, records)
            answer.topics.append(ResponseTopicData(topic_id=asked.topic_id, partitions=moved))
            if topic is not None and not is_online:
                failed |= {
                    (topic.name, each.partition_index): None
                    for each in moved
                    if each.error_code == ErrorCode.NONE
                }
        response.directories.append(answer)
    assert len(response.directories) == len(request.directories)
    records += BrokerChanges(image, controller.settings, broker_id).leave(failed)
    return ControllerResult(response, records, is_atomic=False)


def refuse(
    request: AssignReplicasToDirsRequest, error: ErrorCode, message: str | None
) -> AssignReplicasToDirsResponse:
    """Return the answer that refuses the request as a whole."""
    assert error is not ErrorCode.NONE
    return AssignReplicasToDirsResponse(error_code=error)


def _moved(
    controller: Controller,
    topic: TopicImage | None,
    asked: TopicData,
    broker_id: int,
    directory: Uuid,
    records: list[VersionedRecord],
) -> list[ResponsePartitionData]:
    """Add the records of one topic's partitions, and return their answers."""
    answers = []
    for each in asked.partitions:
        partition = None if topic is None else topic.partitions.get(each.partition_index)
        error = _error(topic, partition, broker_id)
        if topic is not None and partition is not None and error is ErrorCode.NONE:
            elections = Elections.of(controller.image, topic, controller.settings)
            change = PartitionChange(elections, partition, election=Election.ONLINE)
            change.assign(broker_id, directory)
            record = change.record()
            records += [] if record is None else [record]
        answers.append(
            ResponsePartitionData(partition_index=each.partition_index, error_code=error)
        )
    assert len(answers) == len(asked.partitions)
    return answers


def _error(topic: TopicImage | None, partition: PartitionImage | None, broker_id: int) -> ErrorCode:
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert partition.partition in topic.partitions
    if broker_id not in partition.replicas:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return ErrorCode.NONE
