"""The story of two Apache brokers on three controllers of ours, told behind logins.

It is that of `tests.guests`: topics, records, groups of both protocols, transactions, settings,
reassignments, a shutdown, elections, and a kill of the active controller at each step. `ann` does
what clients do, with entries for her topics, groups and transactions; `admin` administers.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cached_property
from pathlib import Path
from typing import Any

from confluent_kafka.admin import (
    AclOperation,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from tests.guests.steps import TOPICS, Stoppable, Story
from tests.process import write_properties
from tests.secured_clusters.cluster import SecuredCluster

__all__ = ["told"]

_AWAY_S = 2.0
_OWN = (
    (ResourceType.TOPIC, "guest-", AclOperation.ALL),
    (ResourceType.TRANSACTIONAL_ID, "guest-", AclOperation.ALL),
)
"""What ann may do with all that begins so."""


class _Stage:
    """What the story needs of a secured cluster."""

    def __init__(self, cluster: SecuredCluster) -> None:
        self.cluster = cluster
        self.kills: Counter[int] = Counter()
        """By node id."""

    @property
    def directory(self) -> Path:
        """For files of tools."""
        return self.cluster.home

    @property
    def bootstrap(self) -> str:
        """The brokers' addresses."""
        return self.cluster.bootstrap

    @property
    def brokers(self) -> Mapping[int, Stoppable]:
        """The brokers by id."""
        return {each: self.cluster.nodes[each] for each in self.cluster.broker_ids}

    @property
    def client(self) -> dict[str, Any]:
        """The settings of ann."""
        return self.cluster.librdkafka("ann")

    @cached_property
    def admin(self) -> AdminClient:
        """The client of admin."""
        return AdminClient(self.cluster.librdkafka("admin"))

    @property
    def tool_options(self) -> list[str]:
        """The login of admin, for Apache's tools."""
        file = self.cluster.home / "admin.properties"
        write_properties(file, self.cluster.keys_of("admin"))
        return ["--command-config", str(file)]

    def while_active_controller_dies(self, step: Callable[[], str]) -> str:
        """Take a step; as it begins the active controller is killed, and comes back meanwhile."""
        victim = self.cluster.active_controller()
        self.kills[victim] += 1
        with ThreadPoolExecutor(1) as thread:
            said = thread.submit(step)
            wait([said], 0.05)
            self.cluster.nodes[victim].kill()
            wait([said], _AWAY_S)
            self.cluster.nodes[victim].start()
        return f"{said.result()}; controller {victim} was killed meanwhile"

    def allow_ann(self) -> str:
        """Make the entries of ann."""
        prefixed = ResourcePatternType.PREFIXED
        self.cluster.allow(self.admin, "ann", *_OWN, pattern=prefixed)
        self.cluster.allow(self.admin, "ann", (ResourceType.GROUP, "*", AclOperation.ALL))
        self.cluster.await_rights("ann", TOPICS[0])
        return "ann may use her topics, groups and transactions"


def told(cluster: SecuredCluster, say: Callable[[str], None]) -> str:
    """Tell the whole story; return its figures. Fails at a step that does."""
    stage, began = _Stage(cluster), time.monotonic()
    with cluster.running(has_brokers=False):
        story = Story(stage)
        first, second, *others = story.steps
        try:
            for step in (first, second, stage.allow_ann, *others):
                say(f"  {stage.while_active_controller_dies(step)}")
        finally:
            story.close()
    seconds = time.monotonic() - began
    return f"{len(story.steps) + 1} steps, {sum(stage.kills.values())} kills, {seconds:.0f} s"
