"""Look-ups in the registry: rows by key, what each kind of listener serves, what is forwarded."""

from collections.abc import Mapping
from typing import Final

from kraft_wire.apis.api import Api, ListenerType, Owner, Versions
from kraft_wire.apis.rows import ROWS

__all__ = [
    "APIS",
    "FORWARDABLE",
    "FORWARDED",
    "advertised",
    "key_of",
    "owned",
    "served",
]

APIS: Final[Mapping[int, Api]] = {each.key: each for each in ROWS}
"""Every API of the release by key, in key order; also those that are not served."""

_BY_NAME: Final = {each.name: each for each in ROWS}


def key_of(name: str) -> int:
    """Return the key of an API by Kafka's name; KeyError for an unknown one."""
    return _BY_NAME[name].key


def served(listener: ListenerType) -> dict[int, Versions]:
    """Return key and versions of what a kind of listener serves, in key order."""
    return {each.key: each.versions for each in ROWS if each.owner_on(listener) is not None}


def owned(owner: Owner, listener: ListenerType) -> dict[int, Versions]:
    """Return key and versions of what one part of a node answers on a kind of listener."""
    return {each.key: each.versions for each in ROWS if each.owner_on(listener) is owner}


def advertised() -> dict[int, Versions]:
    """Return key and versions as ApiVersions shows them on a broker's listener, in key order."""
    shown = served(ListenerType.BROKER)
    return {key: (APIS[key].advertised_min, highest) for key, (_, highest) in shown.items()}


FORWARDED: Final[Mapping[int, Versions]] = {
    **owned(Owner.CONTROLLER, ListenerType.BROKER),
    **owned(Owner.RAFT, ListenerType.BROKER),
}
"""APIs that clients send to any broker, and the active controller answers."""

FORWARDABLE: Final = frozenset(each.key for each in ROWS if each.is_forwardable)
"""Keys that may be in an Envelope; a controller refuses the others there."""
