"""Streams groups beside Apache Kafka 4.3.1: the same stories, the same answers and records."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from functools import partial
from typing import Any

import pytest

from kraft_wire.client import BrokerConnection
from tests.apache.node import ApacheNode
from tests.apache.secured_node import SecuredApache, SecuredNode, sasl_settings
from tests.apache.streams_cluster import Cluster
from tests.apache.streams_records import KINDS, Row, streams_records
from tests.apache.streams_rights import story as rights_story
from tests.apache.streams_story import CHAPTERS, SETTINGS
from tests.apache.streams_walks import WALKS, walk
from tests.server_process import ServerProcess

pytestmark = [pytest.mark.java, pytest.mark.slow]

OURS = {
    "num.partitions": "4",
    "offsets.topic.num.partitions": "4",
    "group.initial.rebalance.delay.ms": "0",
}
AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:broker;User:ANONYMOUS",
}
STORIES = {
    **{each.__name__: each for each in CHAPTERS},
    **{f"walk {seed}": partial(walk, seed) for seed in WALKS},
}


@pytest.fixture(scope="module")
def secured(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[SecuredApache, SecuredNode]]:
    settings = sasl_settings("SECURE") | AUTHORIZER | SETTINGS
    directory = tmp_path_factory.mktemp("rights")
    ours = SecuredNode(directory / "ours", "SASL_PLAINTEXT", settings)
    ours.format()
    with SecuredApache(directory / "apache", "SASL_PLAINTEXT", settings) as apache, ours:
        yield apache, ours


class Told:
    """What a node answered in each story, and what it wrote meanwhile."""

    def __init__(self, node: ApacheNode | ServerProcess) -> None:
        self.steps: dict[str, list[tuple[str, Any]]] = {}
        with closing(BrokerConnection(node.bootstrap)) as connection:
            cluster = Cluster(connection)
            cluster.await_coordinators()
            for name, story in STORIES.items():
                self.steps[name] = list(story(connection, cluster))
        self.records: dict[str, list[Row]] = streams_records(node.data)


@pytest.fixture(scope="module")
def apache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Told]:
    with ApacheNode(tmp_path_factory.mktemp("apache"), overrides=SETTINGS) as node:
        yield Told(node)


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Told]:
    with ServerProcess(tmp_path_factory.mktemp("ours"), overrides=OURS | SETTINGS) as node:
        yield Told(node)


@pytest.mark.parametrize("story", STORIES)
def test_both_answer_every_step_alike(apache: Told, ours: Told, story: str) -> None:
    wanted, found = apache.steps[story], ours.steps[story]
    assert [name for name, _ in found] == [name for name, _ in wanted]
    for (name, answer), (_, other) in zip(wanted, found, strict=True):
        assert other == answer, name


def test_both_write_the_same_records(apache: Told, ours: Told) -> None:
    kinds = {kind for rows in apache.records.values() for kind, _, _ in rows}
    assert kinds == KINDS.keys()
    assert ours.records.keys() == apache.records.keys()
    for group, rows in apache.records.items():
        assert ours.records[group] == rows, group


def test_both_ask_for_the_same_rights(secured: tuple[SecuredApache, SecuredNode]) -> None:
    apache, ours = secured
    assert list(rights_story(ours.secure)) == list(rights_story(apache.secure))
