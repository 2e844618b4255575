"""Sends requests to the leader of a metadata quorum: what the `quorum` verbs need, as plain values.

Any controller or broker serves as a start. A controller that is not the leader refuses; its
DescribeCluster returns the others, which are tried in turn until one leads or the timeout expires.
An election costs time and causes no error. KIP-595 (DescribeQuorum), KIP-853 (AddRaftVoter,
RemoveRaftVoter), KIP-919 (asking controllers directly).

Not here: the output of answers (`quorum_views`).
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from kraft_wire.cli.bootstrap import addresses_of, given_or_default
from kraft_wire.cli.quorum.facts import QuorumFacts, facts_of
from kraft_wire.client import BrokerConnection, BrokerConnectionError
from kraft_wire.model import Uuid
from kraft_wire.wire.error_names import error_name
from kraft_wire.wire.generated.add_raft_voter import (
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    Listener,
)
from kraft_wire.wire.generated.describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from kraft_wire.wire.generated.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    PartitionData,
    TopicData,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.remove_raft_voter import (
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
)
from kraft_wire.wire.message import Message, UnencodableMessage

__all__ = ["EntryPoint", "NewVoter", "OutcomeUnknown", "QuorumAdmin", "QuorumRefused", "read_entry"]

R = TypeVar("R")
C = TypeVar("C", AddRaftVoterResponse, RemoveRaftVoterResponse)

_METADATA_TOPIC: Final = "__cluster_metadata"
_BROKERS, _CONTROLLERS = 1, 2
_CHANGE_SECONDS: Final = 35.0
"""A little more than the leader may take to let a voter catch up."""
_CHANGE_TIMEOUT_MS: Final = 30_000
_PAUSE_SECONDS: Final = 0.1
_ELSEWHERE: Final = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.FENCED_LEADER_EPOCH,
    }
)


class QuorumRefused(Exception):
    """The quorum refused the change; the text is one line."""

    def __init__(self, what: str, error_code: int, message: str | None) -> None:
        name = error_name(error_code)
        says_more = message and message != name
        super().__init__(f"{what}: {name}" + (f": {message}" if says_more else ""))


class OutcomeUnknown(Exception):
    """The answer to a change got lost; the text is one line."""


class _LeadsNot(Exception):
    """The node of the request does not lead."""


@dataclass(frozen=True, slots=True)
class EntryPoint:
    """Where asking begins."""

    addresses: tuple[str, ...]
    are_controllers: bool
    """Whether these are listeners of controllers, else of brokers."""


@dataclass(frozen=True, slots=True)
class NewVoter:
    """A controller that is to vote."""

    node_id: int
    directory_id: Uuid
    listeners: tuple[tuple[str, str, int], ...]
    """Name, host and port of each."""


def read_entry(controllers: str | None, servers: str | None) -> EntryPoint:
    """Read the two options; without either it is the default. Errors: BrokerConnectionError."""
    controllers, servers = given_or_default(controllers, servers)
    addresses = addresses_of(controllers or servers or "")
    return EntryPoint(addresses, are_controllers=controllers is not None)


class QuorumAdmin:
    """Sends requests to one quorum, first to its last known leader."""

    def __init__(
        self, entry: EntryPoint, *, patience_s: float = 10.0, connection_s: float = 3.0
    ) -> None:
        """`patience_s` is how long a leader is looked for, `connection_s` one answer waited for."""
        self._entry = entry
        self._patience_s = patience_s
        self._connection_s = connection_s
        self._leader: str | None = None
        self._learnt: tuple[str, ...] = ()

    def describe(self) -> QuorumFacts:
        """Return the quorum as its leader describes it."""
        return self._at_leader(self._describe)

    def add_voter(self, voter: NewVoter) -> None:
        """Add a voter that has caught up; returns when the change is committed."""
        request = AddRaftVoterRequest(
            cluster_id=None,
            timeout_ms=_CHANGE_TIMEOUT_MS,
            voter_id=voter.node_id,
            voter_directory_id=voter.directory_id,
            listeners=[
                Listener(name=name, host=host, port=port) for name, host, port in voter.listeners
            ],
            ack_when_committed=True,
        )
        what = f"voter {voter.node_id} was not added"
        self._at_leader(lambda each: self._change(each, request, AddRaftVoterResponse, what))

    def remove_voter(self, node_id: int, directory_id: Uuid) -> None:
        """Remove a voter."""
        request = RemoveRaftVoterRequest(
            cluster_id=None, voter_id=node_id, voter_directory_id=directory_id
        )
        what = f"voter {node_id} was not removed"
        self._at_leader(lambda each: self._change(each, request, RemoveRaftVoterResponse, what))

    # -- finding the leader ----------------------------------------------------------------------

    def _at_leader(self, ask: Callable[[BrokerConnection], R]) -> R:
        """Send a request to the leader. Errors: BrokerConnectionError without a leader in time,
        QuorumRefused.
        """
        deadline = time.monotonic() + self._patience_s
        reason: Exception | None = None
        while True:
            candidates = self._candidates()
            for address in candidates:
                try:
                    with BrokerConnection(address, timeout_s=self._connection_s) as connection:
                        answer = self._asked(connection, ask)
                except (BrokerConnectionError, _LeadsNot) as problem:
                    reason = problem
                else:
                    self._leader = address
                    return answer
            self._leader = None
            if set(self._candidates()) > set(candidates):
                continue  # new candidates were named
            if time.monotonic() >= deadline:
                within = f" in {self._patience_s:g} s" if self._patience_s else ""
                raise BrokerConnectionError(f"no leader found{within}: {reason}")
            time.sleep(_PAUSE_SECONDS)

    def _asked(self, connection: BrokerConnection, ask: Callable[[BrokerConnection], R]) -> R:
        """Send a request to one node; if it does not lead, get the other nodes from it."""
        try:
            return ask(connection)
        except _LeadsNot:
            self._learn(connection)
            raise

    def _candidates(self) -> list[str]:
        """Return the addresses to try, in order."""
        leader = [] if self._leader is None else [self._leader]
        return list(dict.fromkeys([*leader, *self._learnt, *self._entry.addresses]))

    def _learn(self, connection: BrokerConnection) -> None:
        """Remember the other nodes, the reported leader first."""
        try:
            answer = self._described_cluster(connection)
        except (BrokerConnectionError, UnencodableMessage, QuorumRefused):
            return
        found = sorted(answer.brokers, key=lambda each: each.broker_id != answer.controller_id)
        self._learnt = tuple(f"{each.host}:{each.port}" for each in found)

    def _described_cluster(self, connection: BrokerConnection) -> DescribeClusterResponse:
        request = DescribeClusterRequest(
            endpoint_type=_CONTROLLERS if self._entry.are_controllers else _BROKERS
        )
        answer = connection.send(request, DescribeClusterResponse)
        _check(
            "the controller did not describe the cluster", answer.error_code, answer.error_message
        )
        return answer

    # -- requests --------------------------------------------------------------------------------

    def _describe(self, connection: BrokerConnection) -> QuorumFacts:
        topic = TopicData(topic_name=_METADATA_TOPIC, partitions=[PartitionData()])
        answer = connection.send(DescribeQuorumRequest(topics=[topic]), DescribeQuorumResponse)
        what = "the controller did not describe the quorum"
        _check(what, answer.error_code, answer.error_message)
        for found in answer.topics:
            for partition in found.partitions:
                _check(what, partition.error_code, partition.error_message)
                return facts_of(self._described_cluster(connection).cluster_id, answer, partition)
        raise BrokerConnectionError("the response describes no quorum")

    def _change(
        self, connection: BrokerConnection, request: Message, response: type[C], what: str
    ) -> None:
        """Ask for a change, which must not be asked for twice where the answer gets lost."""
        version = connection.version_of(request)
        connection.wait_at_most(_CHANGE_SECONDS)
        try:
            answer = connection.send(request, response, version=version)
        except BrokerConnectionError as problem:
            raise OutcomeUnknown(
                f"{problem}; it is unknown whether the voters changed: use describe"
            ) from problem
        _check(what, answer.error_code, answer.error_message)


def _check(what: str, error_code: int, message: str | None) -> None:
    if error_code in _ELSEWHERE:
        raise _LeadsNot(message or error_name(error_code))
    if error_code:
        raise QuorumRefused(what, error_code, message)
