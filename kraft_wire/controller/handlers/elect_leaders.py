"""ElectLeaders, API key 43, versions 0-2.

Behaviour:   a preferred election makes the first replica the leader if it is in the ISR; an unclean
             election lets any active replica lead a leaderless partition, and may lose records;
             null means all partitions: the response omits those that need no election (KIP-183,
             KIP-460)
Versions:    v1 the kind of election, an error of the whole response · v2 flexible
Left out:    nothing
"""

from typing import Final

from kraft_wire.controller.controller import Controller, ControllerContext, ControllerResult
from kraft_wire.controller.partition_changes import Election, Elections, PartitionChange
from kraft_wire.controller.refusal import TOO_LARGE, Refusal, is_too_large
from kraft_wire.metadata.image import NO_LEADER, TopicImage
from kraft_wire.metadata.records import VersionedRecord
from kraft_wire.wire.generated.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.partition_change_record import PartitionChangeRecord

__all__ = ["handle", "refuse"]

_ELECTIONS: Final = {0: Election.PREFERRED, 1: Election.UNCLEAN}


class _Answer(ElectLeadersResponse):
    """An answer without its top-level error in version 0, which has no field for it."""

    __slots__ = ()

    def encode(self, version: int) -> bytes:
        """Return the answer's bytes; the results of partitions are the same in all versions."""
        error, self.error_code = self.error_code, self.error_code if version else ErrorCode.NONE
        try:
            return super().encode(version)
        finally:
            self.error_code = error


def handle(
    controller: Controller, context: ControllerContext, request: ElectLeadersRequest
) -> ControllerResult:
    """Elect leaders.

    Errors of the request: INVALID_REQUEST (election type), POLICY_VIOLATION (too many records).
    Errors per partition, first match wins: UNKNOWN_TOPIC_OR_PARTITION, ELECTION_NOT_NEEDED,
    PREFERRED_LEADER_NOT_AVAILABLE or ELIGIBLE_LEADERS_NOT_AVAILABLE.
    """
    assert request.MIN_VERSION <= context.api_version <= request.MAX_VERSION, context.api_version
    if request.topic_partitions is not None and not request.topic_partitions:
        return ControllerResult(_Answer())  # as 4.3.1: nothing is checked
    election = _ELECTIONS.get(request.election_type)
    if election is None:
        words = f"Unknown election type {request.election_type}"
        return ControllerResult(refuse(request, ErrorCode.INVALID_REQUEST, words))
    topics, records = controller.image.topics_by_name, list[VersionedRecord]()
    asked = request.topic_partitions
    if asked is None:
        wanted = [(topic.name, list(topic.partitions)) for topic in controller.image.topics()]
    else:
        wanted = [(each.topic, each.partitions) for each in asked]
    response = _Answer()
    for name, partitions in wanted:
        results = [
            _result(controller, topics.get(name), name, number, election, records)
            for number in partitions
        ]
        if asked is None:
            unneeded = ErrorCode.ELECTION_NOT_NEEDED
            results = [each for each in results if each.error_code != unneeded]
        if is_too_large(len(records)):
            return ControllerResult(refuse(request, ErrorCode.POLICY_VIOLATION, TOO_LARGE))
        result = ReplicaElectionResult(topic=name, partition_result=results)
        response.replica_election_results.append(result)
    assert len(response.replica_election_results) == len(wanted)
    return ControllerResult(response, records, is_atomic=False)


def refuse(
    request: ElectLeadersRequest, error: ErrorCode, message: str | None
) -> ElectLeadersResponse:
    """Return the answer that refuses the request; version 0 has errors of partitions only."""
    assert error is not ErrorCode.NONE
    return _Answer(
        error_code=error,
        replica_election_results=[
            ReplicaElectionResult(
                topic=each.topic,
                partition_result=[
                    PartitionResult(partition_id=number, error_code=error, error_message=message)
                    for number in each.partitions
                ],
            )
            for each in request.topic_partitions or ()
        ],
    )


def _result(
    controller: Controller,
    topic: TopicImage | None,
    name: str,
    number: int,
    election: Election,
    records: list[VersionedRecord],
) -> PartitionResult:
    """Elect the leader of one partition, and return its answer."""
    result = PartitionResult(partition_id=number, error_message=None)
    try:
        record = _elected(controller, topic, name, number, election)
        records.append(record)
    except Refusal as refusal:
        result.error_code, result.error_message = refusal.error, refusal.message
    assert len(records) > 0 or result.error_code != ErrorCode.NONE
    return result


def _elected(
    controller: Controller, topic: TopicImage | None, name: str, number: int, election: Election
) -> VersionedRecord:
    if topic is None:
        raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {name}")
    partition = topic.partitions.get(number)
    if partition is None:
        words = f"No such partition as {name}-{number}"
        raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, words)
    is_preferred = election is Election.PREFERRED
    is_led_by_first = partition.leader == partition.replicas[0]
    is_led = partition.leader != NO_LEADER
    if is_led_by_first or (is_led and not is_preferred):
        raise Refusal.of(ErrorCode.ELECTION_NOT_NEEDED)
    elections = Elections.of(controller.image, topic, controller.settings)
    record = PartitionChange(elections, partition, election=election).record()
    if record is None:
        if is_preferred:
            raise Refusal.of(ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE)
        raise Refusal.of(ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE)
    assert isinstance(record.record, PartitionChangeRecord), record
    return record
