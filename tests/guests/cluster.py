"""Three controllers and two Apache brokers; the active controller is killed during each step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from confluent_kafka.admin import AdminClient

from tests.apache.broker_only import ApacheBroker
from tests.apache.mixed_quorum import MixedQuorum
from tests.mixed.chaos import error_lines

BROKERS = (101, 102)
_SETTINGS = {
    f"{topic}.{key}": "2"
    for topic in ("offsets.topic", "transaction.state.log")
    for key in ("replication.factor",)
} | {"min.insync.replicas": "1", "default.replication.factor": "2"}


class Cluster:
    """Controllers of which some are Apache's, and brokers that all are."""

    def __init__(self, home: Path, apache_controllers: Iterable[int], say: Callable[[str], None]):
        home.mkdir(parents=True)
        self.quorum = MixedQuorum(home, apache_controllers)
        voters = ",".join(f"{each}@{self.quorum.controller(each)}" for each in self.quorum.node_ids)
        self.brokers = {
            node_id: ApacheBroker(
                home / f"broker-{node_id}",
                node_id,
                cluster_id=self.quorum.cluster_id,
                voters=voters,
                overrides=_SETTINGS,
            )
            for node_id in BROKERS
        }
        self.kills: Counter[str] = Counter()
        """Active controllers that were killed, by make."""
        self._say = say

    @property
    def bootstrap(self) -> str:
        """Where clients begin."""
        return ",".join(each.bootstrap for each in self.brokers.values())

    @property
    def directory(self) -> Path:
        """For files of tools."""
        return self.quorum.directory

    @property
    def client(self) -> dict[str, Any]:
        """librdkafka's settings."""
        return {"bootstrap.servers": self.bootstrap}

    @property
    def tool_options(self) -> list[str]:
        """What tools need beside the address: nothing."""
        return []

    @cached_property
    def admin(self) -> AdminClient:
        """A client for administration; it has to outlive the answers that it waits for."""
        return AdminClient(self.client)

    def errors(self) -> Counter[str]:
        """The errors that Apache's brokers wrote, with what varies left out."""
        found: Counter[str] = Counter()
        for broker in self.brokers.values():
            found.update(error_lines(broker.log.read_text(errors="replace")))
        return found

    @contextmanager
    def running(self) -> Iterator[Cluster]:
        """Start everything, and end it."""
        with self.quorum:
            self.quorum.leader()
            try:
                for broker in self.brokers.values():
                    broker.format()
                yield self
            finally:
                for broker in self.brokers.values():
                    broker.stop()

    def while_active_controller_dies(self, step: Callable[[], str]) -> str:
        """Take a step; as it begins the active controller is killed, and comes back meanwhile."""
        victim = self.quorum.leader()
        self.kills["Apache" if victim in self.quorum.apache_ids else "ours"] += 1
        with ThreadPoolExecutor(1) as thread:
            told = thread.submit(step)
            wait([told], 0.05)
            self.quorum.kill(victim)
            wait([told], 2.0)
            self.quorum.start(victim)
        self._say(f"   {told.result()}; controller {victim} was killed meanwhile")
        return told.result()
