"""AlterPartition, API key 56, versions 2-3.

Behaviour:   a leader requests an ISR, and reports recovery from an unclean election (KIP-497,
             KIP-704); fenced and stopping brokers are not added to an ISR (KIP-841); an ISR that
             completes a reassignment ends it, and may elect another leader
Versions:    v2 topic ids (KIP-841) · v3 the epochs of the ISR's members (KIP-903)
Left out:    nothing
"""

from kraft_wire.controller.controller import Controller, ControllerContext, ControllerResult
from kraft_wire.controller.partition_changes import (
    RECOVERED,
    RECOVERING,
    Elections,
    PartitionChange,
)
from kraft_wire.metadata.image import MetadataImage, PartitionImage, TopicImage
from kraft_wire.metadata.records import VersionedRecord
from kraft_wire.metadata.replay_topics import UNCHANGED_LEADER, merge_partition
from kraft_wire.wire.generated.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerState,
    PartitionData,
    ResponsePartitionData,
    ResponseTopicData,
    TopicData,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.partition_change_record import PartitionChangeRecord

__all__ = ["handle", "refuse"]

_EPOCHS_FROM = 3
_ANY_EPOCH = -1


def handle(
    controller: Controller, context: ControllerContext, request: AlterPartitionRequest
) -> ControllerResult:
    """Change the ISR of partitions that a broker leads.

    Errors of the request: STALE_BROKER_EPOCH. Errors per partition, first match wins:
    UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION, NOT_CONTROLLER (an epoch of the future),
    FENCED_LEADER_EPOCH, INVALID_REQUEST (it does not lead), INVALID_UPDATE_VERSION (partition
    epoch), INVALID_REQUEST (no ISR, or recovery, that could be), INELIGIBLE_REPLICA,
    NEW_LEADER_ELECTED (done, and another broker leads now).
    """
    assert request.MIN_VERSION <= context.api_version <= request.MAX_VERSION, context.api_version
    if not request.topics:
        return ControllerResult(AlterPartitionResponse())  # as 4.3.1: nothing is checked
    broker = controller.image.brokers.get(request.broker_id)
    if broker is None or broker.broker_epoch != request.broker_epoch:
        return ControllerResult(refuse(request, ErrorCode.STALE_BROKER_EPOCH, None))
    if context.api_version < _EPOCHS_FROM:
        _add_epochs(request)
    records: list[VersionedRecord] = []
    topics = []
    for asked in request.topics:
        topic = controller.image.topic_by_id(asked.topic_id)
        answers = [
            _unknown(each, ErrorCode.UNKNOWN_TOPIC_ID)
            if topic is None
            else _altered(controller, request.broker_id, topic, each, records)
            for each in asked.partitions
        ]
        topics.append(ResponseTopicData(topic_id=asked.topic_id, partitions=answers))
    assert len(topics) == len(request.topics)
    return ControllerResult(AlterPartitionResponse(topics=topics), records, is_atomic=False)


def refuse(
    request: AlterPartitionRequest, error: ErrorCode, message: str | None
) -> AlterPartitionResponse:
    """Return the answer that refuses the request as a whole."""
    assert error is not ErrorCode.NONE
    return AlterPartitionResponse(error_code=error)


def _add_epochs(request: AlterPartitionRequest) -> None:
    """Convert an ISR of version 2, which has no epochs."""
    for topic in request.topics:
        assert isinstance(topic, TopicData), topic
        for each in topic.partitions:
            each.new_isr_with_epochs = [BrokerState(broker_id=member) for member in each.new_isr]


def _altered(
    controller: Controller,
    leader: int,
    topic: TopicImage,
    asked: PartitionData,
    records: list[VersionedRecord],
) -> ResponsePartitionData:
    """Add the record of a change, and return the partition's answer for the leader."""
    partition = topic.partitions.get(asked.partition_index)
    if partition is None:
        return _unknown(asked, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    error = _error(controller.image, leader, partition, asked)
    if error is not ErrorCode.NONE:
        return _unknown(asked, error)
    elections = Elections.of(controller.image, topic, controller.settings)
    change = PartitionChange(elections, partition)
    change.isr = tuple(each.broker_id for each in asked.new_isr_with_epochs)
    change.leader_recovery_state = asked.leader_recovery_state
    record = change.record()
    if record is not None:
        made = record.record
        assert isinstance(made, PartitionChangeRecord), made
        records.append(record)
        partition = merge_partition(partition, made)
        if made.leader not in (leader, UNCHANGED_LEADER):
            return _unknown(asked, ErrorCode.NEW_LEADER_ELECTED)
    assert partition.leader == leader, partition
    return ResponsePartitionData(
        partition_index=asked.partition_index,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        isr=list(partition.isr),
        leader_recovery_state=partition.leader_recovery_state,
        partition_epoch=partition.partition_epoch,
    )


def _error(
    image: MetadataImage, leader: int, partition: PartitionImage, asked: PartitionData
) -> ErrorCode:
    """Return the first error of a change, in Kafka's order."""
    if (
        asked.leader_epoch > partition.leader_epoch
        or asked.partition_epoch > partition.partition_epoch
    ):
        return ErrorCode.NOT_CONTROLLER  # a newer controller set them: this one is a zombie
    if asked.leader_epoch < partition.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if leader != partition.leader:
        return ErrorCode.INVALID_REQUEST
    if asked.partition_epoch < partition.partition_epoch:
        return ErrorCode.INVALID_UPDATE_VERSION
    assert asked.leader_epoch == partition.leader_epoch, asked
    if not _is_possible(partition, asked):
        return ErrorCode.INVALID_REQUEST
    members = asked.new_isr_with_epochs
    if not all(_is_eligible(image, member) for member in members):
        return ErrorCode.INELIGIBLE_REPLICA
    return ErrorCode.NONE


def _is_possible(partition: PartitionImage, asked: PartitionData) -> bool:
    """Return whether the partition may have such an ISR and recovery state."""
    members = [each.broker_id for each in asked.new_isr_with_epochs]
    if partition.leader not in members or len(set(members)) != len(members):
        return False
    if any(member not in partition.replicas for member in members):
        return False
    assert members, asked
    recovery = asked.leader_recovery_state
    if recovery == RECOVERING:
        return len(members) == 1 and partition.leader_recovery_state == RECOVERING
    return recovery == RECOVERED


def _is_eligible(image: MetadataImage, member: BrokerState) -> bool:
    """Return whether a broker may be in an ISR: same incarnation, unfenced, not stopping."""
    broker = image.brokers.get(member.broker_id)
    if broker is None or not broker.active:
        return False
    assert broker.broker_epoch >= 0, broker
    return member.broker_epoch in (_ANY_EPOCH, broker.broker_epoch)


def _unknown(asked: PartitionData, error: ErrorCode) -> ResponsePartitionData:
    assert error is not ErrorCode.NONE
    return ResponsePartitionData(partition_index=asked.partition_index, error_code=error)
