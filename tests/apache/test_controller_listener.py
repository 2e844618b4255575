"""Our controller's listener beside that of Apache's node: the same bytes, the same answers."""

import struct
import time
from collections.abc import Iterator

import pytest

from kraft_wire.wire.generated.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kraft_wire.wire.generated.default_principal_data import DefaultPrincipalData
from kraft_wire.wire.generated.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from kraft_wire.wire.generated.describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from kraft_wire.wire.generated.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from kraft_wire.wire.generated.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    PartitionData,
    TopicData,
)
from kraft_wire.wire.generated.envelope import EnvelopeRequest, EnvelopeResponse
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kraft_wire.wire.generated.metadata import MetadataRequest
from kraft_wire.wire.generated.produce import ProduceRequest
from kraft_wire.wire.generated.vote import VoteRequest
from kraft_wire.wire.header import RequestHeader, encode_request_header, parse_response_header
from kraft_wire.wire.message import Message
from tests.apache.node import ApacheNode
from tests.quorum_processes import QuorumProcesses
from tests.server.wire_client import WireClient
from tests.waiting import HANG_S

pytestmark = pytest.mark.java

PRINCIPAL = struct.pack(">h", 0) + DefaultPrincipalData(type="User", name="ANONYMOUS").encode(0)
HOST = bytes([127, 0, 0, 1])
CLUSTER_METADATA = TopicData(
    topic_name="__cluster_metadata", partitions=[PartitionData(partition_index=0)]
)


@pytest.fixture(scope="module")
def addresses(
    apache_node: ApacheNode, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, str]]:
    """Apache's listener, and ours."""
    with QuorumProcesses(tmp_path_factory.mktemp("sole"), 1) as quorum:
        quorum.leader()
        both = apache_node.controller_bootstrap, quorum.controller(1)
        for address in both:
            await_registration(address)
        yield both


def await_registration(address: str) -> None:
    """Wait until a controller shows itself and its features: it does a little after it leads."""
    request = DescribeClusterRequest(endpoint_type=2)
    deadline = time.monotonic() + HANG_S
    while True:
        with WireClient(address) as client:
            shown = client.call(request, 1, DescribeClusterResponse).brokers
        names = {each.name for each in api_versions(address, 4).finalized_features}
        if shown and "metadata.version" in names:
            return
        assert time.monotonic() < deadline, (shown, names)
        time.sleep(0.05)


def api_versions(address: str, version: int) -> ApiVersionsResponse:
    request = ApiVersionsRequest()
    if version >= 3:
        request = ApiVersionsRequest(client_software_name="judge", client_software_version="1")
    with WireClient(address) as client:
        return client.call(request, version, ApiVersionsResponse)


@pytest.mark.parametrize("version", range(5))
def test_what_is_served_is_served_in_apaches_versions(
    addresses: tuple[str, str], version: int
) -> None:
    apache, ours = (
        {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}
        for answer in (api_versions(address, version) for address in addresses)
    )
    assert ours == apache


def test_features_are_shown_from_the_version_that_apache_shows_them(
    addresses: tuple[str, str],
) -> None:
    for version in range(5):
        apache, ours = (api_versions(address, version) for address in addresses)
        for answer in (apache, ours):
            answer.supported_features.sort(key=lambda each: each.name)
            answer.finalized_features = [
                each for each in answer.finalized_features if each.name == "metadata.version"
            ]
        assert ours.supported_features == apache.supported_features, version
        assert ours.finalized_features == apache.finalized_features, version
        assert ours.zk_migration_ready == apache.zk_migration_ready


def test_an_unnamed_client_is_refused_alike(addresses: tuple[str, str]) -> None:
    for address in addresses:
        with WireClient(address) as client:
            answer = client.call(ApiVersionsRequest(), 3, ApiVersionsResponse)
        assert answer.error_code == ErrorCode.INVALID_REQUEST


def test_a_version_that_does_not_exist_is_answered_alike(addresses: tuple[str, str]) -> None:
    answers = []
    for address in addresses:
        with WireClient(address) as client:
            header = RequestHeader(18, 99, 7, "judge")
            client.send_frame(encode_request_header(header) + b"\0")
            answers.append(client.receive_frame())
    assert answers[0] == answers[1]


@pytest.mark.parametrize(
    ("version", "endpoint_type"), [(0, 1), *((v, kind) for v in (1, 2) for kind in (1, 2, 3))]
)
def test_the_cluster_is_described_alike(
    addresses: tuple[str, str], version: int, endpoint_type: int
) -> None:
    request = DescribeClusterRequest(
        endpoint_type=endpoint_type, include_cluster_authorized_operations=True
    )
    answers = []
    for address in addresses:
        with WireClient(address) as client:
            answer = client.call(request, version, DescribeClusterResponse)
        for controller in answer.brokers:
            assert f"{controller.host}:{controller.port}" == address
            controller.port = 0
        answer.cluster_id = ""
        answers.append(answer)
    assert answers[1] == answers[0]


@pytest.mark.parametrize("code", [1, 3])
def test_access_control_is_described_alike(addresses: tuple[str, str], code: int) -> None:
    answers = []
    for address in addresses:
        with WireClient(address) as client:
            request = DescribeAclsRequest(
                resource_type_filter=code, pattern_type_filter=code, operation=1, permission_type=1
            )
            answers.append(client.call(request, 3, DescribeAclsResponse))
    assert answers[1] == answers[0]


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        *((2, "missing"), (2, ".."), (2, ""), (4, ""), (4, "1"), (4, "2"), (4, "x")),
        *(
            (8, "1"),
            (8, "2"),
            (8, ""),
            (16, "m"),
            (16, ""),
            (32, "g"),
            (32, ""),
            (1, "x"),
            (99, ""),
        ),
    ],
)
def test_configs_are_described_alike(addresses: tuple[str, str], kind: int, name: str) -> None:
    keys = ["node.id", "log.retention.ms", "interval.ms", "consumer.session.timeout.ms"]
    resource = DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=keys
    )
    answers = []
    for address in addresses:
        with WireClient(address) as client:
            request = DescribeConfigsRequest(resources=[resource], include_synonyms=True)
            answer = client.call(request, 4, DescribeConfigsResponse)
        for result in answer.results:
            result.configs.sort(key=lambda each: each.name)
        answers.append(answer)
    assert answers[1] == answers[0]


@pytest.mark.parametrize("request_", [MetadataRequest(), ProduceRequest()], ids=["3", "0"])
def test_what_a_controller_does_not_serve_closes_the_connection(
    addresses: tuple[str, str], request_: Message
) -> None:
    for address in addresses:
        with WireClient(address) as client:
            client.send(request_, request_.MAX_VERSION)
            assert client.is_closed()


def test_the_quorums_rpcs_close_the_connection_of_a_client(
    apache_node: ApacheNode, addresses: tuple[str, str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    with QuorumProcesses(tmp_path_factory.mktemp("both"), 1, is_combined=True) as quorum:
        for address in (apache_node.bootstrap, quorum.client(1)):
            with WireClient(address) as client:
                client.send(VoteRequest(), 2)
                assert client.is_closed()


# -- envelopes ---------------------------------------------------------------------------------


def inner(request: Message, version: int, *, correlation_id: int = 77) -> bytes:
    header = RequestHeader(request.API_KEY, version, correlation_id, "client")
    return encode_request_header(header) + request.encode(version)


def describe_quorum(version: int = 2) -> bytes:
    return inner(DescribeQuorumRequest(topics=[CLUSTER_METADATA]), version)


def enveloped(address: str, data: bytes, principal: bytes | None, host: bytes) -> EnvelopeResponse:
    request = EnvelopeRequest(
        request_data=data, request_principal=principal, client_host_address=host
    )
    with WireClient(address) as client:
        return client.call(request, 0, EnvelopeResponse)


@pytest.mark.parametrize(
    ("data", "principal", "host"),
    [
        (describe_quorum(), b"", HOST),
        (describe_quorum(), b"\0", HOST),
        (describe_quorum(), b"\0\7" + PRINCIPAL[2:], HOST),
        (describe_quorum(), PRINCIPAL[:-3], HOST),
        (describe_quorum(), PRINCIPAL, b""),
        (describe_quorum(), PRINCIPAL, b"\1\2\3"),
        (b"", PRINCIPAL, HOST),
        (b"\0\1\2", PRINCIPAL, HOST),
        (inner(VoteRequest(), 2), PRINCIPAL, HOST),
        (inner(ApiVersionsRequest(), 0), PRINCIPAL, HOST),
        (inner(EnvelopeRequest(), 0), PRINCIPAL, HOST),
        (b"\x7f\xff" + describe_quorum()[2:], PRINCIPAL, HOST),
        (describe_quorum()[:2] + b"\0\x09" + describe_quorum()[4:], PRINCIPAL, HOST),
        (describe_quorum()[:-6], PRINCIPAL, HOST),
        (b"", b"", b""),
        (describe_quorum()[:-6], PRINCIPAL, b"\1"),
    ],
    ids=[
        *("principal empty", "principal short", "principal version", "principal cut"),
        *("host empty", "host short", "nothing inside", "header cut", "vote", "api versions"),
        *("envelope", "unknown key", "unknown version", "body cut", "all wrong", "host and body"),
    ],
)
def test_an_envelope_that_cannot_be_opened_is_refused_alike(
    addresses: tuple[str, str], data: bytes, principal: bytes, host: bytes
) -> None:
    """SEC-ENV-09, SEC-ENV-10, SEC-ENV-11: the same error outside."""
    apache, ours = (enveloped(address, data, principal, host) for address in addresses)
    assert ours == apache
    assert ours.error_code != ErrorCode.NONE


@pytest.mark.parametrize("host", [HOST, bytes(15) + b"\1"], ids=["ipv4", "ipv6"])
@pytest.mark.parametrize("version", [0, 1, 2])
def test_the_quorum_is_described_in_an_envelope(
    addresses: tuple[str, str], version: int, host: bytes
) -> None:
    for address in addresses:
        answer = enveloped(address, describe_quorum(version), PRINCIPAL, host)
        assert answer.error_code == ErrorCode.NONE
        data = answer.response_data
        assert data is not None
        correlation_id, at = parse_response_header(data, 55, version)
        assert correlation_id == 77
        described, end = DescribeQuorumResponse.decode(data, version, at)
        assert end == len(data)
        assert described.topics[0].partitions[0].leader_id == 1


def test_a_change_in_an_envelope_is_answered_byte_for_byte_alike(
    addresses: tuple[str, str],
) -> None:
    changes = [
        AlterableConfig(name="log.retention.ms", config_operation=0, value="123456"),
        AlterableConfig(name="log.retention.ms", config_operation=1),
    ]
    for change in changes:
        resource = AlterConfigsResource(resource_type=4, resource_name="", configs=[change])
        data = inner(IncrementalAlterConfigsRequest(resources=[resource]), 1)
        apache, ours = (enveloped(address, data, PRINCIPAL, HOST) for address in addresses)
        assert ours == apache
        assert ours.error_code == ErrorCode.NONE
