"""CreateAcls, API key 30, versions 1-3.

Behaviour:   each entry is recorded or refused on its own; an entry that exists succeeds; needs
             `authorizer.class.name` to be the standard authorizer, which enforces the entries
Versions:    v1 prefixed patterns (KIP-290) · v2 flexible · v3 users as resources (KIP-373)
Left out:    nothing
"""

from kraft_wire.controller.controller import Controller, ControllerContext, ControllerResult
from kraft_wire.controller.refusal import Refusal, check_room
from kraft_wire.metadata.acl_rules import (
    ANY,
    AUTHORIZER_KEY,
    CLUSTER_NAME,
    CLUSTER_RESOURCE,
    MATCH,
    OPERATIONS,
    PATTERN_TYPES,
    PERMISSION_TYPES,
    RESOURCE_TYPES,
    STANDARD_AUTHORIZER,
    UNKNOWN,
)
from kraft_wire.metadata.image import AclImage
from kraft_wire.metadata.image_records import acl_record
from kraft_wire.metadata.records import VersionedRecord
from kraft_wire.model import Uuid, random_uuid
from kraft_wire.wire.generated.create_acls import (
    AclCreation,
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["handle", "refuse"]


def handle(
    controller: Controller, context: ControllerContext, request: CreateAclsRequest
) -> ControllerResult:
    """Record access-control entries.

    Errors for all, first match wins: SECURITY_DISABLED, INVALID_REQUEST (a code that only filters
    have); per entry INVALID_REQUEST (name of the cluster, no name, a code that does not
    exist, principal without a colon), POLICY_VIOLATION (too many records).
    """
    assert request.MIN_VERSION <= context.api_version <= request.MAX_VERSION, context.api_version
    if controller.settings.text(AUTHORIZER_KEY) != STANDARD_AUTHORIZER:
        words = "No Authorizer is configured."
        return ControllerResult(refuse(request, ErrorCode.SECURITY_DISABLED, words))
    if any(_is_for_filters(each) for each in request.creations):
        words = "The entries contain elements that only a filter may have."
        return ControllerResult(refuse(request, ErrorCode.INVALID_REQUEST, words))
    present = {acl: acl_id for acl_id, acl in controller.image.acls.items()}
    records: list[VersionedRecord] = []
    results = []
    for creation in request.creations:
        result = AclCreationResult(error_message="")
        try:
            _check(creation)
            acl = _entry(creation)
            if acl not in present:
                check_room(len(records) + 1)
                present[acl] = _new_id(controller)
                records.append(acl_record(present[acl], acl))
        except Refusal as refusal:
            result.error_code, result.error_message = refusal.error, refusal.message
        results.append(result)
    assert len(results) == len(request.creations)
    return ControllerResult(CreateAclsResponse(results=results), records)


def refuse(request: CreateAclsRequest, error: ErrorCode, message: str | None) -> CreateAclsResponse:
    """Return the answer that refuses the request as a whole."""
    assert error is not ErrorCode.NONE
    return CreateAclsResponse(
        results=[
            AclCreationResult(error_code=error, error_message=message) for _ in request.creations
        ]
    )


def _is_for_filters(creation: AclCreation) -> bool:
    """Return whether a code matches several values, which an entry may not have."""
    codes = (creation.resource_type, creation.operation, creation.permission_type)
    pattern = creation.resource_pattern_type
    assert UNKNOWN not in (*codes, pattern), "refused when the request is read"
    return ANY in codes or pattern in (ANY, MATCH)


def _check(creation: AclCreation) -> None:
    """Refuse an entry that cannot be recorded: INVALID_REQUEST."""
    is_cluster = creation.resource_type == CLUSTER_RESOURCE
    problem: str | None
    if is_cluster and creation.resource_name != CLUSTER_NAME:
        problem = f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
    elif not creation.resource_name:
        problem = "Invalid empty resource name"
    else:
        problem = _code_problem(creation)
    if problem is None and ":" not in creation.principal:
        problem = (
            f"Could not parse principal from `{creation.principal}` (no colon is present "
            "separating the principal type from the principal name)"
        )
    if problem is not None:
        raise Refusal(ErrorCode.INVALID_REQUEST, problem)


def _code_problem(creation: AclCreation) -> str | None:
    """Name the first code that does not exist."""
    for what, code, names in (
        ("resourceType", creation.resource_type, RESOURCE_TYPES),
        ("patternType", creation.resource_pattern_type, PATTERN_TYPES),
        ("operation", creation.operation, OPERATIONS),
        ("permissionType", creation.permission_type, PERMISSION_TYPES),
    ):
        assert code not in (UNKNOWN, ANY), (what, code)
        if code not in names:
            return f"Invalid {what} UNKNOWN"
    return None


def _entry(creation: AclCreation) -> AclImage:
    assert creation.resource_name, "_check comes first"
    return AclImage(
        resource_type=creation.resource_type,
        resource_name=creation.resource_name,
        pattern_type=creation.resource_pattern_type,
        principal=creation.principal,
        host=creation.host,
        operation=creation.operation,
        permission_type=creation.permission_type,
    )


def _new_id(controller: Controller) -> Uuid:
    acl_id = random_uuid(controller.random_source)
    while acl_id in controller.image.acls:
        acl_id = random_uuid(controller.random_source)
    assert acl_id not in controller.image.acls
    return acl_id
