"""Calls as requests to other brokers, and their results out of the responses: APIs 83 to 87.

A request is of one kind and about one group, with one call for each share partition.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeAlias, TypeVar, cast

from kraft_wire.broker.share_persister import (
    DeliveryStateBatch,
    InitialShareState,
    PersisterResult,
    SharePartitionState,
    ShareStateWrite,
)
from kraft_wire.broker.share_state.calls import CallKind, StateCall
from kraft_wire.broker.share_state.state import UNKNOWN
from kraft_wire.model import LeaderEpoch, Offset, Uuid
from kraft_wire.wire.error_names import error_of
from kraft_wire.wire.generated import (
    delete_share_group_state,
    initialize_share_group_state,
    read_share_group_state,
    read_share_group_state_summary,
    write_share_group_state,
)
from kraft_wire.wire.generated.delete_share_group_state import DeleteShareGroupStateRequest
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.initialize_share_group_state import InitializeShareGroupStateRequest
from kraft_wire.wire.generated.read_share_group_state import (
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
)
from kraft_wire.wire.generated.read_share_group_state_summary import (
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
)
from kraft_wire.wire.generated.write_share_group_state import WriteShareGroupStateRequest
from kraft_wire.wire.message import Message

__all__ = ["request_of", "results_of"]

_Results: TypeAlias = Mapping[tuple[Uuid, int], PersisterResult]
_Part = TypeVar("_Part")


def request_of(kind: CallKind, group_id: str, calls: Sequence[StateCall]) -> Message:
    """Return the request of some calls of one kind and one group."""
    match kind:
        case CallKind.INITIALIZE:
            return _initialize(group_id, calls)
        case CallKind.READ:
            return _read(group_id, calls)
        case CallKind.WRITE:
            return _write(group_id, calls)
        case CallKind.DELETE:
            return _delete(group_id, calls)
        case CallKind.SUMMARY:
            return _summary(group_id, calls)


def _initialize(group_id: str, calls: Sequence[StateCall]) -> InitializeShareGroupStateRequest:
    parts = []
    for call in calls:
        state_epoch, start_offset = cast("InitialShareState", call.argument)
        part = initialize_share_group_state.PartitionData(
            partition=call.key.partition, state_epoch=state_epoch, start_offset=start_offset
        )
        parts.append((call.key.topic_id, part))
    topics = [
        initialize_share_group_state.InitializeStateData(topic_id=topic_id, partitions=partitions)
        for topic_id, partitions in _by_topic(parts).items()
    ]
    return InitializeShareGroupStateRequest(group_id=group_id, topics=topics)


def _read(group_id: str, calls: Sequence[StateCall]) -> ReadShareGroupStateRequest:
    parts = []
    for call in calls:
        leader_epoch = cast("LeaderEpoch", call.argument)
        part = read_share_group_state.PartitionData(
            partition=call.key.partition, leader_epoch=leader_epoch
        )
        parts.append((call.key.topic_id, part))
    topics = [
        read_share_group_state.ReadStateData(topic_id=topic_id, partitions=partitions)
        for topic_id, partitions in _by_topic(parts).items()
    ]
    return ReadShareGroupStateRequest(group_id=group_id, topics=topics)


def _write(group_id: str, calls: Sequence[StateCall]) -> WriteShareGroupStateRequest:
    parts = []
    for call in calls:
        write = cast("ShareStateWrite", call.argument)
        part = write_share_group_state.PartitionData(
            partition=call.key.partition,
            state_epoch=write.state_epoch,
            leader_epoch=write.leader_epoch,
            start_offset=write.start_offset,
            delivery_complete_count=write.delivery_complete_count,
            state_batches=[
                write_share_group_state.StateBatch(
                    first_offset=first, last_offset=last, delivery_state=state, delivery_count=count
                )
                for first, last, state, count in write.batches
            ],
        )
        parts.append((call.key.topic_id, part))
    topics = [
        write_share_group_state.WriteStateData(topic_id=topic_id, partitions=partitions)
        for topic_id, partitions in _by_topic(parts).items()
    ]
    return WriteShareGroupStateRequest(group_id=group_id, topics=topics)


def _delete(group_id: str, calls: Sequence[StateCall]) -> DeleteShareGroupStateRequest:
    parts = [
        (
            call.key.topic_id,
            delete_share_group_state.PartitionData(partition=call.key.partition),
        )
        for call in calls
    ]
    topics = [
        delete_share_group_state.DeleteStateData(topic_id=topic_id, partitions=partitions)
        for topic_id, partitions in _by_topic(parts).items()
    ]
    return DeleteShareGroupStateRequest(group_id=group_id, topics=topics)


def _summary(group_id: str, calls: Sequence[StateCall]) -> ReadShareGroupStateSummaryRequest:
    parts = []
    for call in calls:
        leader_epoch = cast("LeaderEpoch", call.argument)
        part = read_share_group_state_summary.PartitionData(
            partition=call.key.partition, leader_epoch=leader_epoch
        )
        parts.append((call.key.topic_id, part))
    topics = [
        read_share_group_state_summary.ReadStateSummaryData(
            topic_id=topic_id, partitions=partitions
        )
        for topic_id, partitions in _by_topic(parts).items()
    ]
    return ReadShareGroupStateSummaryRequest(group_id=group_id, topics=topics)


def _by_topic(parts: Sequence[tuple[Uuid, _Part]]) -> dict[Uuid, list[_Part]]:
    found: dict[Uuid, list[_Part]] = {}
    for topic_id, part in parts:
        found.setdefault(topic_id, []).append(part)
    return found


class _PartitionResult(Protocol):
    partition: int
    error_code: int
    error_message: str | None


class _TopicResult(Protocol):
    topic_id: Uuid

    @property
    def partitions(self) -> Sequence[_PartitionResult]: ...


class _Response(Protocol):
    @property
    def results(self) -> Sequence[_TopicResult]: ...


def results_of(response: Message) -> _Results:
    """Return the result of each partition that a response names."""
    if isinstance(response, ReadShareGroupStateResponse):
        return _read_results(response)
    if isinstance(response, ReadShareGroupStateSummaryResponse):
        return _summary_results(response)
    return {
        (topic.topic_id, each.partition): PersisterResult(
            error_of(each.error_code), each.error_message
        )
        for topic in cast("_Response", response).results
        for each in topic.partitions
    }


def _read_results(response: ReadShareGroupStateResponse) -> _Results:
    """Return the states; the leader epoch is the caller's."""
    return {
        (topic.topic_id, each.partition): PersisterResult(
            error_of(each.error_code),
            each.error_message,
            SharePartitionState(
                state_epoch=each.state_epoch,
                leader_epoch=LeaderEpoch(UNKNOWN),
                start_offset=Offset(each.start_offset),
                delivery_complete_count=UNKNOWN,
                batches=[
                    DeliveryStateBatch(
                        Offset(batch.first_offset),
                        Offset(batch.last_offset),
                        batch.delivery_state,
                        batch.delivery_count,
                    )
                    for batch in each.state_batches
                ],
            )
            if each.error_code == ErrorCode.NONE
            else None,
        )
        for topic in response.results
        for each in topic.partitions
    }


def _summary_results(response: ReadShareGroupStateSummaryResponse) -> _Results:
    return {
        (topic.topic_id, each.partition): PersisterResult(
            error_of(each.error_code),
            each.error_message,
            SharePartitionState(
                state_epoch=each.state_epoch,
                leader_epoch=LeaderEpoch(each.leader_epoch),
                start_offset=Offset(each.start_offset),
                delivery_complete_count=each.delivery_complete_count,
            )
            if each.error_code == ErrorCode.NONE
            else None,
        )
        for topic in response.results
        for each in topic.partitions
    }
