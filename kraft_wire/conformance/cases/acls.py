"""ACLs without an authorizer: DescribeAcls, CreateAcls and DeleteAcls, API keys 29 to 31."""

from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import case
from kraft_wire.conformance.subject import Subject
from kraft_wire.conformance.verdict import NotSupported
from kraft_wire.wire.generated.create_acls import (
    AclCreation,
    CreateAclsRequest,
    CreateAclsResponse,
)
from kraft_wire.wire.generated.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from kraft_wire.wire.generated.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from kraft_wire.wire.generated.error_code import ErrorCode

_SOURCE: Final = "org.apache.kafka.controller.AclControlManager"
_TOPIC, _LITERAL, _READ, _ALLOW = 2, 3, 3, 3


def _filter(name: str) -> DeleteAclsFilter:
    return DeleteAclsFilter(
        resource_type_filter=_TOPIC,
        resource_name_filter=name,
        pattern_type_filter=_LITERAL,
        principal_filter=None,
        host_filter=None,
        operation=_READ,
        permission_type=_ALLOW,
    )


def _description(name: str) -> DescribeAclsRequest:
    return DescribeAclsRequest(
        resource_type_filter=_TOPIC,
        resource_name_filter=name,
        pattern_type_filter=_LITERAL,
        principal_filter=None,
        host_filter=None,
        operation=_READ,
        permission_type=_ALLOW,
    )


def _needs_none(broker: Subject) -> str:
    """Return a topic's name, where the broker has no authorizer."""
    name = broker.name()
    answer = broker.prepare(_description(name), DescribeAclsResponse)
    if answer.error_code == ErrorCode.NONE:
        raise NotSupported("the broker has an authorizer")
    return name


@case("DescribeAcls", _SOURCE)
def no_authorizer_to_ask(broker: Subject, version: int) -> None:
    """Without an authorizer the description is SECURITY_DISABLED.

    Describe the ACLs of a topic.
    """
    request = _description(_needs_none(broker))
    answer = broker.ask(request, version, DescribeAclsResponse)
    expect.error(answer, "error_code", ErrorCode.SECURITY_DISABLED)
    expect.equal(answer, "resources", [])


@case("CreateAcls", _SOURCE)
def no_authorizer_to_create(broker: Subject, version: int) -> None:
    """Without an authorizer each new ACL is SECURITY_DISABLED.

    Create an ACL of a topic.
    """
    creation = AclCreation(
        resource_type=_TOPIC,
        resource_name=_needs_none(broker),
        resource_pattern_type=_LITERAL,
        principal="User:conformance",
        host="*",
        operation=_READ,
        permission_type=_ALLOW,
    )
    request = CreateAclsRequest(creations=[creation, creation])
    answer = broker.ask(request, version, CreateAclsResponse)
    for index in range(2):
        expect.error(answer, f"results[{index}].error_code", ErrorCode.SECURITY_DISABLED)


@case("DeleteAcls", _SOURCE)
def no_authorizer_to_delete(broker: Subject, version: int) -> None:
    """Without an authorizer each deletion is SECURITY_DISABLED.

    Delete the ACLs of a topic.
    """
    request = DeleteAclsRequest(filters=[_filter(_needs_none(broker))])
    answer = broker.ask(request, version, DeleteAclsResponse)
    expect.error(answer, "filter_results[0].error_code", ErrorCode.SECURITY_DISABLED)
    expect.equal(answer, "filter_results[0].matching_acls", [])
