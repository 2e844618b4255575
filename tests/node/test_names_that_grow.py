"""A name of bytes that are no UTF-8 grows when it is read: nobody can write it again.

Kafka's own server fails to serialise the answer and closes the connection; ours refuses the request
with a log line, and serves everybody else.
"""

import socket
import struct
from collections.abc import Callable

import pytest

from kraft_wire.client import BrokerConnection
from kraft_wire.wire.generated.create_topics import CreatableTopic, CreateTopicsRequest
from kraft_wire.wire.generated.delete_topics import DeleteTopicsRequest
from kraft_wire.wire.generated.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from kraft_wire.wire.generated.describe_groups import DescribeGroupsRequest
from kraft_wire.wire.generated.find_coordinator import FindCoordinatorRequest
from kraft_wire.wire.generated.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kraft_wire.wire.generated.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kraft_wire.wire.generated.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from kraft_wire.wire.generated.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kraft_wire.wire.generated.request_header import RequestHeader
from kraft_wire.wire.message import Message
from tests.server_process import ServerProcess
from tests.waiting import HANG_S

LONG = "Q" * 20_000


def _alter() -> Message:
    change = AlterableConfig(name="metrics", config_operation=0, value="*")
    resource = AlterConfigsResource(resource_type=16, resource_name=LONG, configs=[change])
    return IncrementalAlterConfigsRequest(resources=[resource])


def _commit() -> Message:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    topic = OffsetCommitRequestTopic(name="known", partitions=[partition])
    return OffsetCommitRequest(group_id=LONG, topics=[topic])


def _commit_metadata() -> Message:
    partition = OffsetCommitRequestPartition(
        partition_index=0, committed_offset=1, committed_metadata=LONG[:4_000]
    )
    topic = OffsetCommitRequestTopic(name="known", partitions=[partition])
    return OffsetCommitRequest(group_id="g", topics=[topic])


def _join() -> Message:
    protocol = JoinGroupRequestProtocol(name=LONG, metadata=b"")
    return JoinGroupRequest(
        group_id=LONG, session_timeout_ms=6_000, protocol_type=LONG, protocols=[protocol]
    )


def _join_long_type() -> Message:
    protocol = JoinGroupRequestProtocol(name="range", metadata=b"")
    return JoinGroupRequest(
        group_id="h", session_timeout_ms=6_000, protocol_type=LONG, protocols=[protocol]
    )


def _describe() -> Message:
    resource = DescribeConfigsResource(resource_type=32, resource_name=LONG)
    return DescribeConfigsRequest(resources=[resource])


@pytest.mark.parametrize(
    ("make", "version"),
    [
        (lambda: MetadataRequest(topics=[MetadataRequestTopic(name=LONG)]), 4),
        (lambda: CreateTopicsRequest(topics=[CreatableTopic(name=LONG)]), 4),
        (lambda: DeleteTopicsRequest(topic_names=[LONG]), 1),
        (_alter, 0),
        (_describe, 1),
        (_commit, 2),
        (_commit_metadata, 2),
        (_join, 2),
        (_join_long_type, 2),
        (lambda: FindCoordinatorRequest(coordinator_keys=[LONG]), 4),
        (lambda: DescribeGroupsRequest(groups=[LONG]), 0),
    ],
    ids=lambda value: "" if callable(value) else str(value),
)
def test_server_outlives_a_name_that_cannot_be_written(
    module_server: ServerProcess, make: Callable[[], Message], version: int
) -> None:
    request = make()
    header = RequestHeader(
        request_api_key=request.API_KEY,
        request_api_version=version,
        correlation_id=1,
        client_id="c",
    )
    flexible = version >= request.FLEXIBLE_FROM
    body = request.encode(version).replace(b"Q", b"\xff")
    frame = header.encode(2 if flexible else 1) + body
    host, port = module_server.bootstrap.split(":")
    with socket.create_connection((host, int(port)), timeout=HANG_S) as connection:
        connection.sendall(struct.pack(">i", len(frame)) + frame)
        connection.recv(1 << 16)  # an answer, or the end: either is fine
    with BrokerConnection(module_server.bootstrap) as other:
        assert other.send(MetadataRequest(topics=[]), MetadataResponse).brokers
