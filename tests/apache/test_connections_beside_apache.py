"""Connections above their limits, at Apache Kafka 4.3.1 and at our node, configured alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.apache.secured_node import SecuredApache, SecuredNode
from tests.server.connecting import (
    Seen,
    story_of_a_listener,
    story_of_an_address,
    story_of_room,
)

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.alone]
Servers = tuple[SecuredApache, SecuredNode]


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    folder: Path = tmp_path_factory.mktemp("ours")
    ours = SecuredNode(folder, "PLAINTEXT", {})
    ours.format()
    apache_folder = tmp_path_factory.mktemp("apache")
    with SecuredApache(apache_folder, "PLAINTEXT", {}) as apache, ours:
        yield apache, ours


def both(servers: Servers, story: Callable[[str, str], Seen]) -> list[Seen]:
    """Return what a story shows at Apache's node and at ours, at the same time.

    Connections of the story before count for ten seconds more, so both need the same past.
    """
    with ThreadPoolExecutor() as at_once:
        seen = [*at_once.map(lambda each: story(each.bootstrap, each.secure), servers)]
    print(*seen, sep="\n")
    return seen


def test_address_above_its_rate_sees_the_same(servers: Servers) -> None:
    """SEC-QUOTA-17: ten connect, four are held and closed, by Apache within 0.5 s more."""
    apache, ours = both(servers, story_of_an_address)
    assert ours.outcomes == apache.outcomes
    assert ours.seconds == pytest.approx(apache.seconds, abs=0.8)


def test_listener_above_its_rate_accepts_at_the_same_pace(servers: Servers) -> None:
    """SEC-QUOTA-18: ten at once, then one a second. The inter-broker listener does not wait."""
    apache, ours = both(servers, story_of_a_listener)
    assert ours.outcomes == apache.outcomes
    assert ours.seconds == pytest.approx(apache.seconds, abs=0.8)


def test_connections_above_max_connections_see_the_same(servers: Servers) -> None:
    """SEC-QUOTA-18: one waits; one between brokers comes in, and another ends for it."""
    apache, ours = both(servers, story_of_room)
    assert ours.outcomes == apache.outcomes
