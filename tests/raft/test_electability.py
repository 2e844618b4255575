"""Wherever a leader can be elected one is: each role asked for a vote, membership and lost leader.

Replica 1 led epochs 1 and 3 and is gone in some way. Replica 2 has the whole log and may win, with
the vote of replica 3: the two are a majority of the committed voters. Roles and logs are set up on
disks and by single messages. Then the quorum runs freely, and one of its replicas must lead a later
epoch within a bound of virtual time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from kraft_wire.model import ElectionState, LeaderEpoch, ReplicaId, ReplicaKey
from kraft_wire.raft.effects import SendRequest
from kraft_wire.raft.events import ResignRequested, ResponseReceived
from kraft_wire.raft.roles import Candidate, Follower, Leader, Prospective, Resigned, Unattached
from kraft_wire.raft.timing import RaftTiming
from kraft_wire.raft.voters import VoterSet
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.fetch import FetchResponse
from kraft_wire.wire.generated.kraft_version_record import KRaftVersionRecord
from kraft_wire.wire.generated.leader_change_message import LeaderChangeMessage
from kraft_wire.wire.generated.vote import VoteRequest
from kraft_wire.wire.message import Message
from tests.raft.cluster import Cluster, Host, Setup, directory_id, voter_node
from tests.raft.memory import Batch
from tests.raft.small import vote_response

LOST, EARLIER, LATER = LeaderEpoch(3), LeaderEpoch(2), LeaderEpoch(4)
"""The epoch whose leader is gone, one that the asked replica may have led, one without a leader."""
GONE, BEST, ASKED, FORMER = 1, 2, 3, 4
"""The lost leader, the replica with the best log, the one that is asked, and a removed voter."""
TIMING = RaftTiming(
    election_timeout_ms=100,
    fetch_timeout_ms=200,
    election_backoff_max_ms=100,
    request_timeout_ms=100,
    retry_backoff_ms=50,
    fetch_max_wait_ms=100,
)
WITHIN_MS = 20 * (TIMING.fetch_timeout_ms + 2 * TIMING.election_timeout_ms)


def voters_of(*members: int | tuple[int, int]) -> VoterSet:
    """A voter set; a pair names the generation of a replica's directory."""
    pairs = [(one, 0) if isinstance(one, int) else one for one in members]
    return VoterSet.of(voter_node(node_id, directory_id(node_id, at)) for node_id, at in pairs)


@dataclass(frozen=True)
class Membership:
    """What the committed log says, and what the asked replica's log says."""

    name: str
    committed: VoterSet
    known: VoterSet
    """The set before, and the last one in the log of the asked replica where that lags."""
    lags: bool = True
    """Whether the asked replica's log ends before the record of the committed set."""
    is_static: bool = False
    own_tail: VoterSet | None = None
    """A set that the asked replica appended as a leader of epoch 2, and nobody else has."""

    @property
    def is_known_voter(self) -> bool:
        """Whether the asked replica takes itself for a voter."""
        own = ReplicaKey(ReplicaId(ASKED), directory_id(ASKED))
        return (self.own_tail or self.known).is_voter(own)


ALL = voters_of(GONE, BEST, ASKED)
MEMBERSHIPS = [
    Membership("the same set", ALL, ALL, lags=False),
    Membership("the same set, a shorter log", ALL, ALL),
    Membership("a static set", ALL, ALL, lags=False, is_static=True),
    Membership("own addition unknown", ALL, voters_of(GONE, BEST)),
    Membership("candidate's addition unknown", ALL, voters_of(GONE, ASKED)),
    Membership("a removal unknown", ALL, voters_of(GONE, BEST, ASKED, FORMER)),
    Membership("leader's removal unknown", voters_of(BEST, ASKED), ALL),
    Membership("leader removed", voters_of(BEST, ASKED), ALL, lags=False),
    Membership("candidate's other directory", ALL, voters_of(GONE, (BEST, 9), ASKED)),
    Membership("leader's other directory", ALL, voters_of((GONE, 9), BEST, ASKED)),
    Membership("own other directory", ALL, voters_of(GONE, BEST, (ASKED, 9))),
    Membership("own removal not committed", ALL, ALL, own_tail=voters_of(GONE, BEST)),
]


class Scene:
    """One cell: the three replicas before anything happens."""

    def __init__(self, membership: Membership) -> None:
        self.membership = membership
        setup = Setup(
            voters=(GONE, BEST, ASKED), observers=(FORMER,), is_dynamic=True, timing=TIMING
        )
        self.cluster = Cluster(1, setup)
        self.asked_to_send: list[SendRequest] = []
        self.append(GONE, 1, LeaderChangeMessage(leader_id=GONE))
        if not membership.is_static:
            self.append(GONE, 1, KRaftVersionRecord(kraft_version=1), membership.known.to_record())
        early = list(self.host(GONE).disk.log.batches)
        if GONE in membership.committed.nodes:
            if not membership.is_static:
                self.append(GONE, 1, membership.committed.to_record())
            self.lead(GONE, LOST)
        else:
            self.lead(GONE, LOST)
            self.change_voters(GONE)
        whole = list(self.host(GONE).disk.log.batches)
        self.copy(BEST, whole)
        self.copy(ASKED, early if membership.lags else whole)
        if membership.own_tail is not None:
            self.append(ASKED, EARLIER, membership.own_tail.to_record())
            for _ in range(5):
                self.append(ASKED, EARLIER, LeaderChangeMessage(leader_id=ASKED))
            assert self.host(ASKED).disk.log.log_end_offset > whole[-1].end_offset

    def host(self, node_id: int) -> Host:
        return self.cluster.hosts[node_id]

    def copy(self, node_id: int, batches: list[Batch]) -> None:
        log = self.host(node_id).disk.log
        for batch in batches:
            log.append(batch)
        log.flush()

    def append(self, node_id: int, epoch: int, *controls: Message) -> None:
        end = self.host(node_id).disk.log.log_end_offset
        self.copy(node_id, [self.cluster.shelf.new_batch(end, epoch, (), controls)])

    def start(self, node_id: int, election: ElectionState) -> Host:
        """Start a replica with what its disk says of elections; what it sends is held back."""
        host = self.host(node_id)
        host.disk.election = election
        with self.silence():
            host.start()
        return host

    def silence(self) -> Silence:
        return Silence(self)

    def lead(self, node_id: int, epoch: LeaderEpoch) -> None:
        """Have a replica win an election of an epoch, by votes of everybody."""
        own = self.host(node_id).key
        host = self.start(node_id, ElectionState(epoch, ReplicaId(-1), *own))
        assert isinstance(host.quorum().quorum.role, Candidate)
        asked = [one for one in self.asked_to_send if isinstance(one.request, VoteRequest)]
        with self.silence():
            for sent in asked:
                if not isinstance(host.quorum().quorum.role, Leader):
                    host.take(ResponseReceived(sent.request_id, vote_response(epoch, granted=True)))
        assert isinstance(host.quorum().quorum.role, Leader)

    def change_voters(self, node_id: int) -> None:
        """Have a leader append the committed set."""
        host = self.host(node_id)
        quorum, voters = host.quorum().quorum, self.membership.committed
        end = host.disk.log.log_end_offset
        self.append(node_id, quorum.epoch, voters.to_record())
        quorum.voters.appended_voters(end, voters)

    def winner(self) -> Host | None:
        """A leader of an epoch after the lost one that may act as such."""
        found = [
            host
            for host in self.cluster.running()
            if isinstance(host.quorum().quorum.role, Leader)
            and host.leads_epoch is not None
            and host.leads_epoch > LOST
        ]
        return found[0] if found else None


class Silence:
    """While it lasts nothing is sent; requests are kept in `asked_to_send` of the scene."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene

    def __enter__(self) -> None:
        self.scene.asked_to_send = []
        kept = self.scene.asked_to_send
        self.scene.cluster.send_request = lambda host, sent: kept.append(sent)  # type: ignore[method-assign]

    def __exit__(self, *failure: object) -> None:
        del self.scene.cluster.send_request  # type: ignore[method-assign]  # the class's own again


# -- roles of the asked replica --------------------------------------------------------------------


def unattached(scene: Scene, node_id: int, epoch: LeaderEpoch) -> None:
    scene.start(node_id, ElectionState(epoch))


def voted(scene: Scene, node_id: int, epoch: LeaderEpoch) -> None:
    scene.start(node_id, ElectionState(epoch, ReplicaId(-1), *scene.host(GONE).key))


def follower(scene: Scene, node_id: int, epoch: LeaderEpoch) -> None:
    scene.start(node_id, ElectionState(epoch, ReplicaId(GONE)))


def follower_that_fetched(scene: Scene, node_id: int, epoch: LeaderEpoch) -> None:
    follower(scene, node_id, epoch)
    role = scene.host(node_id).quorum().quorum.role
    if isinstance(role, Follower):
        role.has_fetched = True


def follower_that_voted(scene: Scene, node_id: int, epoch: LeaderEpoch) -> None:
    own_vote = ElectionState(epoch, ReplicaId(GONE), *scene.host(node_id).key)
    scene.start(node_id, own_vote)
    role = scene.host(node_id).quorum().quorum.role
    if isinstance(role, Follower):
        role.has_fetched = True


def prospective(scene: Scene, node_id: int, epoch: LeaderEpoch) -> None:
    follower(scene, node_id, epoch)
    with scene.silence():
        host = scene.host(node_id)
        scene.cluster.run_until(lambda: isinstance(host.quorum().quorum.role, Prospective), 1_000)


def candidate(scene: Scene, node_id: int, epoch: LeaderEpoch) -> None:
    scene.start(node_id, ElectionState(epoch, ReplicaId(-1), *scene.host(node_id).key))


def leader(scene: Scene, node_id: int, epoch: LeaderEpoch) -> None:
    scene.lead(node_id, epoch)


def resigned(scene: Scene, node_id: int, epoch: LeaderEpoch) -> None:
    scene.start(node_id, ElectionState(epoch, ReplicaId(node_id)))


Enter = Callable[[Scene, int, LeaderEpoch], None]
ROLES: dict[Enter, type] = {
    unattached: Unattached,
    voted: Unattached,
    follower: Follower,
    follower_that_fetched: Follower,
    follower_that_voted: Follower,
    prospective: Prospective,
    candidate: Candidate,
    leader: Leader,
    resigned: Resigned,
}
ONLY_VOTERS = (prospective, candidate, leader)
ONLY_EARLIER = (leader, resigned)


# -- ways in which the leader is gone --------------------------------------------------------------


def crashed(scene: Scene) -> None:
    scene.host(GONE).crash()


def restarted(scene: Scene) -> None:
    scene.host(GONE).crash()
    scene.host(GONE).start()


def lost_its_disk(scene: Scene) -> None:
    scene.host(GONE).wipe()
    scene.host(GONE).start()


def cut_off(scene: Scene) -> None:
    scene.cluster.cut([GONE], [BEST, ASKED, FORMER])


def is_not_heard(scene: Scene) -> None:
    scene.cluster.cut([GONE], [BEST, ASKED, FORMER], one_way=True)


def hears_nobody(scene: Scene) -> None:
    scene.cluster.cut([BEST, ASKED, FORMER], [GONE], one_way=True)


def resigns(scene: Scene) -> None:
    scene.cluster.take(GONE, ResignRequested(LOST))


def resigns_unheard(scene: Scene) -> None:
    scene.cluster.cut([GONE], [BEST, ASKED, FORMER])
    scene.cluster.take(GONE, ResignRequested(LOST))
    scene.cluster.heal()


def answers_with(scene: Scene, error: ErrorCode) -> None:
    """It leads and counts who fetches, and answers with an error: its log cannot be read."""
    cluster = scene.cluster
    real = cluster.send_reply

    def send_reply(host: Host, reply_to: object, response: Message) -> None:
        if host.id == GONE and isinstance(response, FetchResponse) and response.responses:
            partition = response.responses[0].partitions[0]
            partition.records, partition.error_code = b"", error
        real(host, reply_to, response)

    cluster.send_reply = send_reply  # type: ignore[method-assign]


def refuses_fetches(scene: Scene) -> None:
    answers_with(scene, ErrorCode.UNKNOWN_SERVER_ERROR)


def denies_that_it_leads(scene: Scene) -> None:
    answers_with(scene, ErrorCode.NOT_LEADER_OR_FOLLOWER)


def leads_an_older_epoch(scene: Scene) -> None:
    """It leads on, and the best replica has been a candidate of the next epoch."""
    host = scene.host(BEST)
    host.crash()
    scene.start(BEST, ElectionState(LATER, ReplicaId(-1), *host.key))


WAYS: list[Callable[[Scene], None]] = [
    crashed,
    restarted,
    lost_its_disk,
    cut_off,
    is_not_heard,
    hears_nobody,
    resigns,
    resigns_unheard,
    refuses_fetches,
    denies_that_it_leads,
    leads_an_older_epoch,
]


Cell = tuple[Membership, Enter, Enter, LeaderEpoch]
"""Membership, the role of the best replica, role and epoch of the asked one."""


def cells() -> Iterator[Cell]:
    for membership in MEMBERSHIPS:
        for enter in ROLES:
            if enter in ONLY_VOTERS and not membership.is_known_voter:
                continue
            epochs = [EARLIER] if membership.lags else []
            epochs += [] if enter in ONLY_EARLIER else [LOST, LATER]
            for epoch in epochs:
                yield membership, follower_that_fetched, enter, epoch
                if epoch == LOST:
                    yield membership, unattached, enter, epoch


def described(cell: Cell) -> str:
    membership, best, enter, epoch = cell
    return f"{membership.name}: {best.__name__} asks {enter.__name__} in epoch {epoch}"


def entered(cell: Cell) -> Scene:
    membership, best, enter, epoch = cell
    scene = Scene(membership)
    best(scene, BEST, LOST)
    enter(scene, ASKED, epoch)
    return scene


def unelected(way: Callable[[Scene], None]) -> list[str]:
    """The cells in which nobody is elected."""
    found = []
    for cell in cells():
        scene = entered(cell)
        way(scene)
        if not scene.cluster.run_until(lambda: scene.winner() is not None, WITHIN_MS):  # noqa: B023  # called at once
            found.append(described(cell))
    return found


@pytest.mark.parametrize("enter", ROLES, ids=lambda enter: enter.__name__)
def test_asked_replica_is_in_every_role(enter: Enter) -> None:
    """The table is about what it says: each role is reached, by voters and by observers."""
    reached = {}
    for cell in cells():
        if cell[2] is enter:
            quorum = entered(cell).host(ASKED).quorum().quorum
            if type(quorum.role) is ROLES[enter]:
                reached[quorum.is_voter] = True
    assert reached[True]
    assert enter in ONLY_VOTERS or reached[False]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_leader_is_elected_wherever_a_majority_is_alive(way: Callable[[Scene], None]) -> None:
    assert unelected(way) == []


def test_replica_that_only_its_own_record_removes_is_waited_for() -> None:
    """The known limit, as in 4.3.1: KIP-853 lets no observer campaign (docs/DEVIATIONS.md).

    The asked replica led epoch 4 and appended its own removal, which nobody else has. It refuses
    shorter logs and does not campaign. Two others are a majority without it.
    """
    scene = Scene(Membership("own removal, the best log", ALL, ALL, lags=False))
    scene.append(ASKED, LATER, LeaderChangeMessage(leader_id=ASKED))
    scene.append(ASKED, LATER, voters_of(GONE, BEST).to_record())
    unattached(scene, BEST, LATER)
    resigned(scene, ASKED, LATER)
    crashed(scene)
    assert not scene.cluster.run_until(lambda: scene.winner() is not None, WITHIN_MS)
    scene.host(GONE).start()
    assert scene.cluster.run_until(lambda: scene.winner() is not None, WITHIN_MS)
