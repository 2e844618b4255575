"""DescribeCluster, API key 60: brokers and controllers (KIP-700, KIP-919)."""

from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import case
from kraft_wire.conformance.subject import Subject
from kraft_wire.wire.generated.describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.metadata import MetadataRequest, MetadataResponse

_NOT_ASKED_FOR: Final = -(1 << 31)


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
    """An unknown endpoint type is refused with UNSUPPORTED_ENDPOINT_TYPE.

    Ask for endpoint type 9.
    """
    request = DescribeClusterRequest(endpoint_type=9)
    answer = broker.ask(request, version, DescribeClusterResponse)
    expect.error(answer, "error_code", ErrorCode.UNSUPPORTED_ENDPOINT_TYPE)


@case("DescribeCluster", "KIP-700")
def broker_under_judgment(broker: Subject, version: int) -> None:
    """The broker is listed under the address that it advertises, and the controller is a broker.

    Describe the cluster, look for the broker itself.
    """
    answer = broker.ask(DescribeClusterRequest(), version, DescribeClusterResponse)
    places = {each.broker_id: (each.host, each.port) for each in answer.brokers}
    own = broker.target.node_id
    if own >= 0:
        expect.true(own in places, f"broker {own}", places, "brokers")
    found = answer.controller_id
    expect.true(found in places, "the id of a broker", found, "controller_id")


@case("DescribeCluster", "KIP-700")
def operations_of_the_cluster(broker: Subject, version: int) -> None:
    """The permitted operations of a client are listed if it requests them.

    Describe the cluster with and without its operations.
    """
    for asked in (True, False):
        request = DescribeClusterRequest(include_cluster_authorized_operations=asked)
        answer = broker.ask(request, version, DescribeClusterResponse)
        found = answer.cluster_authorized_operations
        is_given = found != _NOT_ASKED_FOR
        path = "cluster_authorized_operations"
        expect.true(is_given == asked, "operations" if asked else "none", found, path)


@case("DescribeCluster", "KIP-1073", since=2)
def fenced_brokers(broker: Subject, version: int) -> None:
    """A broker that serves clients is not fenced.

    Describe the cluster with fenced brokers, look for the broker itself.
    """
    request = DescribeClusterRequest(include_fenced_brokers=True)
    answer = broker.ask(request, version, DescribeClusterResponse)
    for index, each in enumerate(answer.brokers):
        if each.broker_id == broker.target.node_id:
            expect.equal(answer, f"brokers[{index}].is_fenced", False)


@case("DescribeCluster", "KIP-700")
def addresses_as_in_metadata(broker: Subject, version: int) -> None:
    """Brokers have the host, port and rack that Metadata returns.

    Describe the cluster, ask for Metadata without topics.
    """
    answer = broker.ask(DescribeClusterRequest(), version, DescribeClusterResponse)
    known = broker.prepare(MetadataRequest(topics=[]), MetadataResponse)
    found = sorted((each.broker_id, each.host, each.port, each.rack) for each in answer.brokers)
    wanted = sorted((each.node_id, each.host, each.port, each.rack) for each in known.brokers)
    expect.true(found == wanted, str(wanted), found, "brokers")
