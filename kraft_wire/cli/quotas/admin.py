"""Requests about quotas: describe and alter (KIP-546)."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from kraft_wire.client import BrokerConnection
from kraft_wire.client.refused import AdminRefused
from kraft_wire.wire.generated.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    EntryData,
    OpData,
)
from kraft_wire.wire.generated.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)

__all__ = [
    "CLIENT",
    "IP",
    "USER",
    "Entity",
    "Quotas",
    "alter_quotas",
    "described_quotas",
    "entity_text",
]

USER, CLIENT, IP = "user", "client-id", "ip"
Entity = dict[str, str | None]
"""Names by type, in the order above; None is the default entity."""

_EXACT, _DEFAULT = 0, 1
_ORDER: Final = (USER, CLIENT, IP)


class Quotas(NamedTuple):
    """The quotas of one entity."""

    entity: Entity
    values: dict[str, float]


def described_quotas(
    connection: BrokerConnection, entity: Mapping[str, str | None]
) -> list[Quotas]:
    """Return the quotas of one entity, or of all if nothing is named."""
    components = [
        ComponentData(entity_type=kind, match_type=_DEFAULT if name is None else _EXACT, match=name)
        for kind, name in entity.items()
    ]
    request = DescribeClientQuotasRequest(components=components, strict=bool(components))
    answer = connection.send(request, DescribeClientQuotasResponse)
    if answer.error_code:
        raise AdminRefused("quotas", answer.error_code, answer.error_message)
    found = []
    for entry in answer.entries or ():
        names = {each.entity_type: each.entity_name for each in entry.entity}
        kinds = [*(each for each in _ORDER if each in names), *sorted(names.keys() - set(_ORDER))]
        values = {each.key: each.value for each in entry.values}
        in_order = {key: values[key] for key in sorted(values)}
        found.append(Quotas({kind: names[kind] for kind in kinds}, in_order))
    return sorted(found, key=lambda each: entity_text(each.entity))


def alter_quotas(
    connection: BrokerConnection,
    entity: Mapping[str, str | None],
    values: Mapping[str, float],
    removed: Sequence[str],
) -> None:
    """Set and remove quotas of one entity."""
    named = [EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()]
    changes = [OpData(key=key, value=value, remove=False) for key, value in values.items()]
    changes += [OpData(key=key, value=0.0, remove=True) for key in removed]
    request = AlterClientQuotasRequest(
        entries=[EntryData(entity=named, ops=changes)], validate_only=False
    )
    for result in connection.send(request, AlterClientQuotasResponse).entries:
        if result.error_code:
            raise AdminRefused(entity_text(entity), result.error_code, result.error_message)


def entity_text(entity: Mapping[str, str | None]) -> str:
    """Return an entity as `user ann, client-id app`; a default one as `default user`."""
    words = (
        f"default {kind}" if name is None else f"{kind} {name}" for kind, name in entity.items()
    )
    return ", ".join(words)
