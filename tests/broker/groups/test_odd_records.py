"""Records of `__consumer_offsets` that no coordinator writes, but a client may have produced.

A client with the id of Kafka's own admin client may produce to internal topics.
"""

from __future__ import annotations

from typing import Any

import pytest

from kraft_wire.wire.generated.consumer_group_current_member_assignment_key import (
    ConsumerGroupCurrentMemberAssignmentKey,
)
from kraft_wire.wire.generated.consumer_group_current_member_assignment_value import (
    ConsumerGroupCurrentMemberAssignmentValue,
)
from kraft_wire.wire.generated.consumer_group_member_metadata_key import (
    ConsumerGroupMemberMetadataKey,
)
from kraft_wire.wire.generated.consumer_group_member_metadata_value import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupMemberMetadataValue,
)
from kraft_wire.wire.generated.consumer_group_metadata_key import ConsumerGroupMetadataKey
from kraft_wire.wire.generated.consumer_group_metadata_value import ConsumerGroupMetadataValue
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.group_metadata_key import GroupMetadataKey
from kraft_wire.wire.generated.group_metadata_value import GroupMetadataValue, MemberMetadata
from kraft_wire.wire.generated.share_group_member_metadata_key import ShareGroupMemberMetadataKey
from kraft_wire.wire.generated.share_group_member_metadata_value import (
    ShareGroupMemberMetadataValue,
)
from kraft_wire.wire.generated.share_group_metadata_key import ShareGroupMetadataKey
from kraft_wire.wire.generated.share_group_metadata_value import ShareGroupMetadataValue
from kraft_wire.wire.generated.streams_group_member_metadata_key import (
    StreamsGroupMemberMetadataKey,
)
from kraft_wire.wire.generated.streams_group_member_metadata_value import (
    StreamsGroupMemberMetadataValue,
)
from kraft_wire.wire.generated.streams_group_metadata_key import StreamsGroupMetadataKey
from kraft_wire.wire.generated.streams_group_metadata_value import StreamsGroupMetadataValue
from kraft_wire.wire.message import Message
from tests.broker.groups.harness import Harness
from tests.broker.groups.requests import Member, subscription
from tests.broker.groups.test_consumer_group_heartbeat import group_in, joining, send
from tests.broker.groups.test_replay import key_of, loaded, value_of

LARGEST = 2**31 - 1
SESSION_OVER_MS = 100_000


def record(key: Message, value: Message, version: int = 0) -> tuple[bytes, bytes]:
    return key_of(key.RECORD_TYPE, key), value_of(version, value)


def classic_group(**fields: Any) -> tuple[bytes, bytes]:
    value = GroupMetadataValue(protocol_type="consumer", current_state_timestamp=1, **fields)
    return record(GroupMetadataKey(group="group"), value, 3)


def test_an_empty_group_has_no_leader() -> None:
    harness = loaded(classic_group(generation=3, protocol=None, leader="gone"))
    member = Member(harness)
    member.join()
    harness.settle()
    assert member.joined().leader == member.member_id


def test_the_generation_after_the_largest_one_is_the_smallest() -> None:
    """As Java's `int`; the group is written again when its last member's session ends."""
    stored = MemberMetadata(
        member_id="member",
        client_id="client",
        client_host="/",
        rebalance_timeout=1_000,
        session_timeout=1_000,
        subscription=subscription("topic"),
        assignment=b"",
    )
    group = classic_group(generation=LARGEST, protocol="range", leader="member", members=[stored])
    harness = loaded(group)
    harness.advance(SESSION_OVER_MS)
    assert harness.group("group").generation_id == -LARGEST - 1
    assert harness.restart().group("group").generation_id == -LARGEST - 1


def consumer_member(member_id: str, **fields: Any) -> tuple[bytes, bytes]:
    key = ConsumerGroupMemberMetadataKey(group_id="group", member_id=member_id)
    value = ConsumerGroupMemberMetadataValue(
        client_id="client", client_host="/", rebalance_timeout_ms=1_000, **fields
    )
    return record(key, value)


CONSUMER = [
    record(ConsumerGroupMetadataKey(group_id="group"), ConsumerGroupMetadataValue(epoch=LARGEST)),
    consumer_member("member", subscribed_topic_names=["topic"]),
]
SHARE = [
    record(ShareGroupMetadataKey(group_id="group"), ShareGroupMetadataValue(epoch=LARGEST)),
    record(
        ShareGroupMemberMetadataKey(group_id="group", member_id="member"),
        ShareGroupMemberMetadataValue(client_id="client", client_host="/"),
    ),
]
STREAMS = [
    record(StreamsGroupMetadataKey(group_id="group"), StreamsGroupMetadataValue(epoch=LARGEST)),
    record(
        StreamsGroupMemberMetadataKey(group_id="group", member_id="member"),
        StreamsGroupMemberMetadataValue(
            client_id="client", client_host="/", process_id="process", rebalance_timeout_ms=1_000
        ),
    ),
]


@pytest.mark.parametrize("records", [CONSUMER, SHARE, STREAMS])
def test_the_epoch_after_the_largest_one_is_the_smallest(
    records: list[tuple[bytes, bytes]],
) -> None:
    harness = loaded(*records)
    harness.advance(SESSION_OVER_MS)
    shard = harness.groups.shard_of("group")
    assert not isinstance(shard, ErrorCode)
    assert shard.other_groups["group"].epoch == -LARGEST - 1


def test_a_heartbeat_raises_the_largest_epoch() -> None:
    harness = loaded(*CONSUMER)
    harness.create_topic("topic")
    assert send(harness, joining(member_id="other")).error == ErrorCode.NONE
    assert group_in(harness).epoch == -LARGEST - 1


def test_strings_that_cannot_be_written_again_are_left_alone() -> None:
    """An invalid byte of UTF-8 is read as three; the group could not be ended."""
    key = GroupMetadataKey(group="Q" * 20_000)
    value = GroupMetadataValue(protocol_type="", leader=None, current_state_timestamp=1)
    stored, written = record(key, value, 3)
    harness = loaded((stored.replace(b"Q", b"\xff"), written))
    assert harness.groups.runtime.ignored == {"malformed group": 1}
    harness.advance(1_000_000)


def classic_member(member_id: str, *protocols: str) -> list[tuple[bytes, bytes]]:
    """Return a consumer group's member that uses the classic protocol."""
    supported = [ClassicProtocol(name=name, metadata=subscription("topic")) for name in protocols]
    metadata = ClassicMemberMetadata(session_timeout_ms=200_000, supported_protocols=supported)
    key = ConsumerGroupCurrentMemberAssignmentKey(group_id="group", member_id=member_id)
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=1, previous_member_epoch=1, state=0
    )
    return [consumer_member(member_id, classic_member_metadata=metadata), record(key, value)]


def group_of(*records: tuple[bytes, bytes]) -> Harness:
    epoch = ConsumerGroupMetadataValue(epoch=1)
    return loaded(record(ConsumerGroupMetadataKey(group_id="group"), epoch), *records)


def test_a_classic_member_without_a_protocol_gets_no_assignment() -> None:
    harness = group_of(*classic_member("member"))
    member = Member(harness, member_id="member", generation_id=1)
    assert member.sync().error == ErrorCode.UNKNOWN_SERVER_ERROR


def test_members_without_a_common_protocol_become_no_classic_group() -> None:
    """As in 4.3.1 the last member of the consumer protocol stays."""
    harness = group_of(
        *classic_member("one", "range"),
        *classic_member("two", "sticky"),
        consumer_member("modern"),
    )
    for member_id in ("one", "two"):
        member = Member(harness, member_id=member_id, generation_id=1)
        assert member.heartbeat() == ErrorCode.NONE
    harness.advance(SESSION_OVER_MS)
    assert sorted(group_in(harness).members) == ["modern", "one", "two"]
