"""DescribeClientQuotas, API key 48, versions 0-1.

Behaviour:   returns the quotas of the entities that match all components of a filter: by name, the
             default, or any; `strict` excludes entities with further parts
Versions:    v1 flexible (KIP-546)
Left out:    nothing
"""

from collections.abc import Mapping
from typing import Final

from kraft_wire.broker.broker import Broker
from kraft_wire.broker.context import RequestContext
from kraft_wire.wire.generated.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["handle"]

_EXACT, _DEFAULT, _SPECIFIED = 0, 1, 2
_IP: Final = "ip"
_TYPES: Final = ("user", "client-id", _IP)

_Entity = tuple[tuple[str, str | None], ...]


class _Refused(Exception):
    """Why a filter cannot be followed; caught by `handle`."""

    def __init__(self, error: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.error = error
        self.message = message


def handle(
    broker: Broker, context: RequestContext, request: DescribeClientQuotasRequest
) -> DescribeClientQuotasResponse:
    """Describe quotas.

    Errors, first match wins: INVALID_REQUEST (no type, a type twice), UNSUPPORTED_VERSION (a type
    that does not exist), INVALID_REQUEST (a match and a name that do not go together, an address
    beside other types).
    """
    try:
        exact, specified = _read(request.components)
    except _Refused as refusal:
        return DescribeClientQuotasResponse(
            error_code=refusal.error, error_message=refusal.message, entries=None
        )
    components = len(exact) + len(specified)
    quotas = broker.image.client_quotas
    found = [
        entity
        for entity in sorted(quotas, key=_order)
        if not (request.strict and len(entity) != components)
        and _matches(dict(entity), exact, specified)
    ]
    entries = [
        EntryData(
            entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
            values=[
                ValueData(key=key, value=quotas[entity][key]) for key in sorted(quotas[entity])
            ],
        )
        for entity in found
    ]
    return DescribeClientQuotasResponse(error_message="", entries=entries)


def _read(components: list[ComponentData]) -> tuple[dict[str, str | None], list[str]]:
    """Return the names that must be met, null for the default, and the types that must be there."""
    exact: dict[str, str | None] = {}
    specified: list[str] = []
    for component in components:
        kind = component.entity_type
        if not kind:
            raise _Refused(ErrorCode.INVALID_REQUEST, "Invalid empty entity type.")
        if kind in exact or kind in specified:
            words = f"Entity type {kind} cannot appear more than once in the filter."
            raise _Refused(ErrorCode.INVALID_REQUEST, words)
        if kind not in _TYPES:
            raise _Refused(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}")
        _check_match(component)
        if component.match_type == _SPECIFIED:
            specified.append(kind)
        else:
            exact[kind] = component.match
    types = [*exact, *specified]
    if _IP in types and len(types) > 1:
        words = (
            "Invalid entity filter component combination. IP filter component should not be used "
            "with user or clientId filter component."
        )
        raise _Refused(ErrorCode.INVALID_REQUEST, words)
    return exact, specified


def _check_match(component: ComponentData) -> None:
    problem = None
    if component.match_type == _EXACT:
        if component.match is None:
            problem = "Request specified MATCH_TYPE_EXACT, but set match string to null."
    elif component.match_type in (_DEFAULT, _SPECIFIED):
        if component.match is not None:
            name = "DEFAULT" if component.match_type == _DEFAULT else "SPECIFIED"
            problem = f"Request specified MATCH_TYPE_{name}, but also specified a match string."
    else:
        problem = f"Unknown match type {component.match_type}"
    if problem is not None:
        raise _Refused(ErrorCode.INVALID_REQUEST, problem)


def _matches(
    names: Mapping[str, str | None], exact: Mapping[str, str | None], specified: list[str]
) -> bool:
    return all(kind in names for kind in specified) and all(
        kind in names and names[kind] == name for kind, name in exact.items()
    )


def _order(entity: _Entity) -> list[tuple[str, bool, str]]:
    """Order entities by their parts, the default before every name."""
    return [(kind, name is not None, name or "") for kind, name in entity]
