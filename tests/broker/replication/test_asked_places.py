"""Where the logs of a leader begin and end: what a follower asks about several partitions."""

from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.fetch import FetchableTopicResponse, FetchResponse
from kraft_wire.wire.generated.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from tests.broker.replication.followers import (
    REPLICA,
    WALL_MS,
    Follower,
    asked_names,
    data,
    id_of,
)


def test_places_of_several_partitions_are_asked_for_at_once() -> None:
    """First the ends, then the starts of those whose end did not help."""
    follower = Follower()
    names = [("a", 0), ("b", 0), ("a", 1)]
    for name in names:
        follower.make(name)
    follower.follow(*names, epoch=7)
    follower.request()
    error = ErrorCode.OFFSET_OUT_OF_RANGE
    responses = [
        FetchableTopicResponse(
            topic_id=id_of(topic), partitions=[data(partition=index, error=error)]
        )
        for topic, index in names
    ]
    follower.answer_with(FetchResponse(session_id=9, responses=responses))
    for timestamp in (-1, -2):
        request = follower.offsets_request()
        assert request.replica_id == REPLICA
        asked = {topic.name: topic.partitions for topic in request.topics}
        assert list(asked) == ["a", "b"]
        wanted = [(name, each) for name, parts in asked.items() for each in parts]
        assert [(name, each.partition_index) for name, each in wanted] == sorted(names)
        assert {(each.current_leader_epoch, each.timestamp) for _, each in wanted} == {
            (7, timestamp)
        }
        follower.fetcher.answered(places(request, offset=9), follower.now_ms, WALL_MS)
    assert sorted(asked_names(follower.request())) == sorted(names)
    assert [log.log_end_offset for log in follower.logs.values()] == [9, 9, 9]


def places(request: ListOffsetsRequest, offset: int) -> ListOffsetsResponse:
    """An answer with one offset for everything."""
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    ListOffsetsPartitionResponse(
                        partition_index=each.partition_index, offset=offset
                    )
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
