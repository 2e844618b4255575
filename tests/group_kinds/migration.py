"""Members of one group change between the classic and the consumer protocol while they read.

A round is a rolling restart as an operator does it: member after member leaves and comes back with
the other protocol, so that the group is of the one kind in the end (KIP-848, "Online Migration").
Records are written all the time. Nothing is skipped, and what is read twice is counted: the same
runs on Apache's node, which says how often that may be.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from kraft_wire.client import BrokerConnection
from kraft_wire.wire.generated.list_groups import ListGroupsRequest, ListGroupsResponse
from tests.group_kinds.members import JavaMembers
from tests.group_kinds.verdict import Verdict
from tests.waiting import until

__all__ = ["SETTINGS", "Migration", "Outcome"]

TOPIC, GROUP = "records", "moving"
PARTITIONS = 40
MEMBERS = 20
RECORDS_A_TICK = 20
TICK_S = 0.2
STEP_S = 0.25
"""Between two members of a rolling restart."""
PATIENCE_S = 180.0
KINDS = ("consumer", "classic")
SETTINGS = {
    "group.consumer.migration.policy": "bidirectional",
    "group.consumer.min.session.timeout.ms": "15000",
    "group.consumer.session.timeout.ms": "15000",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.heartbeat.interval.ms": "500",
}


@dataclass
class Outcome:
    """What a run has shown."""

    rounds: int = 0
    records: int = 0
    twice: int = 0
    twice_by_round: list[int] = field(default_factory=list)
    """Of the rounds that end with a classic group; nothing is delivered twice in the others."""
    refused_commits: Counter[str] = field(default_factory=Counter)
    slowest_round_s: float = 0.0
    wrong: list[str] = field(default_factory=list)

    def add(self, other: Outcome) -> None:
        """Add what another run has shown."""
        self.rounds += other.rounds
        self.records += other.records
        self.twice += other.twice
        self.twice_by_round += other.twice_by_round
        self.refused_commits += other.refused_commits
        self.slowest_round_s = max(self.slowest_round_s, other.slowest_round_s)
        self.wrong += other.wrong


class Migration:
    """One group on one node."""

    def __init__(
        self,
        bootstrap: str,
        home: Path,
        *,
        members: int = MEMBERS,
        assignor: str = "RangeAssignor",
        say: Callable[[str], None] = print,
    ) -> None:
        self._bootstrap = bootstrap
        self._say = say
        self._verdict = Verdict()
        self._java = JavaMembers(bootstrap, TOPIC, home, self._verdict, assignor)
        self._names: list[str] = []
        self._count = members
        self._serial = 0
        self._is_over = threading.Event()
        self._ends = dict.fromkeys(range(PARTITIONS), 0)
        self.outcome = Outcome()

    def run(self, rounds: int) -> Outcome:
        """Change the protocol of all members so many times."""
        admin = AdminClient({"bootstrap.servers": self._bootstrap})
        admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result(PATIENCE_S)
        try:
            with self._java:
                self._change(rounds)
        finally:
            self._judge()
        return self.outcome

    def _change(self, rounds: int) -> None:
        writer = threading.Thread(target=self._write)
        for _ in range(self._count):
            self._start("classic")
        writer.start()
        try:
            self._await(lambda: len(self._verdict.readings) == PARTITIONS, "all begin")
            for number in range(rounds):
                self._round(number)
        finally:
            self._is_over.set()
            writer.join()
        self._await(lambda: not self._unread(), "the rest")

    def _round(self, number: int) -> None:
        began, twice = time.monotonic(), self._verdict.twice([GROUP])
        kind = KINDS[number % len(KINDS)]
        for name in list(self._names):
            self._names.remove(name)
            self._java.stops(name)
            self._await(partial(self._verdict.left.__contains__, name), f"{name} leaves")
            self._start(kind)
            time.sleep(STEP_S)
        self._await(lambda: self._kind() == kind, f"a {kind} group")
        before = self._verdict.confirmed()
        self._await(lambda: self._goes_on(before), "all partitions are read")
        self.outcome.rounds += 1
        if kind == "classic":
            self.outcome.twice_by_round.append(self._verdict.twice([GROUP]) - twice)
        took = time.monotonic() - began
        self.outcome.slowest_round_s = round(max(took, self.outcome.slowest_round_s), 1)
        self._say(
            f"round {number}: {kind} after {took:.1f} s, {sum(self._ends.values())} records, "
            f"{self._verdict.twice([GROUP])} twice, {len(self._verdict.wrong)} wrong"
        )

    def _start(self, kind: str) -> None:
        self._serial += 1
        self._names.append(f"member-{self._serial}")
        self._java.starts(kind, GROUP, self._names[-1])

    def _goes_on(self, before: dict[tuple[str, int], int]) -> bool:
        """Whether each partition has a commit that it had not before."""
        now = self._verdict.confirmed()
        return all(now[place] > offset for place, offset in before.items())

    def _kind(self) -> str:
        node = BrokerConnection(self._bootstrap)
        try:
            groups = node.send(ListGroupsRequest(), ListGroupsResponse).groups
        finally:
            node.close()
        return next(each.group_type for each in groups if each.group_id == GROUP)

    def _write(self) -> None:
        """Write to the partitions in turn until the run is over."""
        producer = Producer({"bootstrap.servers": self._bootstrap, "enable.idempotence": True})
        number = 0
        while not self._is_over.wait(TICK_S):
            for _ in range(RECORDS_A_TICK):
                producer.produce(TOPIC, b"x", partition=number % PARTITIONS)
                self._ends[number % PARTITIONS] += 1
                number += 1
            producer.poll(0)
        left = producer.flush(PATIENCE_S)
        assert left == 0, f"{left} records are not acknowledged"

    def _unread(self) -> list[str]:
        return self._verdict.unread([GROUP], self._ends)

    def _judge(self) -> None:
        self.outcome.records = sum(self._ends.values())
        self.outcome.twice = self._verdict.twice([GROUP])
        self.outcome.refused_commits = Counter(self._verdict.refused_commits)
        self.outcome.wrong = [*self._verdict.wrong, *self._unread()]

    def _await(self, is_so: Callable[[], bool], what: str) -> None:
        def problem() -> str:
            return f"{what}: {self._verdict.wrong[:5]}, {self._unread()[:5]}\n{self._java.tail()}"

        until(is_so, problem, seconds_max=PATIENCE_S, every_s=0.05)
