"""When the nodes of a cluster in the tests' own process count as ready."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from kraft_wire.testing.in_process import InProcess


def node(
    node_id: int, active: dict[int, bool], *, serves: bool = True, is_up: bool = True
) -> SimpleNamespace:
    """A node whose committed metadata have these brokers, each with whether it is active."""
    brokers = {each: SimpleNamespace(active=is_active) for each, is_active in active.items()}
    image = SimpleNamespace(brokers=brokers)
    raft = SimpleNamespace(committed=SimpleNamespace(image=image))
    running = SimpleNamespace(raft=raft) if is_up else None
    return SimpleNamespace(node_id=node_id, node=running, serves_clients=serves)


def is_ready(*nodes: SimpleNamespace) -> bool:
    """Whether nodes are ready of which the first is a controller, and the others are brokers."""
    roles = ["controller", *["broker"] * (len(nodes) - 1)]
    cluster = SimpleNamespace(
        nodes={each.node_id: each for each in nodes}, _role=lambda each: roles[each.node_id - 1]
    )
    return InProcess._is_ready(cast(Any, cluster))


BOTH = {2: True, 3: True}


@pytest.mark.parametrize(
    ("nodes", "ready"),
    [
        ((node(1, BOTH), node(2, BOTH), node(3, BOTH)), True),
        ((node(1, BOTH, serves=False), node(2, BOTH), node(3, BOTH)), True),
        ((node(1, BOTH), node(2, BOTH, serves=False), node(3, BOTH)), False),
        ((node(1, BOTH), node(2, BOTH), node(3, {2: True})), False),
        ((node(1, {2: True, 3: False}), node(2, BOTH), node(3, BOTH)), False),
        ((node(1, BOTH), node(2, BOTH), node(3, {2: True, 3: False})), False),
        ((node(1, {2: True}), node(2, {2: True}), node(3, {}, is_up=False)), True),
        ((node(1, BOTH), node(2, {2: True, 3: False}, is_up=False), node(3, BOTH)), True),
    ],
)
def test_each_running_node_must_know_each_running_broker_as_active_and_serve(
    nodes: tuple[SimpleNamespace, ...], ready: bool
) -> None:
    assert is_ready(*nodes) is ready
