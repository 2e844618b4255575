"""ACLs without an authorizer: DescribeAcls, CreateAcls and DeleteAcls, API keys 29 to 31."""

from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.acl_entries import ALLOW, LITERAL, READ, TOPIC, Entry, Filter
from kraft_wire.conformance.case import case
from kraft_wire.conformance.subject import Subject
from kraft_wire.conformance.verdict import NotSupported
from kraft_wire.wire.generated.create_acls import CreateAclsRequest, CreateAclsResponse
from kraft_wire.wire.generated.delete_acls import DeleteAclsRequest, DeleteAclsResponse
from kraft_wire.wire.generated.describe_acls import DescribeAclsResponse
from kraft_wire.wire.generated.error_code import ErrorCode

_SOURCE: Final = "org.apache.kafka.controller.AclControlManager"
_PRINCIPAL: Final = "User:conformance"


def _filter(name: str) -> Filter:
    return Filter(None, name, TOPIC, LITERAL, None, READ, ALLOW)


def _needs_none(broker: Subject) -> str:
    """Return a topic's name, where the broker has no authorizer."""
    name = broker.name()
    answer = broker.prepare(_filter(name).of_description(), DescribeAclsResponse)
    if answer.error_code == ErrorCode.NONE:
        raise NotSupported("the broker has an authorizer")
    return name


@case("DescribeAcls", _SOURCE)
def no_authorizer_to_ask(broker: Subject, version: int) -> None:
    """Without an authorizer the description is SECURITY_DISABLED.

    Describe the ACLs of a topic.
    """
    request = _filter(_needs_none(broker)).of_description()
    answer = broker.ask(request, version, DescribeAclsResponse)
    expect.error(answer, "error_code", ErrorCode.SECURITY_DISABLED)
    expect.equal(answer, "resources", [])


@case("CreateAcls", _SOURCE)
def no_authorizer_to_create(broker: Subject, version: int) -> None:
    """Without an authorizer each new ACL is SECURITY_DISABLED.

    Create an ACL of a topic.
    """
    creation = Entry(_PRINCIPAL, _needs_none(broker)).creation()
    request = CreateAclsRequest(creations=[creation, creation])
    answer = broker.ask(request, version, CreateAclsResponse)
    for index in range(2):
        expect.error(answer, f"results[{index}].error_code", ErrorCode.SECURITY_DISABLED)


@case("DeleteAcls", _SOURCE)
def no_authorizer_to_delete(broker: Subject, version: int) -> None:
    """Without an authorizer each deletion is SECURITY_DISABLED.

    Delete the ACLs of a topic.
    """
    request = DeleteAclsRequest(filters=[_filter(_needs_none(broker)).of_deletion()])
    answer = broker.ask(request, version, DeleteAclsResponse)
    expect.error(answer, "filter_results[0].error_code", ErrorCode.SECURITY_DISABLED)
    expect.equal(answer, "filter_results[0].matching_acls", [])
