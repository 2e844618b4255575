"""CreatePartitions, API key 37, versions 0-3.

Behaviour:   increases a topic's partition count to the given one (KIP-195); new partitions have as
             many replicas as the first one; an assignment lists the replicas of the new partitions
             only; `validate_only` checks
Versions:    v2 flexible · v3 refused beyond the quota on topic changes, older ones only throttled
             (KIP-599)
Left out:    nothing
"""

from collections import Counter
from typing import Final

from kraft_wire.controller.controller import Controller, ControllerContext, ControllerResult
from kraft_wire.controller.placement import new_partition, nobody_leads, place, read_chosen
from kraft_wire.controller.refusal import Refusal, check_room
from kraft_wire.controller.topic_change_quota import TopicChanges, topic_changes
from kraft_wire.metadata.image import TopicImage
from kraft_wire.metadata.records import VersionedRecord
from kraft_wire.wire.generated.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["handle", "refuse"]

_STRICT_FROM: Final = 3


def handle(
    controller: Controller, context: ControllerContext, request: CreatePartitionsRequest
) -> ControllerResult:
    """Add partitions to topics.

    Errors per topic, first match wins: INVALID_REQUEST (named twice), UNKNOWN_TOPIC_OR_PARTITION,
    INVALID_PARTITIONS (not an increase), POLICY_VIOLATION (too many records),
    INVALID_REPLICA_ASSIGNMENT, INVALID_REPLICATION_FACTOR. The quota refuses a topic before its
    brokers are looked at: THROTTLING_QUOTA_EXCEEDED.
    """
    assert request.MIN_VERSION <= context.api_version <= request.MAX_VERSION, context.api_version
    named = Counter(topic.name for topic in request.topics)
    changes = topic_changes(controller, context, strict_from=_STRICT_FROM)
    records: list[VersionedRecord] = []
    results: dict[str, CreatePartitionsTopicResult] = {}
    for topic in request.topics:
        result = results[topic.name] = CreatePartitionsTopicResult(
            name=topic.name, error_message=None
        )
        try:
            if named[topic.name] > 1:
                raise Refusal(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            records += _grow(controller, topic, len(records), changes)
        except Refusal as refusal:
            result.error_code = refusal.error
            result.error_message = refusal.message
    response = CreatePartitionsResponse(
        throttle_time_ms=changes.throttle_ms, results=list(results.values())
    )
    assert len(results) == len(named)
    return ControllerResult(response, () if request.validate_only else records)


def refuse(
    request: CreatePartitionsRequest, error: ErrorCode, message: str | None
) -> CreatePartitionsResponse:
    """Return the answer that refuses the request as a whole."""
    assert error is not ErrorCode.NONE
    return CreatePartitionsResponse(
        results=[
            CreatePartitionsTopicResult(name=topic.name, error_code=error, error_message=message)
            for topic in request.topics
        ]
    )


def _grow(
    controller: Controller,
    asked: CreatePartitionsTopic,
    records_before: int,
    changes: TopicChanges,
) -> list[VersionedRecord]:
    """Return the records of a topic's additional partitions."""
    topic = controller.image.topic(asked.name)
    if topic is None:
        raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None)
    present = len(topic.partitions)
    additional = asked.count - present
    if additional == 0:
        words = f"Topic already has {present} partition(s)."
        raise Refusal(ErrorCode.INVALID_PARTITIONS, words)
    if additional < 0:
        words = (
            f"The topic {asked.name} currently has {present} partition(s); {asked.count} would "
            "not be an increase."
        )
        raise Refusal(ErrorCode.INVALID_PARTITIONS, words)
    check_room(records_before + additional, "partitions")
    assert additional > 0, additional
    _check_number(asked, additional)
    changes.take(additional)
    records = []
    for number, replicas in enumerate(_replicas(controller, topic, asked, additional), present):
        record = new_partition(controller.image, topic.topic_id, number, replicas)
        if record is None:
            raise nobody_leads(len(replicas))
        records.append(record)
    assert len(records) == additional
    return records


def _check_number(asked: CreatePartitionsTopic, additional: int) -> None:
    if asked.assignments is not None and len(asked.assignments) != additional:
        words = (
            f"Attempted to add {additional} additional partition(s), but only "
            f"{len(asked.assignments)} assignment(s) were specified."
        )
        raise Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, words)


def _replicas(
    controller: Controller, topic: TopicImage, asked: CreatePartitionsTopic, additional: int
) -> list[list[int]]:
    assert topic.partitions, topic.name
    replicas_count = len(topic.partitions[0].replicas)
    assert replicas_count > 0, topic.name
    brokers = controller.image.brokers
    if asked.assignments is None:
        return place(brokers, additional, replicas_count, controller.random_source)
    first = len(topic.partitions)
    return [
        read_chosen(brokers, number, each.broker_ids, replicas_count)
        for number, each in enumerate(asked.assignments, first)
    ]
