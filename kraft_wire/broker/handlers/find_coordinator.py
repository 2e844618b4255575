"""FindCoordinator, API key 10, versions 0-6.

Behaviour:   the first request for a coordinator of a group, transactional id or share partition
             creates `__consumer_offsets`, `__transaction_state` or `__share_group_state`; until the
             topic exists and its partition has a leader, COORDINATOR_NOT_AVAILABLE lets clients
             retry; if the topic cannot be created, the error message has the reason
Versions:    v1 key types, error message · v4 several keys (KIP-699) · v6 share partitions (KIP-932)
Left out:    nothing
"""

from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from kraft_wire.broker.context import RequestContext
from kraft_wire.broker.share_state.coordinator_keys import (
    coordinator_key,
    parse_coordinator_key,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

if TYPE_CHECKING:
    from kraft_wire.broker.broker import Broker
    from kraft_wire.broker.groups.coordinator import GroupCoordinator
    from kraft_wire.broker.share_state.coordinator import ShareCoordinator
    from kraft_wire.broker.transactions.coordinator import TransactionCoordinator

    Coordinators: TypeAlias = GroupCoordinator | TransactionCoordinator | ShareCoordinator

__all__ = ["handle"]

_SEVERAL_KEYS_FROM: Final = 4

_GROUP: Final = 0
_TRANSACTION: Final = 1
_SHARE: Final = 2
_SHARE_FROM: Final = 6


class _Found(NamedTuple):
    """A coordinator's address, or the error."""

    error: ErrorCode
    node_id: int = -1
    host: str = ""
    port: int = -1
    message: str | None = None
    """More than the error says by itself."""


def handle(
    broker: "Broker", context: RequestContext, request: FindCoordinatorRequest
) -> FindCoordinatorResponse:
    """Return which broker coordinates a group, a transactional id or a share partition.

    Errors per key, first match wins: INVALID_REQUEST (a key type that is not served, or a key that
    names no share partition), COORDINATOR_NOT_AVAILABLE.
    """
    if context.api_version < _SEVERAL_KEYS_FROM:
        found = _find(broker, context, request.key_type, request.key)
        return FindCoordinatorResponse(
            error_code=found.error,
            error_message=found.message or found.error.message,
            node_id=found.node_id,
            host=found.host,
            port=found.port,
        )
    coordinators = []
    for key in request.coordinator_keys:
        found = _find(broker, context, request.key_type, key)
        coordinators.append(
            Coordinator(
                key=key,
                node_id=found.node_id,
                host=found.host,
                port=found.port,
                error_code=found.error,
                error_message=found.message or "",
            )
        )
    return FindCoordinatorResponse(coordinators=coordinators)


def _find(broker: "Broker", context: RequestContext, key_type: int, key: str) -> _Found:
    if key_type == _SHARE and context.api_version >= _SHARE_FROM:
        try:
            key = coordinator_key(parse_coordinator_key(key))
        except ValueError:
            return _Found(ErrorCode.INVALID_REQUEST)
        return _coordinator_of(broker, context, broker.share_states.coordinator, key)
    if key_type not in (_GROUP, _TRANSACTION):
        error = ErrorCode.INVALID_REQUEST
        return _Found(error, message=None if key_type == _SHARE else error.message)
    coordinator = broker.groups if key_type == _GROUP else broker.transactions
    return _coordinator_of(broker, context, coordinator, key)


def _coordinator_of(
    broker: "Broker", context: RequestContext, coordinator: "Coordinators", key: str
) -> _Found:
    """Return the live leader of a key's partition; a topic that is missing is created."""
    name = coordinator.runtime.topic.name
    topic = broker.image.topic(name)
    if topic is None:
        coordinator.topic_creation.request(broker.settings, context.now_ms)
        broker.controller.ask_now(context.now_ms, context.wall_ms)
        topic = broker.image.topic(name)
    if topic is None:
        reason = coordinator.topic_creation.failure
        message = None if reason is None else f"{name} cannot be created: {reason}"
        return _Found(ErrorCode.COORDINATOR_NOT_AVAILABLE, message=message)
    partition = topic.partitions[coordinator.partition_of(key)]
    leader = broker.image.brokers.get(partition.leader)
    if leader is None or leader.fenced:
        return _Found(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    endpoint = leader.endpoints.get(context.listener)
    if endpoint is None:
        return _Found(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return _Found(ErrorCode.NONE, leader.broker_id, endpoint.host, endpoint.port)
