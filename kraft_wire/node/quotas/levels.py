"""Which quota of a kind applies to a client, and which clients share one meter (KIP-55, KIP-546).

If quotas of a kind exist at one level only (users, client ids, or pairs of both) each client is
measured at this level. Otherwise its level is that of the first quota found: (user, client id),
(user, default client id), (user), (default user, client id), (default user, default client id),
(default user), then the client id's. The type of a principal does not count.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Final, TypeAlias

from kraft_wire.metadata.authorizer.principal import host_text
from kraft_wire.metadata.image import QuotaEntity

__all__ = [
    "CONSUMER",
    "KINDS",
    "MUTATION",
    "PRODUCER",
    "REQUEST",
    "Levels",
    "Scope",
    "has_clients",
    "levels_of",
    "rates_of_addresses",
]

Scope: TypeAlias = tuple[str, str]
"""User and client id of a meter; empty where the meter is that of all."""

PRODUCER: Final = "producer_byte_rate"
CONSUMER: Final = "consumer_byte_rate"
REQUEST: Final = "request_percentage"
MUTATION: Final = "controller_mutation_rate"
CONNECTIONS: Final = "connection_creation_rate"
KINDS: Final = (PRODUCER, CONSUMER, REQUEST, MUTATION)

_Part: TypeAlias = str | bool | None
"""A name, None for the default entity, False without this part."""
_ADDRESS: Final = "ip"
_ABSENT: Final = False
_DEFAULT: Final = None


class Levels:
    """The quotas of one kind."""

    __slots__ = ("_limits", "_scope_of")

    def __init__(self) -> None:
        self._limits: dict[tuple[_Part, _Part], float] = {}
        self._scope_of = self._of_client

    @property
    def is_enabled(self) -> bool:
        """Whether there is any quota; without one nothing is measured."""
        return bool(self._limits)

    def scope(self, user: str, client_id: str) -> Scope:
        """Return the meter that a client shares with others."""
        return self._scope_of(user, client_id)

    def limit(self, scope: Scope) -> float | None:
        """Return the bound of a meter; None without one."""
        user, client_id = scope
        places: tuple[tuple[_Part, _Part], ...] = ()
        if user and client_id:
            places = (
                (user, client_id),
                (user, _DEFAULT),
                (_DEFAULT, client_id),
                (_DEFAULT, _DEFAULT),
            )
        elif user:
            places = ((user, _ABSENT), (_DEFAULT, _ABSENT))
        elif client_id:
            places = ((_ABSENT, client_id), (_ABSENT, _DEFAULT))
        for place in places:
            found = self._limits.get(place)
            if found is not None:
                return found
        return None

    def add(self, user: _Part, client_id: _Part, bound: float) -> None:
        """Add a quota; `settle` must follow."""
        self._limits[user, client_id] = bound

    def settle(self) -> None:
        """Choose how clients are measured, now that all quotas are known."""
        forms = {(user is not _ABSENT, client is not _ABSENT) for user, client in self._limits}
        if len(forms) > 1:
            self._scope_of = self._of_found
        elif (True, False) in forms:
            self._scope_of = self._of_user
        elif (True, True) in forms:
            self._scope_of = self._of_pair

    def _of_client(self, user: str, client_id: str) -> Scope:
        return "", client_id

    def _of_user(self, user: str, client_id: str) -> Scope:
        return user, ""

    def _of_pair(self, user: str, client_id: str) -> Scope:
        return user, client_id

    def _of_found(self, user: str, client_id: str) -> Scope:
        """Return the level of the first quota found."""
        limits = self._limits
        for each in (user, _DEFAULT):
            if (each, client_id) in limits or (each, _DEFAULT) in limits:
                return user, client_id
            if (each, _ABSENT) in limits:
                return user, ""
        return "", client_id


def levels_of(quotas: Mapping[QuotaEntity, Mapping[str, float]]) -> dict[str, Levels]:
    """Return the quotas of users and client ids of an image, by kind."""
    levels = {kind: Levels() for kind in KINDS}
    for entity, values in quotas.items():
        parts = dict(entity)
        user: _Part = parts.get("user", _ABSENT)
        client_id: _Part = parts.get("client-id", _ABSENT)
        if user is _ABSENT and client_id is _ABSENT:
            continue  # of an address
        for kind, bound in values.items():
            if kind in levels:
                levels[kind].add(user, client_id, bound)
    for each in levels.values():
        each.settle()
    return levels


def has_clients(quotas: Mapping[QuotaEntity, Mapping[str, float]]) -> bool:
    """Return whether an image has quotas of users or client ids, not only of addresses."""
    return any(entity[0][0] != _ADDRESS for entity in quotas)


def rates_of_addresses(
    quotas: Mapping[QuotaEntity, Mapping[str, float]],
) -> dict[str | None, int]:
    """Return the connections per second of addresses of an image; None: of all others (KIP-612).

    An address is as `host_text` has it. A host name, which only Kafka's controller records, has no
    effect here.
    """
    rates: dict[str | None, int] = {}
    for entity, values in quotas.items():
        kind, name = entity[0]
        if kind == _ADDRESS and CONNECTIONS in values:
            with suppress(ValueError):
                rates[None if name is None else host_text(name)] = int(values[CONNECTIONS])
    return rates
