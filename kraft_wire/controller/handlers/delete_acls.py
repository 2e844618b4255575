"""DeleteAcls, API key 31, versions 1-3.

Behaviour:   each filter returns the entries that it matches, also those that an earlier filter of
             the request deletes; needs the standard authorizer, as CreateAcls does
Versions:    v1 pattern types (KIP-290) · v2 flexible · v3 users as resources (KIP-373)
Left out:    nothing
"""

from kraft_wire.controller.controller import Controller, ControllerContext, ControllerResult
from kraft_wire.controller.refusal import BATCH_RECORDS_MAX, Refusal
from kraft_wire.metadata.acl_rules import AUTHORIZER_KEY, STANDARD_AUTHORIZER, AclFilter
from kraft_wire.metadata.image import AclImage
from kraft_wire.metadata.records import VersionedRecord
from kraft_wire.model import Uuid
from kraft_wire.wire.generated.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.remove_access_control_entry_record import (
    RemoveAccessControlEntryRecord,
)

__all__ = ["handle", "refuse"]


def handle(
    controller: Controller, context: ControllerContext, request: DeleteAclsRequest
) -> ControllerResult:
    """Remove the access-control entries that filters match.

    Errors for all, first match wins: SECURITY_DISABLED, INVALID_REQUEST (more than 10,000 entries);
    per filter INVALID_REQUEST (a code that does not exist).
    """
    assert request.MIN_VERSION <= context.api_version <= request.MAX_VERSION, context.api_version
    filters = [_read(each) for each in request.filters]
    assert not any(each.has_zero for each in filters), "refused when the request is read"
    if controller.settings.text(AUTHORIZER_KEY) != STANDARD_AUTHORIZER:
        words = "No Authorizer is configured."
        return ControllerResult(refuse(request, ErrorCode.SECURITY_DISABLED, words))
    doomed: dict[Uuid, VersionedRecord] = {}
    try:
        results = [_result(controller, each, doomed) for each in filters]
    except Refusal as refusal:
        return ControllerResult(refuse(request, refusal.error, refusal.message))
    assert len(results) == len(request.filters)
    return ControllerResult(DeleteAclsResponse(filter_results=results), list(doomed.values()))


def refuse(request: DeleteAclsRequest, error: ErrorCode, message: str | None) -> DeleteAclsResponse:
    """Return the answer that refuses the request as a whole."""
    assert error is not ErrorCode.NONE
    return DeleteAclsResponse(
        filter_results=[
            DeleteAclsFilterResult(error_code=error, error_message=message, matching_acls=[])
            for _ in request.filters
        ]
    )


def _read(asked: DeleteAclsFilter) -> AclFilter:
    return AclFilter(
        resource_type=asked.resource_type_filter,
        resource_name=asked.resource_name_filter,
        pattern_type=asked.pattern_type_filter,
        principal=asked.principal_filter,
        host=asked.host_filter,
        operation=asked.operation,
        permission_type=asked.permission_type,
    )


def _result(
    controller: Controller, asked: AclFilter, doomed: dict[Uuid, VersionedRecord]
) -> DeleteAclsFilterResult:
    """Return the entries that one filter matches, and add the records that remove them."""
    problem = None
    if asked.resource_is_unknown:
        problem = "Unknown patternFilter."
    elif asked.entry_is_unknown:
        problem = "Unknown entryFilter."
    if problem is not None:
        return DeleteAclsFilterResult(
            error_code=ErrorCode.INVALID_REQUEST, error_message=problem, matching_acls=[]
        )
    acls = controller.image.acls
    found = [acl_id for acl_id in sorted(acls) if asked.matches(acls[acl_id])]
    for acl_id in found:
        if len(doomed) >= BATCH_RECORDS_MAX:  # also if an earlier filter has matched this one
            words = (
                f"Cannot remove more than {BATCH_RECORDS_MAX} acls in a single delete operation."
            )
            raise Refusal(ErrorCode.INVALID_REQUEST, words)
        doomed[acl_id] = VersionedRecord(RemoveAccessControlEntryRecord(id=acl_id))
    matching = [_matching(acls[acl_id]) for acl_id in found]
    assert len(matching) <= len(doomed)
    return DeleteAclsFilterResult(error_message=None, matching_acls=matching)


def _matching(acl: AclImage) -> DeleteAclsMatchingAcl:
    return DeleteAclsMatchingAcl(
        error_message=None,
        resource_type=acl.resource_type,
        resource_name=acl.resource_name,
        pattern_type=acl.pattern_type,
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation,
        permission_type=acl.permission_type,
    )
