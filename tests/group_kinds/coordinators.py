"""Groups of every kind on three brokers that are killed: the campaign of ``make coordinators``.

A round writes records, replaces members of some groups, kills a broker, which coordinates a third
of the groups, and compares committed offsets with those confirmed before. It ends when every group
has read, or accepted, all there is.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from kraft_wire.client.cluster import ClusterClient, ClusterRefused, ClusterSettings
from kraft_wire.client.coordinator import GroupCoordinator
from kraft_wire.client.group_offsets import committed_offsets
from kraft_wire.client.refused import AdminRefused
from kraft_wire.client.share_group_offsets import share_offsets
from tests.clients.cluster import Cluster
from tests.group_kinds.members import JavaMembers
from tests.group_kinds.share_states import judged, writes_of
from tests.group_kinds.streams import StreamsGroups
from tests.group_kinds.tools import wrong_in_tools
from tests.group_kinds.turns import TakingTurns
from tests.group_kinds.verdict import Place, Verdict
from tests.mixed.controller import Controller
from tests.share_groups import campaign as share_campaign
from tests.share_groups.librdkafka import read_from_start
from tests.waiting import until

__all__ = ["SETTINGS", "Campaign", "Size"]

TOPIC = "records"
PARTITIONS = 3
PATIENCE_S = 240.0
JOIN_PAUSE_S = 0.1
"""Between the groups that begin: three hundred clients at once have no processor time."""
WATERMARK_S = 30.0
"""Followers of a new leader report what they have within a second, unless they are dead."""
WATERMARK_PAUSE_S = 0.5
WRONG_MAX = 500
"""More than these end a campaign."""
OFFSET_KINDS = ("classic", "consumer")
SESSION_MS = "15000"
"""Of members, one of which cannot say that it leaves when its coordinator is killed just then."""
STREAMS_SESSION_MS = "180000"
"""Their members always say that they leave, but one thread sends the heartbeats of all."""
SETTINGS = {
    **share_campaign.SETTINGS,
    "group.share.record.lock.duration.ms": "15000",
    "group.share.min.session.timeout.ms": SESSION_MS,
    "group.share.session.timeout.ms": SESSION_MS,
    "group.share.min.heartbeat.interval.ms": "1000",
    "group.share.heartbeat.interval.ms": "3000",
    "group.consumer.min.session.timeout.ms": SESSION_MS,
    "group.consumer.session.timeout.ms": SESSION_MS,
    "group.consumer.min.heartbeat.interval.ms": "1000",
    "group.consumer.heartbeat.interval.ms": "3000",
    "group.streams.max.session.timeout.ms": STREAMS_SESSION_MS,
    "group.streams.session.timeout.ms": STREAMS_SESSION_MS,
    "group.streams.min.heartbeat.interval.ms": "1000",
    "group.streams.heartbeat.interval.ms": "3000",
    "group.streams.initial.rebalance.delay.ms": "0",
}


@dataclass(frozen=True)
class Size:
    """How many groups there are of each kind, and what is done to them."""

    groups: int = 50
    members: int = 2
    """Of each group."""
    records: int = 30
    """Written in a round."""
    replaced: int = 3
    """Members that are replaced in a round, of each kind."""
    has_tools: bool = False
    """Whether Apache's tools look at the groups while a broker is killed."""


@dataclass
class Outcome:
    """What a campaign has shown."""

    records: int = 0
    kills: int = 0
    twice: int = 0
    """Deliveries of a record to a group of the classic or consumer kind beyond the first."""
    asked: int = 0
    """Committed offsets that were compared."""
    streams_commits: int = 0
    counts: dict[int, int] = field(default_factory=dict)
    """Shared records by their highest delivery count."""
    late: int = 0
    """Shared records that a client had fetched before they were accepted elsewhere."""
    jumps: int = 0
    """Delivery counts that rose by more than one between two writes."""
    refused_commits: dict[str, int] = field(default_factory=dict)
    late_beginnings: int = 0
    """Positions that a member took so slowly that they are not judged."""
    late_watermarks: int = 0
    """Groups whose offsets a coordinator of Apache's showed late: see `Campaign._compare`."""
    slowest_round_s: float = 0.0
    wrong: list[str] = field(default_factory=list)


class Campaign:
    """Groups of four kinds on one cluster."""

    def __init__(
        self,
        cluster: Cluster | TakingTurns,
        home: Path,
        *,
        size: Size | None = None,
        seed: int = 1,
        say: Callable[[str], None] = print,
    ) -> None:
        self._cluster = cluster
        self._size = size or Size()
        self._random = random.Random(seed)
        self._say = say
        self._serial = 0
        self._written = 0
        self._names: dict[str, list[str]] = {}
        """The members of a group, oldest first."""
        common = {"bootstrap.servers": cluster.bootstrap, "log_level": 0}
        self._producer = Producer({**common, "enable.idempotence": True})
        self._admin = AdminClient(common)
        self._settings = ClusterSettings(
            tuple(cluster.bootstrap.split(",")), deadline_seconds=PATIENCE_S
        )
        self._verdict = Verdict()
        self._java = JavaMembers(cluster.bootstrap, TOPIC, home, self._verdict)
        self._streams = StreamsGroups(
            self._settings, TOPIC, self._groups("streams"), self._size.members
        )
        self._in_tools: list[str] = []
        self.outcome = Outcome()

    def run(self, kills: int) -> Outcome:
        """Kill brokers in turn."""
        self._cluster.create_topic(TOPIC, PARTITIONS)
        for group in self._groups("share"):
            read_from_start(self._admin, group)
        with self._java:
            self._streams.start()
            try:
                self._join()
                for number in range(kills):
                    self._round(number)
                self._await(lambda: self._lag() == 0, "a lag is left")
            finally:
                self._streams.stop()
                self._judge()
        return self.outcome

    def _groups(self, kind: str) -> list[str]:
        return [f"{kind}-{number}" for number in range(self._size.groups)]

    def _join(self) -> None:
        began = time.monotonic()
        for kind in (*OFFSET_KINDS, "share"):
            for group in self._groups(kind):
                for _ in range(self._size.members):
                    self._start(kind, group)
                time.sleep(JOIN_PAUSE_S)
        self._write()
        self._await(self._is_all_read, "the groups begin")
        self._say(f"groups of four kinds read after {time.monotonic() - began:.1f} s")

    def _round(self, number: int) -> None:
        began = time.monotonic()
        self._write()
        time.sleep(self._random.uniform(0.0, 1.0))
        self._replace()
        node_id = sorted(self._cluster.brokers)[number % len(self._cluster.brokers)]
        confirmed = self._confirmed()
        with ThreadPoolExecutor(1) as pool:
            tools = pool.submit(self._look, number)
            self._cluster.kill_broker(node_id, self._random.uniform(0.0, 3.0))
        self._in_tools += tools.result()
        back_s = time.monotonic() - began
        self._compare(confirmed)
        self._await(self._is_all_read, f"broker {node_id} was killed")
        self._compare(self._confirmed())
        self.outcome.kills += 1
        took = time.monotonic() - began
        self.outcome.slowest_round_s = round(max(took, self.outcome.slowest_round_s), 1)
        self._say(
            f"round {number}: broker {node_id} back after {back_s:.1f} s, "
            f"all read after {took:.1f} s, {len(self._wrong())} wrong {self._wrong()[-1:]}"
        )

    def _look(self, number: int) -> list[str]:
        if not self._size.has_tools:
            return []
        return wrong_in_tools(self._cluster.bootstrap, number % self._size.groups)

    def _replace(self) -> None:
        for kind in (*OFFSET_KINDS, "share"):
            for group in self._random.sample(self._groups(kind), self._size.replaced):
                self._java.stops(self._names[group].pop(0))
                self._start(kind, group)
        self._streams.replaces(
            self._random.sample(self._groups("streams"), self._size.replaced),
        )

    def _start(self, kind: str, group: str) -> None:
        self._serial += 1
        name = f"{group}-{self._serial}"
        self._names.setdefault(group, []).append(name)
        self._java.starts(kind, group, name)

    def _write(self) -> None:
        for number in range(self._written, self._written + self._size.records):
            self._producer.produce(TOPIC, b"%d" % number, partition=number % PARTITIONS)
        left = self._producer.flush(PATIENCE_S)
        assert left == 0, f"{left} records are not acknowledged"
        self._written += self._size.records

    # -- what is so ------------------------------------------------------------------------------

    def _confirmed(self) -> dict[Place, int]:
        return {**self._verdict.confirmed(), **self._streams.confirmed()}

    def _compare(self, confirmed: Mapping[Place, int]) -> None:
        """Compare the committed offsets of all groups with those that were confirmed.

        A coordinator of 4.3.1 that has just begun shows what is below the high watermark that it
        knows, which may be less than its predecessor has confirmed, and is asked again. Ours may
        not do that.
        """
        found, of_apache = self._committed({group for group, _ in confirmed})

        def behind() -> set[str]:
            return {
                group
                for (group, partition), offset in confirmed.items()
                if offset and group in of_apache and found.get((group, partition), -1) < offset
            }

        late = behind()
        self.outcome.late_watermarks += len(late)
        ends = time.monotonic() + WATERMARK_S
        while (late := behind()) and time.monotonic() < ends:
            time.sleep(WATERMARK_PAUSE_S)
            found |= self._committed(late)[0]
        self.outcome.asked += len(confirmed)
        self._verdict.compare(confirmed, found)

    def _committed(self, groups: Collection[str]) -> tuple[dict[Place, int], set[str]]:
        """Ask for committed offsets, by a client that is in no group.

        Return them, and the groups that a broker of Apache's coordinates.
        """
        found: dict[Place, int] = {}
        of_apache = set()
        theirs = {
            each.address
            for each in self._cluster.brokers.values()
            if isinstance(each, Controller) and not each.is_ours
        }
        with ClusterClient(self._settings) as client:
            for name in sorted(groups):
                with GroupCoordinator(client, name) as coordinator:
                    for key, offset in committed_offsets(coordinator, None).items():
                        found[name, key.partition] = offset
                    if coordinator.address in theirs:
                        of_apache.add(name)
        return found, of_apache

    def _missing(self) -> list[str]:
        ends = {
            partition: len(range(partition, self._written, PARTITIONS))
            for partition in range(PARTITIONS)
        }
        groups = [name for kind in OFFSET_KINDS for name in self._groups(kind)]
        missing = self._verdict.unread(groups, ends)
        everything = set(range(self._written))
        for group in self._groups("share"):
            left = sorted(everything - self._verdict.shared[group].done)
            missing += [f"{group}: not accepted: {left[:5]}"] if left else []
        return missing if self._streams.are_whole else [*missing, "streams groups are not whole"]

    def _is_all_read(self) -> bool:
        return not self._missing()

    def _lag(self) -> int | None:
        """Records of all share groups that are not final; None while a coordinator moves."""
        total = 0
        with ClusterClient(self._settings) as client:
            for group in self._groups("share"):
                try:
                    with GroupCoordinator(client, group) as coordinator:
                        lags = [each.lag for each in share_offsets(coordinator).values()]
                except (AdminRefused, ClusterRefused):
                    return None
                if None in lags or len(lags) != PARTITIONS:
                    return None
                total += sum(lag for lag in lags if lag is not None)
        return total

    def _wrong(self) -> list[str]:
        return [*self._verdict.wrong, *self._streams.wrong, *self._in_tools]

    def _judge(self) -> None:
        groups = [name for kind in OFFSET_KINDS for name in self._groups(kind)]
        self.outcome.records = self._written
        self.outcome.twice = self._verdict.twice(groups)
        self.outcome.counts = self._verdict.counts()
        self.outcome.refused_commits = dict(self._verdict.refused_commits)
        self.outcome.streams_commits = sum(self._streams.confirmed().values())
        self.outcome.late = self._verdict.late
        self.outcome.late_beginnings = self._verdict.late_beginnings
        states = judged(writes_of(each.data for each in self._cluster.brokers.values()))
        self.outcome.jumps = states.jumps
        self.outcome.wrong = [*self._wrong(), *states.wrong]

    def _await(self, is_so: Callable[[], bool], what: str) -> None:
        assert len(self._wrong()) <= WRONG_MAX, self._wrong()[:WRONG_MAX]

        def problem() -> str:
            self._judge()
            return f"{what}: {self._missing()[:10]}, {self._wrong()[:3]}\n{self._java.tail()}"

        until(is_so, problem, seconds_max=PATIENCE_S, every_s=0.5)
