"""What is drawn can be sent, and what is not needed for a difference is taken away."""

from random import Random

import pytest

from kraft_wire.apis.registry import APIS
from kraft_wire.wire.generated.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kraft_wire.wire.message import Message
from tests.apache.schema_drawn.drawing import draw_request
from tests.apache.schema_drawn.shrinking import shrunk


@pytest.mark.parametrize("api_key", APIS)
def test_drawn_requests_of_every_version_can_be_encoded(api_key: int) -> None:
    random = Random(api_key)
    first, last = APIS[api_key].versions
    for version in range(first, last + 1):
        request = draw_request(random, api_key, version)
        decoded, _ = type(request).decode(request.encode(version), version, 0)
        assert decoded.encode(version) == request.encode(version)


def test_draws_of_one_seed_are_the_same() -> None:
    one, other = (
        [draw_request(random, 1, 12).encode(12) for _ in range(9)]
        for random in (Random(5), Random(5))
    )
    assert one == other
    assert len(set(one)) > 1


def test_a_request_shrinks_to_what_shows_the_difference() -> None:
    request = DeleteRecordsRequest(
        timeout_ms=9,
        topics=[
            DeleteRecordsTopic(
                name=name,
                partitions=[
                    DeleteRecordsPartition(partition_index=at, offset=7) for at in range(3)
                ],
            )
            for name in ("a", "b")
        ],
    )

    def names_partition_2_of_b(candidate: Message) -> bool:
        assert isinstance(candidate, DeleteRecordsRequest)
        return any(
            topic.name == "b" and any(each.partition_index == 2 for each in topic.partitions)
            for topic in candidate.topics
        )

    small = shrunk(request, names_partition_2_of_b)
    partitions = [DeleteRecordsPartition(partition_index=2)]
    topics = [DeleteRecordsTopic(name="b", partitions=partitions)]
    assert small == DeleteRecordsRequest(topics=topics)
