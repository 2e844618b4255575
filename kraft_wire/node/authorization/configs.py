"""Guards of requests about settings: a topic's, a group's, and the cluster's for all others."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final, Protocol, TypeVar, cast

from kraft_wire.apis.rights import Need
from kraft_wire.metadata.image import (
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
)
from kraft_wire.node.authorization.asker import Asked, Verdict
from kraft_wire.node.authorization.splitting import with_refused
from kraft_wire.wire.generated.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from kraft_wire.wire.generated.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.incremental_alter_configs import (
    AlterConfigsResourceResponse as IncrementalResourceResponse,
)
from kraft_wire.wire.generated.incremental_alter_configs import (
    IncrementalAlterConfigsResponse,
)

__all__ = ["CLUSTER_STEP", "alter_configs", "describe_configs", "incremental_alter_configs"]

_LOGGER_RESOURCE: Final = 8
CLUSTER_STEP: Final = 2
"""The step of the table for all but topics and groups."""
_STEPS: Final = {
    TOPIC_RESOURCE: 0,
    GROUP_RESOURCE: 1,
    BROKER_RESOURCE: CLUSTER_STEP,
    CLIENT_METRICS_RESOURCE: CLUSTER_STEP,
    _LOGGER_RESOURCE: CLUSTER_STEP,
}
"""The step of the table for a resource type; the handler refuses unknown types."""


class _Resource(Protocol):
    resource_type: int
    resource_name: str


ResourceT = TypeVar("ResourceT", bound=_Resource)
ResultT = TypeVar("ResultT")


def describe_configs(asked: Asked) -> Verdict:
    """DescribeConfigs: resource by resource."""
    request = cast("DescribeConfigsRequest", asked.request)
    request.resources, refused = _split(asked, request.resources, lambda _: False)
    answers = [_refused(DescribeConfigsResult, *each) for each in refused]

    return with_refused(request, DescribeConfigsResponse, "results", answers, request.resources)


def alter_configs(asked: Asked) -> Verdict:
    """AlterConfigs: resource by resource; one that is named twice is refused first."""
    return _changed(asked, AlterConfigsResponse, AlterConfigsResourceResponse)


def incremental_alter_configs(asked: Asked) -> Verdict:
    """IncrementalAlterConfigs: as AlterConfigs."""
    return _changed(asked, IncrementalAlterConfigsResponse, IncrementalResourceResponse)


def _changed(
    asked: Asked,
    kind: type[AlterConfigsResponse] | type[IncrementalAlterConfigsResponse],
    one: type[AlterConfigsResourceResponse] | type[IncrementalResourceResponse],
) -> Verdict:
    request = cast("AlterConfigsRequest", asked.request)  # both have the same fields
    request.resources, refused = _split(asked, request.resources, _named_twice(request.resources))
    answers = [_refused(one, *each) for each in refused]

    return with_refused(request, kind, "responses", answers, request.resources)


def _refused(kind: Callable[..., ResultT], resource: _Resource, error: ErrorCode) -> ResultT:
    return kind(
        error_code=error,
        error_message=error.message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


def _split(
    asked: Asked, resources: Sequence[ResourceT], is_left: Callable[[_Resource], bool]
) -> tuple[list[ResourceT], list[tuple[ResourceT, ErrorCode]]]:
    """Return the resources to serve, and the refused ones with their errors."""
    served: list[ResourceT] = []
    refused: list[tuple[ResourceT, ErrorCode]] = []
    for each in resources:
        step = _STEPS.get(each.resource_type)
        need: Need | None = None if step is None else asked.needs[step]
        if need is None or is_left(each) or asked.asker.meets(need, each.resource_name):
            served.append(each)
        else:
            refused.append((each, need.error))
    return served, refused


def _named_twice(resources: Sequence[_Resource]) -> Callable[[_Resource], bool]:
    counts = Counter((each.resource_type, each.resource_name) for each in resources)
    return lambda each: counts[each.resource_type, each.resource_name] > 1
