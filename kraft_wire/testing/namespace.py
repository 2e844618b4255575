"""One test's part of a cluster that several tests share: its own names of topics and groups."""

import re
from collections.abc import Mapping
from itertools import count
from types import TracebackType
from typing import Final, Self

from kraft_wire.testing.admin import delete_topics
from kraft_wire.testing.cluster import Cluster
from kraft_wire.testing.exchanges import Exchange
from kraft_wire.testing.faults.injecting import Faults

__all__ = ["Namespace"]

_numbers = count(1)
_NAME_CHARACTERS_MAX: Final = 60
_NOT_IN_NAMES: Final = re.compile("[^a-zA-Z0-9-]+")


class Namespace:
    """A cluster as one test sees it; its topics and faults are removed when the test ends."""

    def __init__(self, cluster: Cluster, test_name: str) -> None:
        self.cluster = cluster
        """The cluster itself, which other tests use too."""
        readable = _NOT_IN_NAMES.sub("-", test_name).strip("-")[:_NAME_CHARACTERS_MAX]
        self.prefix = f"{readable}-{next(_numbers)}."
        """The prefix of this test's names."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.cluster.faults.clear()
        delete_topics(self.bootstrap_servers.split(",")[0], self.prefix)

    @property
    def bootstrap_servers(self) -> str:
        """`host:port` of every broker, with commas between them."""
        return self.cluster.bootstrap_servers

    def topic(self, name: str) -> str:
        """Return this test's name for a topic, or for a group, without creating it."""
        return self.prefix + name

    def create_topic(
        self, name: str, partitions: int = 1, *, configs: Mapping[str, object] | None = None
    ) -> str:
        """Create a topic, and return this test's name for it."""
        return self.cluster.create_topic(self.topic(name), partitions, configs=configs)

    @property
    def faults(self) -> Faults:
        """Adds fault rules, which end with the test; see docs/FAULTS.md."""
        return self.cluster.faults

    def requests(self, api: str | None = None, client_id: str | None = None) -> list[Exchange]:
        """Return the newest requests to the cluster, decoded on access."""
        return self.cluster.requests(api, client_id)
