"""AlterConfigs, API key 33, versions 0-2.

Behaviour:   replaces all settings of a resource: a setting that is not in the request gets its
             default; each resource is changed or refused on its own; `validate_only` checks
Versions:    v2 flexible
Left out:    8, a broker's log levels, see docs/DEVIATIONS.md
"""

from functools import partial

from kraft_wire.controller.config_answers import change_each, refuse_each
from kraft_wire.controller.config_changes import (
    LOGGER_RESOURCE,
    ConfigChange,
    ConfigOperation,
    changed_records,
    check_asked,
    replaced_values,
    without_a_broker,
)
from kraft_wire.controller.controller import Controller, ControllerContext, ControllerResult
from kraft_wire.controller.elr_settings import clear_elr_records
from kraft_wire.controller.refusal import TOO_LARGE, Refusal, is_too_large
from kraft_wire.metadata.records import VersionedRecord
from kraft_wire.wire.generated.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["handle", "refuse"]


def handle(
    controller: Controller, context: ControllerContext, request: AlterConfigsRequest
) -> ControllerResult:
    """Replace the settings of resources as a whole.

    Errors of the request: POLICY_VIOLATION (too many records). A controller answers
    UNSUPPORTED_VERSION to an unknown type. Errors per resource, first match wins: INVALID_REQUEST
    (named twice; keys twice; null; broker id or key that is not dynamic; unknown type),
    INVALID_CONFIG, INVALID_TOPIC_EXCEPTION, UNKNOWN_TOPIC_OR_PARTITION.
    """
    assert request.MIN_VERSION <= context.api_version <= request.MAX_VERSION, context.api_version
    responses, records = change_each(
        request.resources,
        partial(_resource_records, controller, is_direct=context.is_direct),
        AlterConfigsResourceResponse,
        is_direct=context.is_direct,
    )
    records += clear_elr_records(controller.image, records)
    if is_too_large(len(records)):
        return ControllerResult(refuse(request, ErrorCode.POLICY_VIOLATION, TOO_LARGE))
    response = AlterConfigsResponse(responses=responses)
    return ControllerResult(response, () if request.validate_only else records)


def refuse(
    request: AlterConfigsRequest, error: ErrorCode, message: str | None
) -> AlterConfigsResponse:
    """Return the answer that refuses the request as a whole."""
    responses = refuse_each(request.resources, error, message, AlterConfigsResourceResponse)
    assert len(responses) == len(request.resources)
    return AlterConfigsResponse(responses=responses)


def _resource_records(
    controller: Controller, resource: AlterConfigsResource, *, is_direct: bool
) -> list[VersionedRecord]:
    changes = [
        ConfigChange(config.name, ConfigOperation.SET, config.value) for config in resource.configs
    ]
    assert len(changes) == len(resource.configs)
    kind, name = resource.resource_type, resource.resource_name
    if is_direct and kind == LOGGER_RESOURCE:
        raise Refusal(ErrorCode.INVALID_REQUEST, "Unexpected resource type BROKER_LOGGER.")
    if is_direct:
        changes = without_a_broker(changes)
    check_asked(controller, kind, name, changes, is_direct=is_direct)
    values = replaced_values(changes)
    return changed_records(controller, kind, name, values, changes, is_direct=is_direct)
