"""DescribeAcls, API key 29, versions 1-3.

Behaviour:   returns the access-control entries that match a filter, by resource; needs the standard
             authorizer, which reads its entries from the metadata log
Versions:    v1 pattern types (KIP-290) · v2 flexible · v3 users as resources (KIP-373)
Left out:    other authorizers, see docs/DEVIATIONS.md
"""

from kraft_wire.broker.context import RequestContext
from kraft_wire.broker.metadata.metadata_reader import MetadataReader
from kraft_wire.metadata.acl_rules import AUTHORIZER_KEY, STANDARD_AUTHORIZER, AclFilter
from kraft_wire.wire.generated.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["handle"]


def handle(
    broker: MetadataReader, context: RequestContext, request: DescribeAclsRequest
) -> DescribeAclsResponse:
    """List entries. Errors: SECURITY_DISABLED (no authorizer)."""
    wanted = AclFilter(
        resource_type=request.resource_type_filter,
        resource_name=request.resource_name_filter,
        pattern_type=request.pattern_type_filter,
        principal=request.principal_filter,
        host=request.host_filter,
        operation=request.operation,
        permission_type=request.permission_type,
    )
    assert not wanted.has_zero, "a request with a code of 0 ends its connection when it is read"
    if broker.settings.source.text(AUTHORIZER_KEY) != STANDARD_AUTHORIZER:
        words = "No Authorizer is configured on the broker"
        return DescribeAclsResponse(error_code=ErrorCode.SECURITY_DISABLED, error_message=words)
    by_resource: dict[tuple[int, str, int], list[AclDescription]] = {}
    acls = broker.image.acls
    for acl_id in sorted(acls):
        acl = acls[acl_id]
        if wanted.matches(acl):
            resource = (acl.resource_type, acl.resource_name, acl.pattern_type)
            described = AclDescription(
                principal=acl.principal,
                host=acl.host,
                operation=acl.operation,
                permission_type=acl.permission_type,
            )
            by_resource.setdefault(resource, []).append(described)
    resources = [
        DescribeAclsResource(
            resource_type=kind, resource_name=name, pattern_type=pattern, acls=described
        )
        for (kind, name, pattern), described in sorted(
            by_resource.items(), key=lambda each: each[0]
        )
    ]
    return DescribeAclsResponse(error_message="", resources=resources)
