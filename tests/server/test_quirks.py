"""Q1 to Q15 of what real clients need, each at the socket; the number is in the test's name."""

import json
import struct
from collections.abc import Iterator

import pytest

from kraft_wire.wire.compression.codecs import Compression
from kraft_wire.wire.generated.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from kraft_wire.wire.generated.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kraft_wire.wire.generated.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from kraft_wire.wire.generated.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from kraft_wire.wire.generated.produce import ProduceResponse
from kraft_wire.wire.records.record_batch import parse_batches
from tests.server.wire_client import WireClient, one_batch, produce_request
from tests.server_process import ServerProcess
from tests.waiting import until

PRODUCE, API_VERSIONS, SASL_HANDSHAKE, TELEMETRY = 0, 18, 17, (71, 72)


@pytest.fixture
def client(module_server: ServerProcess) -> Iterator[WireClient]:
    with WireClient(module_server.bootstrap) as connected:
        yield connected


def produced_offset(response: ProduceResponse) -> int:
    """The offset of a successful produce of one partition."""
    answer = response.responses[0].partition_responses[0]
    assert answer.error_code == ErrorCode.NONE, answer
    return answer.base_offset


def fetch_request(topic_name: str, offset: int, **more: int) -> FetchRequest:
    """A consumer's fetch of partition 0 that waits for a byte."""
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    return FetchRequest(
        max_wait_ms=more.get("max_wait_ms", 5_000),
        min_bytes=1,
        max_bytes=1 << 24,
        topics=[FetchTopic(topic=topic_name, partitions=[partition])],
    )


def test_q1_produce_is_advertised_from_version_0(client: WireClient) -> None:
    answer = client.call(ApiVersionsRequest(), 2, ApiVersionsResponse)
    ranges = {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}
    assert ranges[PRODUCE] == (0, 13)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_q1_produce_below_version_3_is_answered_unsupported(
    client: WireClient, version: int
) -> None:
    body = struct.pack(">hii", 1, 1000, 1) + struct.pack(">h", 3) + b"old"
    body += struct.pack(">iii", 1, 5, 3) + b"xyz"
    client.send_frame(struct.pack(">hhih", PRODUCE, version, 77, -1) + body)
    expected = struct.pack(">ii", 77, 1) + struct.pack(">h", 3) + b"old"
    expected += struct.pack(">iihq", 1, 5, ErrorCode.UNSUPPORTED_VERSION, -1)
    expected += struct.pack(">q", -1) if version == 2 else b""
    expected += struct.pack(">i", 0) if version >= 1 else b""
    assert client.receive_frame() == expected


def test_q2_bytes_behind_a_request_are_tolerated(client: WireClient) -> None:
    header = client.send(MetadataRequest(topics=[]), 13, trailing=b"\x01\x00\x00")
    assert client.receive(MetadataResponse, header).brokers


def test_q3_a_request_that_is_a_byte_short_ends_the_connection_with_a_log_line(
    module_server: ServerProcess, client: WireClient
) -> None:
    body = MetadataRequest(topics=[]).encode(12)[:-1]
    client.send_frame(struct.pack(">hhih", 3, 12, 99, 4) + b"slow" + b"\0" + body)
    assert client.is_closed()
    lines = module_server.log.read_text().splitlines()
    (line,) = [line for line in lines if "correlation=99" in line]
    assert "api=Metadata version=12" in line
    assert "client_id=slow" in line
    assert "reason=truncated" in line
    assert "action=close" in line


@pytest.mark.parametrize("version", [0, 1, 2, 3, 4])
def test_q4_the_header_of_an_api_versions_answer_is_version_0(
    client: WireClient, version: int
) -> None:
    request = ApiVersionsRequest(client_software_name="t", client_software_version="1")
    client.send(request, version)
    frame = client.receive_frame()
    assert frame is not None
    answer, end = ApiVersionsResponse.decode(frame, version, 4)
    assert end == len(frame)
    assert answer.error_code == ErrorCode.NONE


def test_q4_an_unknown_api_versions_version_is_answered_in_the_form_of_version_0(
    client: WireClient,
) -> None:
    client.send_frame(struct.pack(">hhih", API_VERSIONS, 99, 12, -1) + b"\0whatever")
    frame = client.receive_frame()
    assert frame == struct.pack(">ihihhh", 12, ErrorCode.UNSUPPORTED_VERSION, 1, 18, 0, 4)
    assert client.call(ApiVersionsRequest(), 0, ApiVersionsResponse).api_keys


def test_q5_features_that_begin_at_0_are_shown_from_version_4_only(client: WireClient) -> None:
    request = ApiVersionsRequest(client_software_name="t", client_software_version="1")
    old = client.call(request, 3, ApiVersionsResponse)
    new = client.call(request, 4, ApiVersionsResponse)
    assert [feature.name for feature in old.supported_features] == ["metadata.version"]
    assert {feature.min_version for feature in new.supported_features} >= {0, 7}
    assert old.finalized_features == new.finalized_features != []


def test_q6_api_versions_may_come_twice(client: WireClient) -> None:
    first = client.call(ApiVersionsRequest(), 0, ApiVersionsResponse)
    request = ApiVersionsRequest(client_software_name="t", client_software_version="1")
    again = client.call(request, 4, ApiVersionsResponse)
    assert [each.api_key for each in first.api_keys] == [each.api_key for each in again.api_keys]


def test_q7_the_newest_transaction_protocol_is_finalised_and_served(client: WireClient) -> None:
    request = ApiVersionsRequest(client_software_name="t", client_software_version="1")
    answer = client.call(request, 4, ApiVersionsResponse)
    finalised = {feature.name: feature.max_version_level for feature in answer.finalized_features}
    assert finalised["transaction.version"] == 2
    versions = {each.api_key: each.max_version for each in answer.api_keys}
    assert (versions[24], versions[26]) == (5, 5)


def await_coordinator(client: WireClient, group: str) -> None:
    """Ask until the group's coordinator is there."""
    request = FindCoordinatorRequest(key=group)
    until(lambda: client.call(request, 2, FindCoordinatorResponse).error_code == ErrorCode.NONE)


@pytest.mark.parametrize(
    ("version", "error"), [(3, ErrorCode.NONE), (4, ErrorCode.MEMBER_ID_REQUIRED)]
)
def test_q8_a_member_without_id_is_asked_back_from_version_4(
    client: WireClient, version: int, error: ErrorCode
) -> None:
    await_coordinator(client, f"q8-{version}")
    request = JoinGroupRequest(
        group_id=f"q8-{version}",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )
    answer = client.call(request, version, JoinGroupResponse)
    assert answer.error_code == error
    assert answer.member_id


def test_q9_topics_are_known_by_their_ids(client: WireClient) -> None:
    topic = client.topic("q9")
    response = client.call(
        produce_request(topic, one_batch(b"by id"), by_id=True), 13, ProduceResponse
    )
    assert produced_offset(response) == 0
    fetch = fetch_request("", 0)
    fetch.topics[0].topic_id = topic.topic_id
    data = client.call(fetch, 13, FetchResponse).responses[0].partitions[0]
    assert data.error_code == ErrorCode.NONE
    assert data.high_watermark == 1


def test_q9_an_unknown_topic_id_is_an_error_of_the_partition(client: WireClient) -> None:
    topic = client.topic("q9")
    topic.topic_id = type(topic.topic_id)(b"\x07" * 16)
    response = client.call(
        produce_request(topic, one_batch(b"lost"), by_id=True), 13, ProduceResponse
    )
    answer = response.responses[0].partition_responses[0]
    assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_ID
    fetch = fetch_request("", 0)
    fetch.topics[0].topic_id = topic.topic_id
    data = client.call(fetch, 13, FetchResponse).responses[0].partitions[0]
    assert data.error_code == ErrorCode.UNKNOWN_TOPIC_ID


@pytest.mark.parametrize("codec", [Compression.NONE, Compression.LZ4])
def test_q10_a_fetch_returns_the_whole_batch_around_its_offset(
    client: WireClient, codec: Compression
) -> None:
    topic = client.topic(f"q10-{codec.name}")
    records = one_batch(b"a", b"b", b"c", codec=codec)
    base = produced_offset(client.call(produce_request(topic, records), 8, ProduceResponse))
    assert topic.name is not None
    answer = client.call(fetch_request(topic.name, base + 2), 11, FetchResponse)
    data = answer.responses[0].partitions[0].records
    assert isinstance(data, memoryview)
    (batch,) = parse_batches(data)
    assert (batch.base_offset, batch.last_offset) == (base, base + 2)
    assert [record.value for record in batch.records()] == [b"a", b"b", b"c"]


@pytest.mark.parametrize("version", [0, 3, 4, 12])
def test_q11_metadata_creates_a_topic_where_it_is_allowed(client: WireClient, version: int) -> None:
    topic = client.topic(f"q11-{version}", version)
    assert topic.error_code == ErrorCode.NONE
    assert len(topic.partitions) == 1


def test_q11_metadata_creates_nothing_where_the_request_forbids_it(client: WireClient) -> None:
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name="q11-forbidden")], allow_auto_topic_creation=False
    )
    (topic,) = client.call(request, 4, MetadataResponse).topics
    assert topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    everything = client.call(MetadataRequest(topics=None), 4, MetadataResponse)
    assert "q11-forbidden" not in {each.name for each in everything.topics}


def test_q12_an_ipv4_literal_is_advertised(client: WireClient) -> None:
    (broker,) = client.call(MetadataRequest(topics=[]), 9, MetadataResponse).brokers
    assert broker.host == "127.0.0.1"


def test_q13_telemetry_is_not_advertised(client: WireClient) -> None:
    answer = client.call(ApiVersionsRequest(), 0, ApiVersionsResponse)
    assert not {each.api_key for each in answer.api_keys} & set(TELEMETRY)


def test_q14_acks_0_is_answered_by_silence(client: WireClient) -> None:
    topic = client.topic("q14")
    client.send(produce_request(topic, one_batch(b"quiet"), acks=0), 8)
    header = client.send(MetadataRequest(topics=[]), 8)
    assert client.receive(MetadataResponse, header).brokers  # nothing came before it
    assert topic.name is not None
    answer = client.call(fetch_request(topic.name, 0), 11, FetchResponse)
    assert answer.responses[0].partitions[0].high_watermark == 1


def test_q14_a_failed_acks_0_closes_the_connection(client: WireClient) -> None:
    topic = client.topic("q14-failed")
    corrupt = bytearray(one_batch(b"spoiled"))
    corrupt[-1] ^= 1
    client.send(produce_request(topic, bytes(corrupt), acks=0), 8)
    assert client.is_closed()


def test_q15_unknown_tags_of_header_and_body_are_skipped(client: WireClient) -> None:
    tags = b"\x01\x63\x03abc"  # one tag, number 99, three bytes
    header = struct.pack(">hhih", 3, 12, 5, 1) + b"t" + tags
    body = MetadataRequest(topics=[]).encode(12)
    assert body.endswith(b"\0")
    client.send_frame(header + body[:-1] + tags)
    frame = client.receive_frame()
    assert frame is not None
    assert frame[:5] == struct.pack(">ib", 5, 0)


def test_q15_the_client_id_of_a_flexible_header_keeps_its_two_byte_length(
    module_server: ServerProcess,
) -> None:
    with WireClient(module_server.bootstrap, client_id=None) as client:
        assert client.call(MetadataRequest(topics=[]), 12, MetadataResponse).brokers


def test_the_ready_file_says_where_clients_connect(module_server: ServerProcess) -> None:
    facts = json.loads((module_server.directory / "ready.json").read_text())
    assert facts["pid"] == module_server.pid
    assert facts["node_id"] == 1
    assert len(facts["cluster_id"]) == 22
    assert facts["listeners"]["PLAINTEXT"].startswith("127.0.0.1:")
    assert facts["log_dirs"] == [str(module_server.data)]
