"""One member of a classic group, as its JoinGroup requests describe it (KIP-62, KIP-345)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from kraft_wire.broker.context import ReplyTo
from kraft_wire.broker.groups.object_sizes import MEMBER_BYTES

__all__ = ["Member", "ParkedRequest", "protocols_bytes"]


class ParkedRequest(NamedTuple):
    """A parked request, and the version of its answer."""

    reply_to: ReplyTo
    api_version: int


def protocols_bytes(protocols: Mapping[str, bytes]) -> int:
    """Return the size of a member's own data."""
    return sum(len(name) + len(metadata) for name, metadata in protocols.items())


@dataclass(slots=True)
class Member:
    """A member with an id; members that were only given an id are the group's `pending_members`."""

    member_id: str
    group_instance_id: str | None
    """Not None for a static member, which keeps its assignment while it restarts."""
    client_id: str
    client_host: str
    """The address with a leading slash, as Apache's coordinator writes it."""
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocol_type: str
    protocols: Mapping[str, bytes]
    """Name to metadata, in the order in which the member prefers them."""
    assignment: bytes = b""
    awaiting_join: ParkedRequest | None = field(default=None)
    awaiting_sync: ParkedRequest | None = field(default=None)
    is_new: bool = False
    """True until its first generation: it does not know its id yet, so it cannot heartbeat."""

    @property
    def is_static(self) -> bool:
        """Whether the member has a group instance id."""
        return self.group_instance_id is not None

    @property
    def size_bytes(self) -> int:
        """Memory that the member takes, as `object_sizes` counts it."""
        return MEMBER_BYTES + protocols_bytes(self.protocols) + len(self.assignment)

    @property
    def satisfies_heartbeat(self) -> bool:
        """Whether a parked request counts as a heartbeat.

        A new member's request does not count: its client may be gone, which would go unnoticed
        until the rebalance ends.
        """
        if self.is_new:
            return False
        return self.awaiting_join is not None or self.awaiting_sync is not None

    def matches(self, protocols: Mapping[str, bytes]) -> bool:
        """Whether a JoinGroup request repeats the member's protocols, in the same order."""
        return list(self.protocols.items()) == list(protocols.items())

    def vote(self, candidates: Mapping[str, None]) -> str:
        """Return the candidate that the member prefers; it supports at least one of them."""
        for name in self.protocols:
            if name in candidates:
                return name
        raise AssertionError(f"{self.member_id} supports none of {candidates}")
