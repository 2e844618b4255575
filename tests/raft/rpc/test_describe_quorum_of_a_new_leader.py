"""DescribeQuorum to a leader that has committed nothing yet."""

from kraft_wire.wire.generated.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    PartitionData,
    TopicData,
)
from tests.raft.small import TOPIC, Small


def described(small: Small) -> DescribeQuorumResponse:
    topics = [TopicData(topic_name=TOPIC, partitions=[PartitionData(partition_index=0)])]
    response = small.reply(DescribeQuorumRequest(topics=topics))
    assert isinstance(response, DescribeQuorumResponse)
    return response


def test_high_watermark_that_is_not_known_is_minus_1() -> None:
    leading = Small((1, 5), (2, 3)).leader()
    (partition,) = described(leading).topics[0].partitions
    assert (partition.leader_id, partition.high_watermark) == (1, -1)
    established = Small((1, 5), (2, 3)).established()
    (partition,) = described(established).topics[0].partitions
    assert partition.high_watermark == established.disk.log.log_end_offset
