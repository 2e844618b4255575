"""ControllerRegistration, API key 70, version 0.

Behaviour:   a controller reports its listeners and supported feature levels, once per incarnation;
             the registration replaces the previous one (KIP-919)
Versions:    v0
Left out:    nothing
"""

from typing import Final

from kraft_wire.controller.controller import Controller, ControllerContext, ControllerResult
from kraft_wire.metadata.features import CONTROLLERS_FROM
from kraft_wire.metadata.image import ControllerImage
from kraft_wire.metadata.node_records import controller_record
from kraft_wire.metadata.replay_nodes import endpoint_images, feature_images
from kraft_wire.wire.generated.controller_registration import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["handle", "refuse"]

_SECURITY_PROTOCOLS: Final = range(4)


def handle(
    controller: Controller, context: ControllerContext, request: ControllerRegistrationRequest
) -> ControllerResult:
    """Register a controller.

    Errors: UNSUPPORTED_VERSION (metadata.version), INVALID_REQUEST (negative id, a security
    protocol that does not exist, or a name twice).
    """
    assert context.api_version == 0, context.api_version
    if controller.image.metadata_version < CONTROLLERS_FROM:
        words = "The current MetadataVersion is too old to support controller registrations."
        return ControllerResult(refuse(request, ErrorCode.UNSUPPORTED_VERSION, words))
    problem = _problem(request)
    if problem is not None:
        return ControllerResult(refuse(request, ErrorCode.INVALID_REQUEST, problem))
    registered = ControllerImage(
        controller_id=request.controller_id,
        incarnation_id=request.incarnation_id,
        endpoints=endpoint_images(request.listeners),
        features=feature_images(request.features),
        zk_migration_ready=False,
    )
    assert len(registered.endpoints) == len(request.listeners), request
    return ControllerResult(ControllerRegistrationResponse(), [controller_record(registered)])


def refuse(
    request: ControllerRegistrationRequest, error: ErrorCode, message: str | None
) -> ControllerRegistrationResponse:
    """Return the answer that refuses the request, with Kafka's message of the error."""
    assert error is not ErrorCode.NONE
    return ControllerRegistrationResponse(error_code=error, error_message=error.message)


def _problem(request: ControllerRegistrationRequest) -> str | None:
    """Return why a registration is invalid, None if every node can replay its record."""
    if request.controller_id < 0:
        return f"A controller's id cannot be {request.controller_id}."
    for what, names in (
        ("listener", [each.name for each in request.listeners]),
        ("feature", [each.name for each in request.features]),
    ):
        if len(set(names)) != len(names):
            return f"A {what} is named twice."
    for each in request.listeners:
        if each.security_protocol not in _SECURITY_PROTOCOLS:
            return f"Security protocol {each.security_protocol} does not exist."
    for levels in request.features:
        if levels.min_supported_version > levels.max_supported_version:
            return f"The levels of {levels.name} end before they begin."
    assert request.controller_id >= 0
    return None
