"""Random walks of members of streams groups (KIP-1071), told to a node as stories are.

A member does what the answers so far let a client do, and now and then what none should. So two
nodes are asked the same as long as they answer the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any, Final

from kraft_wire.client import BrokerConnection
from kraft_wire.wire.generated.streams_group_heartbeat import Endpoint, Topology
from tests.apache.streams_cluster import Cluster
from tests.apache.streams_members import Member, described, internal, subtopology, topology

__all__ = ["WALKS", "walk"]

WALKS: Final = range(24)
STEPS: Final = 60
TOPICS: Final = {"walked-4": 4, "walked-2": 2, "walked-4-changelog": 4, "walked-2-changelog": 2}
PROCESSES: Final = ("first", "second", "third")
MEMBERS: Final = 5
Tasks = Mapping[str, Sequence[int]]


class Walker:
    """One member, and the tasks that its client has."""

    def __init__(self, node: BrokerConnection, group: str, number: int, random: Random) -> None:
        process = random.choice(PROCESSES)
        place = Endpoint(host=process, port=1) if random.random() < 0.3 else None
        self.member = Member(node, group, f"member {number}", process, user_endpoint=place)
        self.is_in = False
        self.held: Tasks = {}
        self.former = 0
        """The epoch before."""

    def step(self, random: Random, wanted: Topology) -> tuple[str, Any]:
        """Do something; return what, and the answer."""
        before = self.member.epoch
        if not self.is_in:
            name, answer = "joins", self.member.joins(wanted)
        else:
            name, answer = self._goes_on(random, wanted)
        if self.member.last.error_code == 0 and self.member.epoch != before:
            self.former = before
        if self.member.last.error_code:
            self.is_in = self.is_in and self.member.last.error_code not in (25, 69, 110)
        elif name != "leaves":
            self.is_in = True
        return name, answer

    def _goes_on(self, random: Random, wanted: Topology) -> tuple[str, Any]:
        member = self.member
        kind = random.choices(
            ("beats", "has all", "still has", "joins again", "leaves", "former epoch", "moves"),
            (4, 8, 3, 1, 1, 1, 1),
        )[0]
        match kind:
            case "beats":
                return kind, member.beats()
            case "has all":
                self.held = member.active
                return kind, member.owns(member.active, member.standby)
            case "still has":
                return kind, member.owns(self.held, member.standby)
            case "joins again":
                return kind, member.joins(wanted)
            case "leaves":
                self.is_in, self.held = False, {}
                return kind, member.leaves()
            case "former epoch":
                return kind, member.beats(member_epoch=max(1, self.former))
            case _:
                return kind, member.beats(process_id=random.choice(PROCESSES))


def walk(seed: int, node: BrokerConnection, cluster: Cluster) -> Iterator[tuple[str, Any]]:
    """Tell one walk."""
    random, group = Random(seed), f"walk-{seed}"
    for name, partitions in TOPICS.items():
        if not cluster.is_there(name):
            cluster.topic(name, partitions)
    cluster.sets(group, "streams.num.standby.replicas", str(seed % 3))
    wanted = topology(*_subtopologies(random))
    walkers = [Walker(node, group, number, random) for number in range(MEMBERS)]
    for number in range(STEPS):
        walker = random.choice(walkers)
        what, answer = walker.step(random, wanted)
        yield f"{number}: {walkers.index(walker)} {what}", answer
        if number % 10 == 9:
            yield f"{number}: described", described(node, group)


def _subtopologies(random: Random) -> Iterator[Any]:
    """Yield subtopologies, with and without changelog topics; at least one."""
    names = list("0123")[: random.randrange(1, 5)]
    for name in names:
        source = random.choice(("walked-4", "walked-2"))
        has_state = random.random() < 0.6
        changelogs = [internal(f"{source}-changelog")] if has_state else []
        yield subtopology(name, [source], changelogs=changelogs)
