"""pytest finds the fixtures of kraft_wire here; nothing of it is imported until a test asks."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from kraft_wire.testing import Cluster, Namespace

__all__ = ["kraft_wire", "kraft_wire_cluster", "kraft_wire_session_cluster"]


@pytest.fixture(scope="session")
def kraft_wire_session_cluster() -> "Iterator[Cluster]":
    """One cluster of one node for the session; each worker of pytest-xdist has its own."""
    from kraft_wire.testing import Cluster

    with Cluster() as cluster:
        yield cluster


@pytest.fixture
def kraft_wire(
    kraft_wire_session_cluster: "Cluster", request: pytest.FixtureRequest
) -> "Iterator[Namespace]":
    """A Kafka with topic names of the test's own, which are deleted after it."""
    from kraft_wire.testing import Namespace

    with Namespace(kraft_wire_session_cluster, request.node.name) as namespace:
        yield namespace


@pytest.fixture
def kraft_wire_cluster() -> "Iterator[Callable[..., Cluster]]":
    """A function that starts a cluster with `Cluster`'s arguments; all end with the test."""
    from contextlib import ExitStack

    from kraft_wire.testing import Cluster

    with ExitStack() as stack:

        def start(nodes: int = 1, **arguments: object) -> Cluster:
            return stack.enter_context(Cluster(nodes, **arguments))  # type: ignore[arg-type]  # checked there

        yield start
