"""Kinds of groups that are switched off: their requests are refused whatever the asker may do.

4.3.1's `KafkaApis` looks at `isConsumerGroupProtocolEnabled`, `isShareGroupProtocolEnabled` and
`isStreamsGroupProtocolEnabled` before any right.
"""

from typing import Any

import pytest

from kraft_wire.wire.generated.alter_share_group_offsets import AlterShareGroupOffsetsRequest
from kraft_wire.wire.generated.consumer_group_describe import ConsumerGroupDescribeRequest
from kraft_wire.wire.generated.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kraft_wire.wire.generated.delete_share_group_offsets import DeleteShareGroupOffsetsRequest
from kraft_wire.wire.generated.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.share_acknowledge import ShareAcknowledgeRequest
from kraft_wire.wire.generated.share_fetch import ShareFetchRequest
from kraft_wire.wire.generated.share_group_describe import ShareGroupDescribeRequest
from kraft_wire.wire.generated.share_group_heartbeat import ShareGroupHeartbeatRequest
from kraft_wire.wire.generated.streams_group_describe import StreamsGroupDescribeRequest
from kraft_wire.wire.generated.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from kraft_wire.wire.generated.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from kraft_wire.wire.message import Message
from tests.node.authorization.guarded_node import ADMINISTRATOR, GuardedDoor, guarded_node

REQUESTS: list[Message] = [
    AlterShareGroupOffsetsRequest(group_id="g"),
    ConsumerGroupDescribeRequest(group_ids=["g"]),
    ConsumerGroupHeartbeatRequest(group_id="g"),
    DeleteShareGroupOffsetsRequest(group_id="g"),
    DescribeShareGroupOffsetsRequest(groups=[DescribeShareGroupOffsetsRequestGroup(group_id="g")]),
    ShareAcknowledgeRequest(group_id="g"),
    ShareFetchRequest(group_id="g"),
    ShareGroupDescribeRequest(group_ids=["g"]),
    ShareGroupHeartbeatRequest(group_id="g"),
    StreamsGroupDescribeRequest(group_ids=["g"]),
    StreamsGroupHeartbeatRequest(group_id="g"),
]


@pytest.fixture(scope="module")
def node() -> GuardedDoor:
    node = guarded_node(group_coordinator_rebalance_protocols="classic")
    downgrade = FeatureUpdateKey(feature="share.version", max_version_level=0, upgrade_type=2)
    request = UpdateFeaturesRequest(feature_updates=[downgrade], timeout_ms=1_000)
    answer = node.ask(request, host=ADMINISTRATOR)
    assert answer.error_code == ErrorCode.NONE, answer
    return node


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda each: type(each).__name__)
def test_a_kind_that_is_switched_off_is_refused_before_any_right_is_asked_for(
    node: GuardedDoor, request_: Message
) -> None:
    assert error_of(node.ask(request_)) == ErrorCode.UNSUPPORTED_VERSION
    assert node.denied == []


def error_of(answer: Any) -> int:
    """Return the error of the whole, or of the one group."""
    (described,) = answer.groups if hasattr(answer, "groups") else [answer]
    return int(described.error_code)
