"""Changes of this broker's own settings that only the broker can judge (KIP-226, KIP-1066).

It checks them before the request goes to the controller, which cannot: settings that limit each
other (`joint_changes`), its listeners' key stores (`security.store_changes`), and the paths of
cordoned log directories. A refused resource gets
INVALID_REQUEST as in release 4.3.1, and the others are changed. A request that a client sends to a
controller's listener passes no such check (`controller.cordoning`).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias, cast

from kraft_wire.broker.context import RequestContext, Withheld
from kraft_wire.controller.broker_names import foreign_broker_problem
from kraft_wire.controller.config_changes import ConfigChange, ConfigOperation, incremental_values
from kraft_wire.controller.refusal import Refusal
from kraft_wire.metadata.image import BROKER_RESOURCE, MetadataImage
from kraft_wire.node.authorization.asker import Passed
from kraft_wire.node.authorization.splitting import with_refused
from kraft_wire.node.config.node_config import NodeConfig
from kraft_wire.node.requests.joint_changes import joint_change_problem
from kraft_wire.node.requests.late_answers import LateAnswers
from kraft_wire.settings.broker import BROKER_KEYS, node_number
from kraft_wire.settings.cordoning import CORDONED_KEY, cordoned_problem
from kraft_wire.settings.values import InvalidConfigValue, parse_value
from kraft_wire.wire.generated.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.incremental_alter_configs import (
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kraft_wire.wire.generated.incremental_alter_configs import (
    AlterConfigsResourceResponse as IncrementalResourceResponse,
)
from kraft_wire.wire.message import Message

__all__ = ["Handle", "OwnSettings", "Problem"]

Handle: TypeAlias = Callable[[RequestContext, Message], Message | Withheld]
Problem: TypeAlias = Callable[[Mapping[str, str], Sequence[str]], str | None]
"""Takes the values that the broker would have, and the keys that change; returns why not."""

_OPERATIONS: Final = tuple(ConfigOperation)


class OwnSettings:
    """The checks of one broker, and the answers that wait for the controller."""

    def __init__(self, config: NodeConfig, problem_of_stores: Problem | None) -> None:
        """`problem_of_stores` is None without a listener that has stores."""
        assert config.is_broker, "a node that is a controller alone has no own settings"
        self._own = BROKER_RESOURCE, str(config.node_id)
        self._settings = config.settings
        self._log_dirs = config.log_dirs
        self._problem_of_stores = problem_of_stores
        self._late = LateAnswers()
        self.finished, self.forget = self._late.finished, self._late.forget

    def handle(
        self, context: RequestContext, request: Message, image: MetadataImage, handle: Handle
    ) -> Message | Withheld:
        """Refuse changes that this broker could not apply; have the rest of a request handled."""
        if isinstance(request, IncrementalAlterConfigsRequest):
            kind, one = IncrementalAlterConfigsResponse, IncrementalResourceResponse
        else:
            kind, one = AlterConfigsResponse, AlterConfigsResourceResponse  # type: ignore[assignment]  # of the same fields
        altering = cast("IncrementalAlterConfigsRequest", request)
        served: list[AlterConfigsResource] = []
        refused: list[object] = []
        for resource in altering.resources:
            problem = self._problem(request, resource, image)
            if problem is None:
                served.append(resource)
            else:
                answer = one(
                    error_code=ErrorCode.INVALID_REQUEST,
                    error_message=problem,
                    resource_type=resource.resource_type,
                    resource_name=resource.resource_name,
                )
                refused.append(answer)
        if not refused:
            return handle(context, request)
        altering.resources = served
        verdict = with_refused(request, kind, "responses", refused, served)
        if not isinstance(verdict, Passed):
            return verdict
        return self._late.after(context, verdict, handle(context, request))

    def _problem(
        self, request: Message, resource: AlterConfigsResource, image: MetadataImage
    ) -> str | None:
        """Return why this broker could not apply the settings that it would have, or None."""
        name = resource.resource_name
        if resource.resource_type != BROKER_RESOURCE or name not in ("", self._own[1]):
            return self._problem_of_another(resource, image)
        changes = _changes(resource)
        if not _is_well_formed(changes):
            return None  # the controller refuses it
        names = [each.name for each in changes]
        present = image.config(BROKER_RESOURCE, name)
        if isinstance(request, AlterConfigsRequest):
            values = {each.name: each.value for each in changes if each.value is not None}
            names += present  # it removes what it does not name
        else:
            try:
                values = incremental_values(BROKER_RESOURCE, present, changes)
            except Refusal:
                return None  # the controller refuses it
        return self._problem_of_values(name, values, names, image)

    def _problem_of_values(
        self, name: str, values: Mapping[str, str], names: Sequence[str], image: MetadataImage
    ) -> str | None:
        node_id = int(self._own[1])
        problem = joint_change_problem(self._settings, image, node_id, name, values)
        if problem is None and name:
            problem = self._problem_of_directories(values)
        if problem is None and name and self._problem_of_stores is not None:
            problem = self._problem_of_stores(values, names)
        return problem

    def _problem_of_another(
        self, resource: AlterConfigsResource, image: MetadataImage
    ) -> str | None:
        """Return why a resource that is not this broker cannot change, or None.

        Only the broker knows its directories, so that 4.3.1's check is needed for this key.
        """
        name = resource.resource_name
        if resource.resource_type != BROKER_RESOURCE:
            return None
        assert name, "settings of all brokers are this broker's too"
        if not _is_well_formed(_changes(resource)):
            return None  # the controller refuses it
        problem = foreign_broker_problem(image, int(self._own[1]), name)
        is_cordoned = any(each.name == CORDONED_KEY for each in resource.configs)
        if problem is None and is_cordoned and node_number(name) != int(self._own[1]):
            problem = f"Unexpected broker id, expected {self._own[1]}, but received {name}"
        return problem

    def _problem_of_directories(self, values: Mapping[str, str]) -> str | None:
        """Return why the cordoned directories cannot be those; also if they do not change."""
        if CORDONED_KEY not in values:
            return None
        try:
            cordoned = parse_value(BROKER_KEYS[CORDONED_KEY], values[CORDONED_KEY])
        except InvalidConfigValue:
            return None  # the controller refuses it
        assert isinstance(cordoned, tuple), cordoned
        problem = cordoned_problem(cordoned, self._log_dirs)
        return None if problem is None else f"requirement failed: {problem}"


def _changes(resource: AlterConfigsResource) -> list[ConfigChange]:
    return [
        ConfigChange(each.name, getattr(each, "config_operation", 0), each.value)
        for each in resource.configs
    ]


def _is_well_formed(changes: Sequence[ConfigChange]) -> bool:
    names = {each.name for each in changes}
    return len(names) == len(changes) and all(map(_is_complete, changes))


def _is_complete(change: ConfigChange) -> bool:
    is_known = change.operation in _OPERATIONS
    return is_known and (change.value is not None or change.operation == ConfigOperation.DELETE)
