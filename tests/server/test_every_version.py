"""Every API in every version that is advertised: an answer that decodes, never a broken connection.

The requests are the emptiest that the version allows, which is what a handler expects least.
"""

import pytest

from kraft_wire.apis.registry import advertised
from kraft_wire.wire.generated.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from kraft_wire.wire.generated.registry import request_class, response_class
from tests.server.wire_client import WireClient
from tests.server_process import ServerProcess

PRODUCE, FIRST_PRODUCE_VERSION = 0, 3
SILENT = {(PRODUCE, version) for version in range(14)}
"""An empty Produce has acks=0, and is answered by silence."""

DESCRIBE_ACLS = 29
"""An empty one has codes of 0, which nobody can mean: the connection ends (tests/node)."""

PAIRS = [
    (key, version)
    for key, (low, high) in advertised().items()
    for version in range(low, high + 1)
    if (key, version) not in SILENT and key != DESCRIBE_ACLS
]


@pytest.mark.parametrize(("api_key", "version"), PAIRS)
def test_an_empty_request_gets_an_answer_of_its_version(
    module_server: ServerProcess, api_key: int, version: int
) -> None:
    with WireClient(module_server.bootstrap) as client:
        answer = client.call(request_class(api_key)(), version, response_class(api_key))
    assert answer.NAME == response_class(api_key).NAME


@pytest.mark.parametrize("version", range(FIRST_PRODUCE_VERSION, 14))
def test_an_empty_produce_with_acks_is_answered(module_server: ServerProcess, version: int) -> None:
    request = request_class(PRODUCE)()
    request.acks = 1  # type: ignore[attr-defined]  # ProduceRequest has it
    with WireClient(module_server.bootstrap) as client:
        assert client.call(request, version, response_class(PRODUCE)).responses == []  # type: ignore[attr-defined]  # as above


@pytest.mark.parametrize("version", range(1, 4))
def test_a_filter_that_any_entry_passes_is_answered(
    module_server: ServerProcess, version: int
) -> None:
    request = DescribeAclsRequest(
        resource_type_filter=1, pattern_type_filter=1, operation=1, permission_type=1
    )
    with WireClient(module_server.bootstrap) as client:
        assert client.call(request, version, DescribeAclsResponse).resources == []
