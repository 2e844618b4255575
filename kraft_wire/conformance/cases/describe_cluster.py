"""DescribeCluster, API key 60: brokers and controllers (KIP-700, KIP-919)."""

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import case
from kraft_wire.conformance.subject import Subject
from kraft_wire.wire.generated.describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode


@case("DescribeCluster", "KIP-700")
def brokers(broker: Subject, version: int) -> None:
    """The response lists the brokers with their addresses, and the cluster's id.

    Describe the cluster.
    """
    answer = broker.ask(DescribeClusterRequest(), version, DescribeClusterResponse)
    expect.error(answer, "error_code", ErrorCode.NONE)
    expect.true(bool(answer.cluster_id), "a cluster id", answer.cluster_id, "cluster_id")
    expect.true(len(answer.brokers) > 0, "at least one broker", 0, "brokers")
    for index, each in enumerate(answer.brokers):
        expect.true(each.port > 0, "a port", each.port, f"brokers[{index}].port")


@case("DescribeCluster", "KIP-919", since=1)
def controllers_at_a_broker(broker: Subject, version: int) -> None:
    """A broker refuses to describe controllers with MISMATCHED_ENDPOINT_TYPE.

    Ask a broker for endpoint type 2.
    """
    request = DescribeClusterRequest(endpoint_type=2)
    answer = broker.ask(request, version, DescribeClusterResponse)
    expect.error(answer, "error_code", ErrorCode.MISMATCHED_ENDPOINT_TYPE)


@case("DescribeCluster", "KIP-919", since=1)
def unknown_endpoint_type(broker: Subject, version: int) -> None:
    """An endpoint type that is none is refused with UNSUPPORTED_ENDPOINT_TYPE.

    Ask for endpoint type 9.
    """
    request = DescribeClusterRequest(endpoint_type=9)
    answer = broker.ask(request, version, DescribeClusterResponse)
    expect.error(answer, "error_code", ErrorCode.UNSUPPORTED_ENDPOINT_TYPE)
