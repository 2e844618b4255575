"""Fixtures: partitions that a test plays, and a node over them."""

from collections.abc import Iterator

import pytest

from tests.broker.transactions.coordinating import Coordinating, Markers, played_partitions


@pytest.fixture
def markers() -> Iterator[Markers]:
    with played_partitions() as played:
        yield played


@pytest.fixture
def node(markers: Markers) -> Coordinating:
    return Coordinating()
