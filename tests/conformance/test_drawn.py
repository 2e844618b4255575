"""Drawn requests: the same for every broker, and answered by ours as by Apache Kafka."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kraft_wire.conformance.command import app
from kraft_wire.conformance.differences import differences
from kraft_wire.conformance.drawn.sequence import seed_range
from kraft_wire.conformance.recording import Recording
from kraft_wire.testing.cluster import Cluster
from tests.apache.differential.test_differential import SETTINGS
from tests.apache.node import ApacheNode
from tests.conformance.drawn import DRAWN_RECORDING, REQUESTS, SEEDS, drawn_answers
from tests.conformance.test_both_makes import shown
from tests.conformance.test_suite import server
from tests.server_process import ServerProcess

__all__ = ["server"]


@pytest.fixture
def ours(tmp_path: Path) -> Iterator[str]:
    """Our broker with the settings of `apache_node`."""
    with ServerProcess(tmp_path, overrides=SETTINGS) as process:
        yield process.bootstrap


def test_same_seed_is_answered_alike_twice_and_reaches_every_api(server: ServerProcess) -> None:
    first, second = (drawn_answers(server.bootstrap, range(8)) for _ in range(2))
    assert differences(first, second) == []
    exchanges = [each for row in first.rows for each in row.exchanges]
    assert len(exchanges) > 8 * REQUESTS * 0.9
    assert len({each.api_key for each in exchanges}) == 26
    assert len({(each.api_key, each.version) for each in exchanges}) > 90


@pytest.mark.java
def test_apache_and_we_answer_drawn_requests_alike(ours: str, apache_node: ApacheNode) -> None:
    seeds = SEEDS[::2]
    theirs = drawn_answers(apache_node.bootstrap, seeds)
    assert shown(differences(theirs, drawn_answers(ours, seeds))) == []
    assert shown(differences(Recording.read(DRAWN_RECORDING), theirs)) == []


@pytest.fixture(scope="module")
def in_process() -> Iterator[str]:
    with Cluster(configs=SETTINGS) as cluster:
        yield cluster.bootstrap_servers


@pytest.mark.parametrize("seed", SEEDS)
def test_drawn_requests_are_answered_as_recorded(in_process: str, seed: int) -> None:
    answers = drawn_answers(in_process, range(seed, seed + 1))
    assert shown(differences(Recording.read(DRAWN_RECORDING), answers)) == []


def test_random_without_another_broker_is_refused() -> None:
    result = CliRunner().invoke(app, ["--bootstrap-server", "127.0.0.1:1", "--random", "0:1"])
    assert result.exit_code == 2
    assert "--random needs --compare A B" in result.output


def test_command_compares_two_brokers(server: ServerProcess) -> None:
    places = [server.bootstrap, server.bootstrap]
    result = CliRunner().invoke(app, ["--compare", *places, "--random", "3:5", "--requests", "20"])
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize("text", ["", "3", "3:", ":3", "3:3", "4:3", "a:b", "-1:3", "1:2:3"])
def test_range_that_is_none_is_named(text: str) -> None:
    with pytest.raises(ValueError, match="give two numbers A:B with A < B"):
        seed_range(text)
