"""IncrementalAlterConfigs, API key 44, versions 0-1.

Behaviour:   each resource is changed or refused on its own; a repeated resource is refused both
             times; operations are SET, DELETE, and for lists APPEND and SUBTRACT; `validate_only`
             checks
Versions:    v1 flexible · resource types: 2 topic, 4 broker, 16 client metrics, 32 group
Left out:    8, a broker's log levels, see docs/DEVIATIONS.md
"""

from functools import partial

from kraft_wire.controller.broker_names import check_logger_name
from kraft_wire.controller.config_answers import change_each, refuse_each
from kraft_wire.controller.config_changes import (
    LOGGER_RESOURCE,
    ConfigChange,
    changed_records,
    check_asked,
    check_keys,
    incremental_values,
    without_a_broker,
)
from kraft_wire.controller.controller import Controller, ControllerContext, ControllerResult
from kraft_wire.controller.elr_settings import clear_elr_records
from kraft_wire.controller.refusal import TOO_LARGE, Refusal, is_too_large
from kraft_wire.metadata.records import VersionedRecord
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

__all__ = ["handle", "refuse"]


def handle(
    controller: Controller, context: ControllerContext, request: IncrementalAlterConfigsRequest
) -> ControllerResult:
    """Change the settings of resources key by key.

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
    response = IncrementalAlterConfigsResponse(responses=responses)
    return ControllerResult(response, () if request.validate_only else records)


def refuse(
    request: IncrementalAlterConfigsRequest, error: ErrorCode, message: str | None
) -> IncrementalAlterConfigsResponse:
    """Return the answer that refuses the request as a whole."""
    responses = refuse_each(request.resources, error, message, AlterConfigsResourceResponse)
    assert len(responses) == len(request.resources)
    return IncrementalAlterConfigsResponse(responses=responses)


def _resource_records(
    controller: Controller, resource: AlterConfigsResource, *, is_direct: bool
) -> list[VersionedRecord]:
    changes = [
        ConfigChange(config.name, config.config_operation, config.value)
        for config in resource.configs
    ]
    assert len(changes) == len(resource.configs)
    kind, name = resource.resource_type, resource.resource_name
    if kind == LOGGER_RESOURCE:
        if not is_direct:
            check_keys(changes)
        check_logger_name(controller, name)
        words = "The log levels of this broker cannot be changed while it runs"
        raise Refusal(ErrorCode.INVALID_REQUEST, words)
    if is_direct:
        changes = without_a_broker(changes)
    check_asked(controller, kind, name, changes, is_direct=is_direct)
    present = controller.image.config(kind, name)
    values = incremental_values(kind, present, changes, is_direct=is_direct)
    return changed_records(controller, kind, name, values, changes, is_direct=is_direct)
