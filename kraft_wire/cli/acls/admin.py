"""Requests about access-control entries: describe, create, delete (KIP-140)."""

from collections.abc import Sequence

from kraft_wire.client import BrokerConnection
from kraft_wire.client.refused import AdminRefused
from kraft_wire.metadata.acl_rules import OPERATIONS, PATTERN_TYPES, RESOURCE_TYPES, AclFilter
from kraft_wire.metadata.image import AclImage
from kraft_wire.wire.generated.create_acls import (
    AclCreation,
    CreateAclsRequest,
    CreateAclsResponse,
)
from kraft_wire.wire.generated.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from kraft_wire.wire.generated.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)

__all__ = ["add_acls", "entry_text", "listed_acls", "remove_acls"]


def listed_acls(connection: BrokerConnection, filters: Sequence[AclFilter]) -> list[AclImage]:
    """Return the entries that any of the filters means, each once, in order of their resources."""
    found: dict[AclImage, None] = {}
    for each in filters:
        request = DescribeAclsRequest(
            resource_type_filter=each.resource_type,
            resource_name_filter=each.resource_name,
            pattern_type_filter=each.pattern_type,
            principal_filter=each.principal,
            host_filter=each.host,
            operation=each.operation,
            permission_type=each.permission_type,
        )
        answer = connection.send(request, DescribeAclsResponse)
        if answer.error_code:
            raise AdminRefused("entries", answer.error_code, answer.error_message)
        for resource in answer.resources:
            for acl in resource.acls:
                found[_entry(resource, acl)] = None
    return sorted(found, key=_order)


def add_acls(connection: BrokerConnection, acls: Sequence[AclImage]) -> None:
    """Add entries; an existing one stays unchanged."""
    creations = [
        AclCreation(
            resource_type=acl.resource_type,
            resource_name=acl.resource_name,
            resource_pattern_type=acl.pattern_type,
            principal=acl.principal,
            host=acl.host,
            operation=acl.operation,
            permission_type=acl.permission_type,
        )
        for acl in acls
    ]
    answer = connection.send(CreateAclsRequest(creations=creations), CreateAclsResponse)
    for acl, result in zip(acls, answer.results, strict=True):
        if result.error_code:
            raise AdminRefused(entry_text(acl), result.error_code, result.error_message)


def remove_acls(connection: BrokerConnection, filters: Sequence[AclFilter]) -> list[AclImage]:
    """Remove the entries that any of the filters means, and return them."""
    asked = [
        DeleteAclsFilter(
            resource_type_filter=each.resource_type,
            resource_name_filter=each.resource_name,
            pattern_type_filter=each.pattern_type,
            principal_filter=each.principal,
            host_filter=each.host,
            operation=each.operation,
            permission_type=each.permission_type,
        )
        for each in filters
    ]
    removed: dict[AclImage, None] = {}
    answer = connection.send(DeleteAclsRequest(filters=asked), DeleteAclsResponse)
    for result in answer.filter_results:
        if result.error_code:
            raise AdminRefused("entries", result.error_code, result.error_message)
        for acl in result.matching_acls:
            if acl.error_code:
                raise AdminRefused(acl.resource_name, acl.error_code, acl.error_message)
            removed[_entry(acl, acl)] = None
    return sorted(removed, key=_order)


def entry_text(acl: AclImage) -> str:
    """Return an entry's resource and pattern in one word each: `literal topic orders`."""
    pattern = PATTERN_TYPES.get(acl.pattern_type, str(acl.pattern_type)).lower()
    kind = RESOURCE_TYPES.get(acl.resource_type, str(acl.resource_type)).lower()
    return f"{pattern} {kind} {acl.resource_name}"


def _entry(
    resource: DescribeAclsResource | DeleteAclsMatchingAcl,
    acl: AclDescription | DeleteAclsMatchingAcl,
) -> AclImage:
    return AclImage(
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        pattern_type=resource.pattern_type,
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation,
        permission_type=acl.permission_type,
    )


def _order(acl: AclImage) -> tuple[int, str, int, str, str, str, int]:
    operation = OPERATIONS.get(acl.operation, str(acl.operation))
    place = (acl.resource_type, acl.resource_name, acl.pattern_type)
    return (*place, acl.principal, acl.host, operation, acl.permission_type)
