"""Requests of group members, short enough for tests to read as a story."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from kraft_wire.wire.generated.consumer_protocol_subscription import ConsumerProtocolSubscription
from kraft_wire.wire.generated.heartbeat import HeartbeatRequest
from kraft_wire.wire.generated.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kraft_wire.wire.generated.leave_group import LeaveGroupRequest, MemberIdentity
from kraft_wire.wire.generated.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kraft_wire.wire.generated.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kraft_wire.wire.generated.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from kraft_wire.wire.message import Message

AWAITED_SECONDS_MAX = 60


class Door(Protocol):
    """Where requests go: a coordinator in this process, or a socket."""

    def send(
        self, request: Message, version: int, *, client_id: str | None = ..., connection: int = ...
    ) -> Any: ...


def moments() -> Iterator[None]:
    """Times to look whether a state is reached, until it has taken too long."""
    deadline = time.monotonic() + AWAITED_SECONDS_MAX
    while time.monotonic() < deadline:
        yield
        time.sleep(0.002)


def subscription(*topics: str, version: int = 3) -> bytes:
    """Return a consumer's metadata: the version and what it subscribes to."""
    body = ConsumerProtocolSubscription(topics=list(topics)).encode(version)
    return version.to_bytes(2, "big") + bytes(body)


@dataclass
class Member:
    """One client of one group; remembers the id and generation that it was told."""

    door: Door
    group_id: str = "group"
    client_id: str = "client"
    instance_id: str | None = None
    topics: tuple[str, ...] = ("topic",)
    protocols: tuple[str, ...] = ("range",)
    protocol_type: str = "consumer"
    session_timeout_ms: int = 10_000
    rebalance_timeout_ms: int = 30_000
    join_version: int = 9
    sync_version: int = 5
    connection: int = 1
    member_id: str = ""
    generation_id: int = -1
    joining: Any = None
    syncing: Any = None
    metadata: dict[str, bytes] = field(default_factory=dict)

    def join_once(self) -> Any:
        """Send one JoinGroup request with the id known so far."""
        request = JoinGroupRequest(
            group_id=self.group_id,
            session_timeout_ms=self.session_timeout_ms,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type=self.protocol_type,
            protocols=[
                JoinGroupRequestProtocol(
                    name=name, metadata=self.metadata.get(name, subscription(*self.topics))
                )
                for name in self.protocols
            ],
        )
        self.joining = self._send(request, self.join_version)
        return self.joining

    def join(self) -> Any:
        """Join as clients do: ask for an id where the version needs one, then come back with it."""
        self.join_once()
        if self.joining.response is not None and self.joining.error == 79:
            self.member_id = self.joining.response.member_id
            self.join_once()
        return self.joining

    def joined(self) -> Any:
        """Take over id and generation from the answer, which must be a good one."""
        assert self.joining.error == 0, self.joining.error
        self.member_id = self.joining.response.member_id
        self.generation_id = self.joining.response.generation_id
        return self.joining.response

    def sync(self, assignments: dict[str, bytes] | None = None, **changes: Any) -> Any:
        """Ask for the assignment; a leader brings everybody's."""
        fields: dict[str, Any] = {
            "group_id": self.group_id,
            "generation_id": self.generation_id,
            "member_id": self.member_id,
            "group_instance_id": self.instance_id,
            "assignments": [
                SyncGroupRequestAssignment(member_id=member_id, assignment=assignment)
                for member_id, assignment in (assignments or {}).items()
            ],
        }
        if self.sync_version >= 5:
            fields |= {"protocol_type": self.protocol_type, "protocol_name": self.protocols[0]}
        self.syncing = self._send(SyncGroupRequest(**(fields | changes)), self.sync_version)
        return self.syncing

    def heartbeat(self, version: int = 4, **changes: Any) -> int:
        """Return the answer's error."""
        fields: dict[str, Any] = {
            "group_id": self.group_id,
            "generation_id": self.generation_id,
            "member_id": self.member_id,
            "group_instance_id": self.instance_id,
        }
        return int(self._send(HeartbeatRequest(**(fields | changes)), version).error)

    def leave(self, version: int = 5) -> Any:
        """Leave by oneself."""
        if version < 3:
            request = LeaveGroupRequest(group_id=self.group_id, member_id=self.member_id)
        else:
            identity = MemberIdentity(member_id=self.member_id, group_instance_id=self.instance_id)
            request = LeaveGroupRequest(group_id=self.group_id, members=[identity])
        return self._send(request, version)

    def commit(
        self, topic: str = "topic", offset: int = 1, version: int = 9, **changes: Any
    ) -> int:
        """Commit partition 0 of a topic as this member; return the partition's error."""
        fields: dict[str, Any] = {
            "group_id": self.group_id,
            "generation_id_or_member_epoch": self.generation_id,
            "member_id": self.member_id,
            "group_instance_id": self.instance_id,
            "topics": [commit_topic(topic, offset)],
        }
        reply = self._send(OffsetCommitRequest(**(fields | changes)), version)
        return int(reply.response.topics[0].partitions[0].error_code)

    def _send(self, request: Message, version: int) -> Any:
        return self.door.send(
            request, version, client_id=self.client_id, connection=self.connection
        )


def commit_topic(
    topic: str, offset: int, partition: int = 0, metadata: str | None = None, **ids: Any
) -> OffsetCommitRequestTopic:
    """Return one partition's commit."""
    return OffsetCommitRequestTopic(
        name=topic,
        partitions=[
            OffsetCommitRequestPartition(
                partition_index=partition, committed_offset=offset, committed_metadata=metadata
            )
        ],
        **ids,
    )


def fetch_group(group_id: str, *topics: str, partitions: int = 1) -> OffsetFetchRequest:
    """Return a fetch of a group's offsets; of all of them when no topic is named."""
    asked = [
        OffsetFetchRequestTopics(name=topic, partition_indexes=list(range(partitions)))
        for topic in topics
    ]
    group = OffsetFetchRequestGroup(group_id=group_id, topics=asked or None)
    return OffsetFetchRequest(groups=[group])


def committed(door: Door, group_id: str = "group") -> dict[tuple[str, int], int]:
    """Return every offset that a group committed."""
    response = door.send(fetch_group(group_id), 9).response
    assert response.groups[0].error_code == 0, response.groups[0].error_code
    return {
        (topic.name, partition.partition_index): partition.committed_offset
        for topic in response.groups[0].topics
        for partition in topic.partitions
    }


def finish_rebalance(*members: Member) -> Member:
    """Sync members whose JoinGroup requests have been answered; return the leader."""
    leaders = [member for member in members if member.joined().leader == member.member_id]
    assert len(leaders) == 1, leaders
    assignments = {member.member_id: member.member_id.encode() for member in members}
    for member in members:
        if member is not leaders[0]:
            member.sync()
    leaders[0].sync(assignments)
    for member in members:
        assert member.syncing.error == 0, member
        assert bytes(member.syncing.response.assignment) == member.member_id.encode()
    return leaders[0]
