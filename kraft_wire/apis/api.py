"""One API key: a row of the registry.

Key, name, versions, listeners and module come from the schemas of the release. `rows` adds the
owner of the API here, whether it may be forwarded, whether it sets timers, and the rights it needs.
"""

from enum import Enum
from typing import NamedTuple

from kraft_wire.apis.rights import Need

__all__ = ["Api", "ListenerType", "Owner", "Versions"]

Versions = tuple[int, int]
"""Lowest and highest version, both inclusive."""


class ListenerType(Enum):
    """The two kinds of listener; values are the schemas' words."""

    BROKER = "broker"
    CONTROLLER = "controller"


class Owner(Enum):
    """Which part of a node answers an API."""

    BROKER = "broker"
    """A module of `broker/handlers`."""
    CONTROLLER = "controller"
    """A module of `controller`, on the active controller; elsewhere the request is forwarded."""
    RAFT = "raft"
    """The replica of the quorum; a broker forwards its clients' requests to the leader."""
    NODE = "node"
    """The node itself: APIs about its controller's listener."""


class Api(NamedTuple):
    """One API key."""

    key: int
    name: str
    """Kafka's name, without "Request"."""
    module: str
    """Base name of the generated module and of the handler."""
    versions: Versions
    """The stable versions of the release."""
    listeners: tuple[ListenerType, ...]
    """Where the release serves it."""
    owner: Owner | None
    """The part that answers it; None: it is not served."""
    controller_owner: Owner | None
    """The part that answers it on a controller's listener, if other than `owner`."""
    is_forwardable: bool
    """Whether a broker may put it into an Envelope (KIP-590)."""
    advertised_min: int
    """Lowest version in ApiVersions on a broker's listener; refused below `versions`."""
    needs: tuple[Need, ...]
    """The rights that Kafka asks for, step by step; `node.authorization` enforces them."""
    controller_needs: tuple[Need, ...] | None
    """The rights on a controller's listener, if other than `needs`."""

    def owner_on(self, listener: ListenerType) -> Owner | None:
        """Return the part that answers it on a kind of listener, None where it is not served."""
        if listener not in self.listeners:
            return None
        if listener is ListenerType.CONTROLLER and self.controller_owner is not None:
            return self.controller_owner
        return self.owner

    def needs_on(self, listener: ListenerType) -> tuple[Need, ...]:
        """Return the rights that it needs on a kind of listener."""
        if listener is ListenerType.CONTROLLER and self.controller_needs is not None:
            return self.controller_needs
        return self.needs
