"""Instances of an application in a streams group (KIP-1071), which come, and are killed, and go.

They count records by value: the broker makes a repartition and a changelog topic for that. The same
runs on Apache's node and on ours.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from confluent_kafka import Producer

from kraft_wire.client import BrokerConnection
from tests.apache.streams_cluster import Cluster
from tests.apache.streams_members import described
from tests.streams.application import Application
from tests.streams.reading import Reader
from tests.waiting import until

__all__ = ["GROUP", "PARTITIONS", "SETTINGS", "Instance", "Run"]

GROUP, SOURCE, TARGET = "counting-by-value", "words", "counts"
PARTITIONS = 4
KEYS = 20
PATIENCE_S = 120.0
SETTINGS: Final = {
    "group.streams.min.session.timeout.ms": "6000",
    "group.streams.session.timeout.ms": "6000",
    "group.streams.min.heartbeat.interval.ms": "500",
    "group.streams.heartbeat.interval.ms": "500",
    "group.streams.initial.rebalance.delay.ms": "500",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
}
"""A killed instance is missed after six seconds."""
REPARTITION: Final = f"{GROUP}-values-repartition"
CHANGELOG: Final = f"{GROUP}-counts-changelog"


class Instance(Application):
    """One process of the application, with a state directory of its own."""

    main = "judge.GroupedStreams"

    def __init__(self, home: Path, bootstrap: str, name: str) -> None:
        super().__init__(home, bootstrap, name, SOURCE, TARGET, 1)
        self._arguments = [bootstrap, GROUP, str(home / f"{name}-state"), SOURCE, TARGET]


class Run:
    """An application on one node, and what it was fed."""

    def __init__(self, home: Path, bootstrap: str, connection: BrokerConnection) -> None:
        self._node = connection
        self.cluster = Cluster(connection)
        self.cluster.await_coordinators()
        for topic in (SOURCE, TARGET):
            self.cluster.topic(topic, PARTITIONS)
        self.cluster.sets(GROUP, "streams.num.standby.replicas", "1")
        self._common = {"bootstrap.servers": bootstrap, "log_level": 0}
        self._producer = Producer({**self._common, "enable.idempotence": True})
        self._reader = Reader(self._common, TARGET, PARTITIONS)
        self.fed: Counter[str] = Counter()
        self.first, self.second = (Instance(home, bootstrap, each) for each in ("one", "two"))

    def feed(self, count: int) -> None:
        """Feed records, of all keys in turn."""
        for number in range(count):
            value = f"value-{number % KEYS}"
            self.fed[value] += 1
            self._producer.produce(SOURCE, value.encode(), str(number))
        assert self._producer.flush(PATIENCE_S) == 0

    def counted(self) -> list[tuple[str, int]]:
        """Wait until all that was fed is counted; return the counts."""
        self._await(lambda: self._reader.advance() >= self.fed.total(), "counts")
        return self._reader.found

    def stored(self) -> list[tuple[str, int]]:
        """Return the changes of the store."""
        return Reader(self._common, CHANGELOG, PARTITIONS).to_end(PATIENCE_S)

    def await_tasks(self, processes: int) -> Any:
        """Wait until the group is stable with its tasks in this number of processes.

        Returns the group as it is described.
        """

        def stable() -> Any:
            group = self.described()
            owners = {
                each["processId"] for each in group["members"] if each["assignment"]["activeTasks"]
            }
            is_stable = group["groupState"] == "Stable" and len(owners) == processes
            return group if is_stable and _active(group) == 2 * PARTITIONS else None

        return self._await(stable, f"tasks in {processes} processes")

    def described(self) -> Any:
        """Return the group as the node describes it."""
        return described(self._node, GROUP)["groups"][0]

    def await_state(self, state: str) -> None:
        """Wait until the group is in a state."""
        self._await(lambda: self.described()["groupState"] == state, state)

    def close(self) -> None:
        """End all that runs."""
        for each in (self.first, self.second):
            each.kill()
        self._reader.close()

    def _await(self, ask: Callable[[], Any], what: str) -> Any:
        def problem() -> str:
            logs = "\n".join(each.text[-1500:] for each in (self.first, self.second))
            return f"no {what}: {self.described()}\n{logs}"

        return until(ask, problem, seconds_max=PATIENCE_S, every_s=0.1)


def _active(group: Mapping[str, Any]) -> int:
    """Return how many active tasks the members have."""
    return sum(
        len(tasks["partitions"])
        for each in group["members"]
        for tasks in each["assignment"]["activeTasks"]
    )
