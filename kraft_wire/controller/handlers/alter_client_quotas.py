"""AlterClientQuotas, API key 49, versions 0-1.

Behaviour:   sets and removes quotas of each entity (user, client id, both, or an address; a null
             name is the default), or refuses the whole entity; only changed values are recorded,
             and removing an absent quota succeeds; `validate_only` checks
Versions:    v1 flexible (KIP-546)
Left out:    host names are not resolved, NaN is refused, see docs/DEVIATIONS.md
"""

from collections.abc import Iterator, Mapping
from ipaddress import ip_address
from math import fmod, inf, isnan
from typing import Final

from kraft_wire.controller.controller import Controller, ControllerContext, ControllerResult
from kraft_wire.controller.refusal import Refusal, is_too_large
from kraft_wire.metadata.image import QuotaEntity
from kraft_wire.metadata.records import VersionedRecord
from kraft_wire.wire.generated.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntryData,
    ResponseEntityData,
    ResponseEntryData,
)
from kraft_wire.wire.generated.client_quota_record import ClientQuotaRecord, EntityData
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["handle", "refuse"]

_USER, _CLIENT_ID, _IP = "user", "client-id", "ip"
_LONG_MAX: Final = float((1 << 63) - 1)
_INT_MAX: Final = float((1 << 31) - 1)
_FRACTION_MAX: Final = 1e-6
_USER_QUOTAS: Final[Mapping[str, float]] = {
    "producer_byte_rate": _LONG_MAX,
    "consumer_byte_rate": _LONG_MAX,
    "request_percentage": inf,
    "controller_mutation_rate": inf,
}
_IP_QUOTAS: Final[Mapping[str, float]] = {"connection_creation_rate": _INT_MAX}
"""Keys by kind of entity, with the largest whole number; infinity where fractions are allowed."""
_KINDS: Final[Mapping[float, str]] = {_LONG_MAX: "a LONG", _INT_MAX: "an INT"}


def handle(
    controller: Controller, context: ControllerContext, request: AlterClientQuotasRequest
) -> ControllerResult:
    """Change quotas.

    Errors of the request: POLICY_VIOLATION (too many records). Errors per entity, first match wins,
    all INVALID_REQUEST: named twice (the first time counts all the same, as in Kafka), no entity,
    unknown type, empty name, address beside others, no address, unknown key, value out of range.
    """
    assert request.MIN_VERSION <= context.api_version <= request.MAX_VERSION, context.api_version
    records: list[VersionedRecord] = []
    results: dict[QuotaEntity, ResponseEntryData] = {}
    for entry in request.entries:
        entity = _entity(entry)
        answer = ResponseEntryData(error_message=None, entity=_shown(entity))
        try:
            if entity in results or len({op.key for op in entry.ops}) != len(entry.ops):
                parts = ", ".join(
                    f"{kind}={'null' if name is None else name}" for kind, name in entity
                )
                words = f"Ignoring duplicate entity ClientQuotaEntity(entries={{{parts}}})"
                raise Refusal(ErrorCode.INVALID_REQUEST, words)
            records += list(_changes(controller, entity, entry))
        except Refusal as refusal:
            answer.error_code, answer.error_message = refusal.error, refusal.message
        results[entity] = answer
    assert len(results) <= len(request.entries)
    if is_too_large(len(records)):
        return ControllerResult(refuse(request, ErrorCode.POLICY_VIOLATION, None))
    response = AlterClientQuotasResponse(entries=list(results.values()))
    return ControllerResult(response, () if request.validate_only else records)


def refuse(
    request: AlterClientQuotasRequest, error: ErrorCode, message: str | None
) -> AlterClientQuotasResponse:
    """Return the answer that refuses the request as a whole, with Kafka's message of the error."""
    assert error is not ErrorCode.NONE
    return AlterClientQuotasResponse(
        entries=[
            ResponseEntryData(
                error_code=error,
                error_message=error.message,
                entity=[
                    ResponseEntityData(entity_type=part.entity_type, entity_name=part.entity_name)
                    for part in each.entity
                ],
            )
            for each in request.entries
        ]
    )


def _entity(entry: EntryData) -> QuotaEntity:
    """Return an entry's entity in the image's form; a type given twice counts the last time."""
    parts = {part.entity_type: part.entity_name for part in entry.entity}
    assert len(parts) <= len(entry.entity)
    return tuple(sorted(parts.items()))


def _shown(entity: QuotaEntity) -> list[ResponseEntityData]:
    return [ResponseEntityData(entity_type=kind, entity_name=name) for kind, name in entity]


def _changes(
    controller: Controller, entity: QuotaEntity, entry: EntryData
) -> Iterator[VersionedRecord]:
    allowed = _allowed_keys(entity)
    assert allowed, entity
    present = controller.image.client_quotas.get(entity, {})
    for op in entry.ops:
        if op.remove:
            if op.key in present:
                yield _record(entity, op.key, 0.0, remove=True)
            continue
        _check_value(allowed, op.key, op.value)
        if present.get(op.key) != op.value:
            yield _record(entity, op.key, op.value, remove=False)


def _allowed_keys(entity: QuotaEntity) -> Mapping[str, float]:
    """Check an entity, and return the keys that it may have, with their largest values."""
    if not entity:
        raise Refusal(ErrorCode.INVALID_REQUEST, "Invalid empty client quota entity")
    for kind, name in entity:
        if kind not in (_USER, _CLIENT_ID, _IP):
            words = f"Unhandled client quota entity type: {kind}"
            raise Refusal(ErrorCode.INVALID_REQUEST, words)
        if name == "":
            raise Refusal(ErrorCode.INVALID_REQUEST, f"Empty {kind} not supported")
    names = dict(entity)
    assert len(names) == len(entity), entity
    if _IP not in names:
        return _USER_QUOTAS
    if len(names) > 1:
        words = (
            "Invalid quota entity combination, IP entity should"
            "not be combined with User or ClientId"
        )
        raise Refusal(ErrorCode.INVALID_REQUEST, words)
    if not _is_address(names[_IP]):
        words = f"{names[_IP]} is not a valid IP or resolvable host."
        raise Refusal(ErrorCode.INVALID_REQUEST, words)
    return _IP_QUOTAS


def _is_address(name: str | None) -> bool:
    """Return whether a name is an address, or the default; host names are not resolved."""
    if name is None:
        return True
    try:
        return bool(ip_address(name))
    except ValueError:
        return False


def _check_value(allowed: Mapping[str, float], key: str, value: float) -> None:
    if key not in allowed:
        raise Refusal(ErrorCode.INVALID_REQUEST, f"Invalid configuration key {key}")
    if isnan(value) or value <= 0:
        raise Refusal(ErrorCode.INVALID_REQUEST, f"Quota {key} must be greater than 0")
    largest = allowed[key]
    if largest == inf:
        return
    assert largest in _KINDS, largest
    if value > largest:
        words = f"Proposed value for {key} is too large for {_KINDS[largest]}."
        raise Refusal(ErrorCode.INVALID_REQUEST, words)
    if abs(fmod(value, 1)) > _FRACTION_MAX:
        raise Refusal(ErrorCode.INVALID_REQUEST, f"{key} cannot be a fractional value.")


def _record(entity: QuotaEntity, key: str, value: float, *, remove: bool) -> VersionedRecord:
    parts = [EntityData(entity_type=kind, entity_name=name) for kind, name in entity]
    assert parts, key
    return VersionedRecord(ClientQuotaRecord(entity=parts, key=key, value=value, remove=remove))
