"""The guard of FindCoordinator: key by key; only brokers may ask for a share partition's key."""

from typing import Final, cast

from kraft_wire.node.authorization.asker import Asked, Passed, Verdict
from kraft_wire.node.authorization.splitting import finishing
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kraft_wire.wire.message import Message

__all__ = ["find_coordinator"]

_SEVERAL_KEYS_FROM: Final = 4
_SHARE_FROM: Final = 6
_GROUP, _TRANSACTION, _SHARE = range(3)


def find_coordinator(asked: Asked) -> Verdict:
    """Answer for the keys that may be described; a type that is not served is refused first."""
    request = cast("FindCoordinatorRequest", asked.request)
    version, kind = asked.context.api_version, request.key_type
    if kind not in (_GROUP, _TRANSACTION) and not (kind == _SHARE and version >= _SHARE_FROM):
        return Passed(request)  # its handler refuses it
    need = asked.needs[kind]
    error = need.error
    if kind == _SHARE:
        return Passed(request) if asked.asker.meets(need) else _of_all(request, error)
    if version < _SEVERAL_KEYS_FROM:
        return Passed(request) if asked.asker.meets(need, request.key) else _one(error)
    order = request.coordinator_keys
    allowed = asked.asker.allowed(need, order)
    request.coordinator_keys = [key for key in order if allowed[key]]

    def change(answer: FindCoordinatorResponse) -> Message:
        served = iter(answer.coordinators)
        answer.coordinators = [
            next(served) if allowed[key] else _unknown(key, error) for key in order
        ]
        return answer

    return Passed(request, finishing(FindCoordinatorResponse, change))


def _one(error: ErrorCode) -> FindCoordinatorResponse:
    return FindCoordinatorResponse(
        error_code=error, error_message=error.message, node_id=-1, port=-1
    )


def _of_all(request: FindCoordinatorRequest, error: ErrorCode) -> FindCoordinatorResponse:
    return FindCoordinatorResponse(
        coordinators=[_unknown(key, error, error.message) for key in request.coordinator_keys]
    )


def _unknown(key: str, error: ErrorCode, words: str = "") -> Coordinator:
    return Coordinator(key=key, node_id=-1, host="", port=-1, error_code=error, error_message=words)
