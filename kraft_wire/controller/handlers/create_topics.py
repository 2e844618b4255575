"""CreateTopics, API key 19, versions 2-7.

Behaviour:   each topic is created or refused on its own, all records in one batch; -1 partitions or
             replicas mean `num.partitions` and `default.replication.factor`; the response has the
             topic's id, counts and every topic setting with its source; `validate_only` checks
Versions:    v4 defaults for -1 (KIP-464) · v5 configuration in the response (KIP-525), flexible ·
             v7 topic id (KIP-516)
             v6 refused beyond the quota on topic changes, older ones only throttled (KIP-599)
Left out:    policies (KIP-108), see docs/DEVIATIONS.md
"""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from kraft_wire.controller.config_rules import check_no_nulls, check_topic_name, check_topic_values
from kraft_wire.controller.controller import Controller, ControllerContext, ControllerResult
from kraft_wire.controller.created_topic_configs import topic_configs
from kraft_wire.controller.elr_settings import clear_elr_records
from kraft_wire.controller.java_map import java_map_order
from kraft_wire.controller.placement import new_partition, nobody_leads, place, read_chosen
from kraft_wire.controller.refusal import TOO_LARGE, Refusal, is_too_large
from kraft_wire.controller.topic_change_quota import TopicChanges, topic_changes
from kraft_wire.metadata.image import TOPIC_RESOURCE
from kraft_wire.metadata.records import VersionedRecord
from kraft_wire.model import Uuid, random_uuid
from kraft_wire.settings.topic_names import METADATA_TOPIC, collision_form
from kraft_wire.wire.generated.config_record import ConfigRecord
from kraft_wire.wire.generated.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.topic_record import TopicRecord

__all__ = ["handle", "refuse"]

_BY_DEFAULT: Final = -1
_STRICT_FROM: Final = 6
_TOO_MANY: Final = "Excessively large number of partitions per request."


def handle(
    controller: Controller, context: ControllerContext, request: CreateTopicsRequest
) -> ControllerResult:
    """Create topics.

    Errors of the request: POLICY_VIOLATION (too many partitions or records). Errors per topic,
    first match wins: INVALID_REQUEST (named twice, the metadata topic), TOPIC_ALREADY_EXISTS,
    INVALID_TOPIC_EXCEPTION (collision, name), INVALID_CONFIG, INVALID_REQUEST (assignment beside
    counts), INVALID_REPLICA_ASSIGNMENT, INVALID_REPLICATION_FACTOR, INVALID_PARTITIONS.
    Last of all a topic may be refused by the quota: THROTTLING_QUOTA_EXCEEDED.
    """
    assert request.MIN_VERSION <= context.api_version <= request.MAX_VERSION, context.api_version
    named = Counter(topic.name for topic in request.topics)
    asked = [topic for topic in request.topics if named[topic.name] == 1]
    if is_too_large(_partitions_count(controller, asked)):
        return ControllerResult(refuse(request, ErrorCode.POLICY_VIOLATION, _TOO_MANY))
    taken = {
        collision_form(name): name
        for name in controller.image.topics_by_name
        if "." in name or "_" in name
    }
    changes = topic_changes(controller, context, strict_from=_STRICT_FROM)
    records: list[VersionedRecord] = []
    results: dict[str, CreatableTopicResult] = {}
    for topic in request.topics:
        try:
            _check_name(controller, topic.name, named[topic.name], taken)
            created, result = _create(controller, topic, changes)
            records += created
            results[topic.name] = result
        except Refusal as refusal:
            results[topic.name] = _refused(topic.name, refusal)
    response = CreateTopicsResponse(
        throttle_time_ms=changes.throttle_ms, topics=list(results.values())
    )
    assert len(results) == len(named)
    if is_too_large(len(records)):
        return ControllerResult(refuse(request, ErrorCode.POLICY_VIOLATION, TOO_LARGE))
    return ControllerResult(response, () if request.validate_only else records)


def refuse(
    request: CreateTopicsRequest, error: ErrorCode, message: str | None
) -> CreateTopicsResponse:
    """Return the answer that refuses the request as a whole."""
    assert error is not ErrorCode.NONE
    refusal = Refusal(error, message)
    return CreateTopicsResponse(topics=[_refused(topic.name, refusal) for topic in request.topics])


def _check_name(controller: Controller, name: str, count: int, taken: dict[str, str]) -> None:
    assert count > 0, name
    if count > 1:
        raise Refusal(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
    if name == METADATA_TOPIC:
        words = f"Creation of internal topic {METADATA_TOPIC} is prohibited."
        raise Refusal(ErrorCode.INVALID_REQUEST, words)
    if name in controller.image.topics_by_name:
        raise Refusal(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    colliding = taken.get(collision_form(name))
    if colliding is not None:  # before the name itself is judged: `.` collides with `_`
        words = f"Topic '{name}' collides with existing topic: {colliding}"
        raise Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, words)
    check_topic_name(name)


def _partitions_count(controller: Controller, topics: Sequence[CreatableTopic]) -> int:
    """Return the requested number of partitions, without other checks of the topic."""
    by_default = controller.settings.integer("num.partitions")
    assert by_default > 0, by_default
    return sum(
        len(topic.assignments)
        or (by_default if topic.num_partitions == _BY_DEFAULT else max(0, topic.num_partitions))
        for topic in topics
        if topic.name != METADATA_TOPIC
    )


def _create(
    controller: Controller, topic: CreatableTopic, changes: TopicChanges
) -> tuple[list[VersionedRecord], CreatableTopicResult]:
    """Return the records of a new topic, and its answer."""
    check_no_nulls([config.name for config in topic.configs if config.value is None])
    values = {config.name: config.value for config in topic.configs}
    check_topic_values(values, controller.settings)
    own = {name: value for name, value in values.items() if value is not None}
    assert len(own) == len(values)
    replicas = _replicas(controller, topic)
    topic_id = random_uuid(controller.random_source)
    partitions = _partition_records(controller, topic_id, replicas)
    changes.take(len(partitions))
    configs = [
        VersionedRecord(
            ConfigRecord(
                resource_type=TOPIC_RESOURCE, resource_name=topic.name, name=name, value=value
            )
        )
        for name, value in ((name, own[name]) for name in java_map_order(own))
    ]
    assert len(partitions) == len(replicas) > 0
    head = VersionedRecord(TopicRecord(name=topic.name, topic_id=topic_id))
    result = CreatableTopicResult(
        name=topic.name,
        topic_id=topic_id,
        error_message=None,
        num_partitions=len(replicas),
        replication_factor=len(replicas[0]),
        configs=topic_configs(own, controller.settings),
    )
    forgotten = clear_elr_records(controller.image, configs)
    return [head, *configs, *forgotten, *partitions], result


def _replicas(controller: Controller, topic: CreatableTopic) -> list[list[int]]:
    """Return the replicas of each partition, chosen by the client or by the controller."""
    if topic.assignments:
        return _assigned(controller, topic)
    settings = controller.settings
    replicas, partitions = topic.replication_factor, topic.num_partitions
    if replicas < _BY_DEFAULT or replicas == 0:
        words = "Replication factor must be larger than 0, or -1 to use the default value."
        raise Refusal(ErrorCode.INVALID_REPLICATION_FACTOR, words)
    if partitions < _BY_DEFAULT or partitions == 0:
        words = "Number of partitions was set to an invalid non-positive value."
        raise Refusal(ErrorCode.INVALID_PARTITIONS, words)
    if partitions == _BY_DEFAULT:
        partitions = settings.integer("num.partitions")
    if replicas == _BY_DEFAULT:
        replicas = settings.integer("default.replication.factor")
    assert partitions > 0, partitions
    assert replicas > 0, replicas
    try:
        return place(controller.image.brokers, partitions, replicas, controller.random_source)
    except Refusal as refusal:
        words = f"Unable to replicate the partition {replicas} time(s): {refusal.message}"
        raise Refusal(refusal.error, words) from refusal


def _assigned(controller: Controller, topic: CreatableTopic) -> list[list[int]]:
    """Check a client's assignment, and return it in partition order."""
    assert topic.assignments, topic.name
    prefix = "A manual partition assignment was specified, but"
    if topic.replication_factor != _BY_DEFAULT:
        words = f"{prefix} replication factor was not set to -1."
        raise Refusal(ErrorCode.INVALID_REQUEST, words)
    if topic.num_partitions != _BY_DEFAULT:
        words = f"{prefix} numPartitions was not set to -1."
        raise Refusal(ErrorCode.INVALID_REQUEST, words)
    chosen: dict[int, list[int]] = {}
    for assignment in topic.assignments:
        chosen[assignment.partition_index] = _one_assigned(controller, assignment, chosen)
    if sorted(chosen) != list(range(len(chosen))):
        words = "partitions should be a consecutive 0-based integer sequence"
        raise Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, words)
    return [chosen[number] for number in range(len(chosen))]


def _one_assigned(
    controller: Controller, assignment: CreatableReplicaAssignment, chosen: dict[int, list[int]]
) -> list[int]:
    number = assignment.partition_index
    if number in chosen:
        words = f"Found multiple manual partition assignments for partition {number}"
        raise Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, words)
    replicas_count = len(next(iter(chosen.values()))) if chosen else None
    assert replicas_count is None or replicas_count > 0, replicas_count
    return read_chosen(controller.image.brokers, number, assignment.broker_ids, replicas_count)


def _partition_records(
    controller: Controller, topic_id: Uuid, replicas: Sequence[Sequence[int]]
) -> list[VersionedRecord]:
    records = []
    for number, brokers in enumerate(replicas):
        record = new_partition(controller.image, topic_id, number, brokers)
        if record is None:
            raise nobody_leads(len(brokers))
        records.append(record)
    assert len(records) == len(replicas)
    return records


def _refused(name: str, refusal: Refusal) -> CreatableTopicResult:
    return CreatableTopicResult(
        name=name, error_code=refusal.error, error_message=refusal.message, configs=[]
    )
