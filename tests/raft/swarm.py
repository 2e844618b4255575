"""One seed, one bad day: the mix of faults is drawn first, then everything else.

Phase one runs under faults; phase two heals the network, restarts who is down and demands that the
quorum settles, then that it is stable and heals at once (`Day.drill`). `python -m tests.raft.swarm
FIRST LAST [EVENTS] [bad-disks | storm] [model]` runs seeds; `model` holds every step of a
replica against the model of the quorum.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from kraft_wire.model import ReplicaId, Uuid
from kraft_wire.raft.events import ResignRequested
from kraft_wire.raft.timing import RaftTiming
from kraft_wire.wire.generated.add_raft_voter import AddRaftVoterRequest
from kraft_wire.wire.generated.add_raft_voter import Listener as AddListener
from kraft_wire.wire.generated.remove_raft_voter import RemoveRaftVoterRequest
from tests.raft.cluster import CLUSTER_ID, LISTENER, Cluster, Host, Setup, address_of
from tests.raft.invariants import Broken, FetchTimeouts, Ledger, NamedLeaders, Patience

HEALED_MS = 60_000


@dataclass
class Faults:
    """Chances per thousand events, and of the network per message."""

    crash: int = 0
    half_crash: int = 0
    restart: int = 20
    cut: int = 0
    heal: int = 10
    wipe: int = 0
    snapshot: int = 0
    change: int = 0
    append: int = 100
    resign: int = 0


def drawn_setup(seed: int) -> tuple[Setup, Faults, tuple[float, float, int]]:
    """The mix of one seed: many rates are zero, so that others can do their work."""
    random_source = random.Random(f"{seed}/mix")
    count = random_source.choice((1, 2, 3, 3, 3, 4, 5))
    ids = list(range(1, count + 1))
    observers = tuple(range(count + 1, count + 1 + random_source.choice((0, 0, 1, 2))))
    is_dynamic = random_source.random() < 0.6
    timing = RaftTiming(
        election_timeout_ms=random_source.choice((50, 100, 300)),
        fetch_timeout_ms=random_source.choice((60, 150, 400)),
        election_backoff_max_ms=random_source.choice((20, 100)),
        request_timeout_ms=random_source.choice((40, 100, 300)),
        retry_backoff_ms=random_source.choice((2, 10)),
        fetch_max_wait_ms=random_source.choice((0, 5, 20)),
        fetch_max_bytes=random_source.choice((1, 16, 64)),
        fetch_snapshot_max_bytes=random_source.choice((1, 5, 100)),
    )
    setup = Setup(
        voters=tuple(ids),
        observers=observers,
        is_dynamic=is_dynamic,
        joins_by_itself=is_dynamic and random_source.random() < 0.4,
        brokers=observers[:1] if random_source.random() < 0.3 else (),
        old=tuple(one for one in ids if random_source.random() < 0.15),
        encodes=random_source.random() < 0.1,
        timing=timing,
        snapshot_bytes=random_source.choice((9, 24, 40)),
    )
    faults = Faults(
        crash=random_source.choice((0, 0, 2, 8)),
        half_crash=random_source.choice((0, 0, 3, 10)),
        restart=random_source.choice((5, 30, 100)),
        cut=random_source.choice((0, 0, 3, 10)),
        heal=random_source.choice((3, 20)),
        wipe=random_source.choice((0, 0, 1)) if is_dynamic and count >= 3 else 0,
        snapshot=random_source.choice((0, 5, 20)),
        change=random_source.choice((0, 5, 20)) if is_dynamic else 0,
        append=random_source.choice((20, 100, 200)),
        resign=random_source.choice((0, 0, 2)),
    )
    loss = random_source.choice((0.0, 0.0, 0.02, 0.15))
    doubled = random_source.choice((0.0, 0.0, 0.05, 0.2))
    return setup, faults, (loss, doubled, random_source.choice((2, 5, 40)))


def storm_setup(seed: int) -> tuple[Setup, Faults, tuple[float, float, int]]:
    """Elections without end: short timeouts, no pre-votes, everything lost, doubled and late."""
    random_source = random.Random(f"{seed}/storm")
    ids = tuple(range(1, random_source.choice((3, 3, 5)) + 1))
    timing = RaftTiming(
        election_timeout_ms=20,
        fetch_timeout_ms=40,
        election_backoff_max_ms=10,
        request_timeout_ms=20,
        retry_backoff_ms=2,
        fetch_max_wait_ms=random_source.choice((0, 5)),
        fetch_max_bytes=random_source.choice((1, 64)),
    )
    faults = Faults(
        crash=random_source.choice((0, 5, 30)),
        half_crash=random_source.choice((0, 5, 30)),
        restart=200,
        cut=random_source.choice((0, 10, 30)),
        heal=random_source.choice((10, 40)),
        append=random_source.choice((50, 200)),
    )
    old = ids if random_source.random() < 0.7 else ()
    setup = Setup(voters=ids, old=old, timing=timing)
    return setup, faults, (random_source.choice((0.0, 0.1)), random_source.choice((0.0, 0.3)), 25)


def with_bad_disks(setup: Setup, seed: int) -> Setup:
    """The same cluster over disks that flush slowly, and snapshots that arrive with wrong bits."""
    random_source = random.Random(f"{seed}/disks")
    return replace(
        setup,
        flush_ms=random_source.choice((1, 10, 60)),
        spoilt=random_source.choice((0.0, 0.05, 0.3)),
    )


class Day:
    """Runs one seed."""

    def __init__(
        self, seed: int, events: int = 2_000, *, storm: bool = False, bad_disks: bool = False
    ) -> None:
        setup, self.faults, (loss, doubled, delay_ms) = (storm_setup if storm else drawn_setup)(
            seed
        )
        if bad_disks:
            setup = with_bad_disks(setup, seed)
        self.seed, self.events = seed, events
        self.cluster = Cluster(seed, setup)
        self.cluster.links.lost, self.cluster.links.doubled = loss, doubled
        self.cluster.links.delay_ms = (1, delay_ms)
        self.ledger = Ledger(self.cluster)
        judges = [self.ledger, Patience(self.cluster), FetchTimeouts(), NamedLeaders()]
        self.cluster.judges += judges
        self.random_source = random.Random(f"{seed}/day")
        self.wiped: dict[int, bool] = {}

    def run(self) -> str:
        """Live through the day; the trace's hash. Broken where an invariant is."""
        cluster = self.cluster
        cluster.start()
        for _ in range(self.events):
            if not cluster.advance():
                break
            self.misfortune()
        self.heal()
        if self.can_elect() and not cluster.run_until(cluster.is_settled, HEALED_MS):
            states = [
                (h.id, type(h.quorum().quorum.role).__name__, h.quorum().quorum.epoch)
                for h in cluster.running()
            ]
            raise Broken(f"L1 settles: {states}")
        if self.can_elect():
            self.drill()
        return cluster.trace.hexdigest()

    def drill(self) -> None:
        """With nothing in the way: leaders stay, are replaced at once, and notice when cut off."""
        cluster, timing = self.cluster, self.cluster.setup.timing
        # Requests that the faults lost time out, and followers without an answer campaign.
        cluster.run(timing.request_timeout_ms + timing.fetch_timeout_ms)
        if not cluster.run_until(cluster.is_settled, HEALED_MS):
            raise Broken("L1 LeaderElected: not settled again")
        leader = cluster.leader()
        assert leader is not None, "settled without a leader"
        epoch = leader.quorum().quorum.epoch
        cluster.run(2 * timing.check_quorum_timeout_ms)
        if self._now_leads(epoch) is not leader:
            raise Broken(f"L5 StableLeader: {leader.id} in epoch {epoch}")
        cluster.take(leader.id, ResignRequested(epoch))
        # A successor was named, and the others wait. Alone, a leader waits for its own election
        # timeout; and where the waits are shorter than a round trip votes may be split.
        count = len(leader.quorum().quorum.voters.latest)
        are_apart = count > 1 and timing.election_backoff_max_ms >> (count - 2) >= 10
        within_ms = timing.election_timeout_ms * (1 if are_apart else 8)
        if not cluster.run_until(lambda: self._leads_after(epoch), within_ms):
            raise Broken(f"L1 LeaderElected: nobody within {within_ms} ms of {epoch}'s end")

    def _now_leads(self, epoch: int) -> Host | None:
        leader = self.cluster.leader()
        is_same = leader is not None and leader.quorum().quorum.epoch == epoch
        return leader if is_same else None

    def _leads_after(self, epoch: int) -> bool:
        leader = self.cluster.leader()
        return (
            leader is not None
            and leader.quorum().quorum.epoch > epoch
            and leader.leads_epoch is not None
        )

    def can_elect(self) -> bool:
        """Whether a leader can be elected at all.

        Not where lost disks took the majority. And not where the longest log belongs to a replica
        that it removes, by a record nobody else has: as an observer it may not stand, and asked for
        its vote it must not give it to a shorter log. KIP-853 has no way out of that. Nor where
        a removed replica never heard of its removal and asks nodes that know no pre-vote: it raises
        everybody's epoch for ever, and the leader, whom it does not ask, never hears of it. 4.3.1
        does not ask either whether a candidate is a voter, and stands where no pre-vote is known.
        """
        hosts = self.cluster.hosts
        newest = max(
            hosts.values(),
            key=lambda host: (host.disk.log.last_epoch, host.disk.log.log_end_offset),
        )
        quorum = newest.quorum().quorum
        offset = quorum.voters.latest_offset
        is_committed = offset is None or offset < self.ledger.committed_end
        if not quorum.is_voter and not is_committed:
            return False
        if self.cluster.setup.old and any(
            host.quorum().quorum.is_voter and not quorum.voters.latest.is_voter(host.key)
            for host in hosts.values()
        ):
            return False
        members = [node.key for node in quorum.voters.latest.nodes.values()]
        alive = [k for k in members if k.directory_id in (bytes(16), hosts[k.id].key.directory_id)]
        return 2 * len(alive) > len(members)

    def heal(self) -> None:
        cluster = self.cluster
        cluster.heal()
        cluster.links.lost = cluster.links.doubled = 0.0
        cluster.setup = replace(cluster.setup, flush_ms=min(3, cluster.setup.flush_ms), spoilt=0.0)
        cluster.links.delay_ms = (1, 3)
        for host in cluster.hosts.values():
            host.effects_until_crash = None
            if host.replica is None:
                host.start()

    def misfortune(self) -> None:
        """Perhaps something happens."""
        roll, faults = self.random_source.randrange(1000), self.faults
        for name, do in (
            ("append", self.append),
            ("crash", self.crash),
            ("half_crash", self.half_crash),
            ("restart", self.restart),
            ("cut", self.cut),
            ("heal", self.heal_links),
            ("wipe", self.wipe),
            ("snapshot", self.snapshot),
            ("change", self.change),
            ("resign", self.resign),
        ):
            rate: int = getattr(faults, name)
            if roll < rate:
                do()
                return
            roll -= rate

    def any_host(self) -> Host | None:
        running = self.cluster.running()
        return self.random_source.choice(running) if running else None

    def append(self) -> None:
        host = self.any_host()
        if host is not None:
            self.cluster.append(host.id, self.random_source.choice((1, 1, 2, 5)))

    def crash(self) -> None:
        host = self.any_host()
        if host is not None:
            host.crash()

    def half_crash(self) -> None:
        host = self.any_host()
        if host is not None:
            host.effects_until_crash = self.random_source.randrange(6)

    def restart(self) -> None:
        down = [host for host in self.cluster.hosts.values() if host.replica is None]
        if down:
            self.random_source.choice(down).start()

    def cut(self) -> None:
        ids = list(self.cluster.hosts)
        self.random_source.shuffle(ids)
        at = self.random_source.randrange(len(ids) + 1)
        self.cluster.cut(ids[:at], ids[at:], one_way=self.random_source.random() < 0.4)

    def heal_links(self) -> None:
        self.cluster.heal()

    def wipe(self) -> None:
        """Take one disk away, where a majority of untouched ones remains and the level is known."""
        voters = self.cluster.setup.voters
        if self.wiped or len(voters) < 3 or not self.cluster.established():
            return
        victim = self.random_source.choice(voters)
        self.wiped[victim] = True
        self.cluster.hosts[victim].wipe()

    def snapshot(self) -> None:
        host = self.any_host()
        if host is not None:
            host.take_snapshot()
            if host.replica is not None and self.random_source.random() < 0.6:
                host.trim()

    def resign(self) -> None:
        leader = self.cluster.leader()
        if leader is not None:
            epoch = leader.quorum().quorum.epoch
            self.cluster.take(leader.id, ResignRequested(epoch))

    def change(self) -> None:
        """Ask the leader to take somebody in, or to let somebody go."""
        leader = self.cluster.leader()
        if leader is None:
            return
        members = leader.quorum().quorum.voters.latest.nodes
        outside = [
            host
            for host in self.cluster.hosts.values()
            if host.id not in members and host.is_controller
        ]
        if outside and self.random_source.random() < 0.6:
            self.cluster.ask(leader.id, add_request(self.random_source.choice(outside)))
        elif len(members) > 1:
            node = members[ReplicaId(self.random_source.choice(sorted(members)))]
            self.cluster.ask(leader.id, remove_request(node.key.id, node.key.directory_id))


def add_request(host: Host, *, ack_when_committed: bool = True) -> AddRaftVoterRequest:
    """What kafka-metadata-quorum add-controller sends for a node."""
    address = address_of(host.id)
    return AddRaftVoterRequest(
        cluster_id=CLUSTER_ID,
        voter_id=host.id,
        voter_directory_id=host.key.directory_id,
        listeners=[AddListener(name=LISTENER, host=address.host, port=address.port)],
        ack_when_committed=ack_when_committed,
    )


def remove_request(node_id: int, directory: Uuid) -> RemoveRaftVoterRequest:
    """What kafka-metadata-quorum remove-controller sends."""
    return RemoveRaftVoterRequest(
        cluster_id=CLUSTER_ID, voter_id=node_id, voter_directory_id=directory
    )


def main(first: int, last: int, events: int = 2_000, words: Sequence[str] = ()) -> int:
    """Run seeds and print what broke."""
    started, total, steps, broken = time.process_time(), 0, 0, 0
    for seed in range(first, last):
        day = Day(seed, events, storm="storm" in words, bad_disks="bad-disks" in words)
        day.cluster.holds_against_model = "model" in words
        try:
            day.run()
        except Exception as error:  # noqa: BLE001  # every kind of failure is a finding
            broken += 1
            print(f"seed {seed} at event {day.cluster.events}: {type(error).__name__} {error}")
        total += day.cluster.events
        steps += day.cluster.steps_in_model
    rate = total / (time.process_time() - started)
    told = f", {steps} steps held against the model" if "model" in words else ""
    print(f"{last - first} seeds, {total} events, {rate:.0f}/s, {broken} broken{told}")
    return int(broken > 0)


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:] if word.isdigit()]
    sys.exit(main(*numbers, words=[word for word in sys.argv[1:] if not word.isdigit()]))
