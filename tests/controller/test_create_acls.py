"""CreateAcls: codes that an entry may have, and entries that no batch can hold."""

import pytest

from kraft_wire.metadata.acl_rules import AUTHORIZER_KEY, STANDARD_AUTHORIZER
from kraft_wire.wire.generated.create_acls import (
    AclCreation,
    CreateAclsRequest,
    CreateAclsResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from tests.controller.cluster import OneNodeCluster


def test_change_that_no_batch_can_hold_is_refused_as_a_whole() -> None:
    cluster = OneNodeCluster({AUTHORIZER_KEY: STANDARD_AUTHORIZER})
    long = "x" * 30_000
    creations = [
        AclCreation(
            resource_type=2,
            resource_name=f"{number}{long}",
            principal=f"User:{long}",
            host=long,
            operation=3,
            permission_type=3,
        )
        for number in range(100)
    ]
    response = cluster.ask(CreateAclsRequest(creations=creations), 3)
    assert isinstance(response, CreateAclsResponse)
    assert {each.error_code for each in response.results} == {ErrorCode.RECORD_LIST_TOO_LARGE}
    assert cluster.loader.image.acls == {}


@pytest.mark.parametrize(
    "field", ["resource_type", "resource_pattern_type", "operation", "permission_type"]
)
def test_entry_is_accepted_with_every_code_that_kafka_has_and_no_other(field: str) -> None:
    """SEC-ACL-11: 1 means any, and a pattern of 2 all that match: only filters have them."""
    last = {"resource_type": 7, "resource_pattern_type": 4, "operation": 15, "permission_type": 3}
    accepted = []
    for code in range(1, 20):
        given = {
            "resource_type": 2,
            "resource_pattern_type": 3,
            "operation": 3,
            "permission_type": 3,
        }
        entry = AclCreation(
            resource_name="kafka-cluster", principal="User:u", host="*", **given | {field: code}
        )
        cluster = OneNodeCluster({AUTHORIZER_KEY: STANDARD_AUTHORIZER})
        response = cluster.ask(CreateAclsRequest(creations=[entry]), 3)
        assert isinstance(response, CreateAclsResponse)
        accepted += [code] * (response.results[0].error_code == ErrorCode.NONE)
    first = 3 if field == "resource_pattern_type" else 2
    assert accepted == list(range(first, last[field] + 1))


def test_entries_that_one_change_cannot_hold_are_refused_and_the_others_made() -> None:
    """KIP-868's bound of a change is 10,000 records; 4.3.1 answers the rest POLICY_VIOLATION."""
    cluster = OneNodeCluster({AUTHORIZER_KEY: STANDARD_AUTHORIZER})
    creations = [
        AclCreation(
            resource_type=2,
            resource_name=str(number),
            principal="User:u",
            host="*",
            operation=3,
            permission_type=3,
        )
        for number in range(10_001)
    ]
    response = cluster.ask(CreateAclsRequest(creations=creations), 3)
    assert isinstance(response, CreateAclsResponse)
    codes = [each.error_code for each in response.results]
    assert codes == [ErrorCode.NONE] * 10_000 + [ErrorCode.POLICY_VIOLATION]
    assert len(cluster.loader.image.acls) == 10_000


def test_errors_in_order() -> None:
    """`AclApis.handleCreateAcls` of 4.3.1; the principal of each entry is none."""

    def error(settings: dict[str, str], pattern_type: int) -> int:
        entry = AclCreation(
            resource_type=2,
            resource_name="t",
            resource_pattern_type=pattern_type,
            principal="no colon",
            host="*",
            operation=3,
            permission_type=3,
        )
        response = OneNodeCluster(settings).ask(CreateAclsRequest(creations=[entry]), 3)
        assert isinstance(response, CreateAclsResponse)
        return response.results[0].error_code

    any_pattern, literal = 1, 3
    authorizer = {AUTHORIZER_KEY: STANDARD_AUTHORIZER}
    assert error({}, any_pattern) == ErrorCode.SECURITY_DISABLED
    assert error({}, literal) == ErrorCode.SECURITY_DISABLED
    assert error(authorizer, any_pattern) == ErrorCode.INVALID_REQUEST
    assert error(authorizer, literal) == ErrorCode.INVALID_REQUEST
