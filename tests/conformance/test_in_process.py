"""Each case in its first and its last version on a node in this process.

`test_both_makes` runs the whole suite on a node with a process of its own. Here the runner of
mutants sees which case runs a line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest

from kraft_wire.conformance.answers import Answers
from kraft_wire.conformance.run import run_rows
from kraft_wire.testing.cluster import Cluster
from tests.conformance.judged_nodes import (
    GUARD,
    PROFILE,
    SETTINGS,
    Targets,
    is_guarded,
    not_passed,
    targets,
)
from tests.conformance.stories import case_modules, kept_rows

ELSEWHERE = {
    "describe_quorum.addresses_of_the_voters": "voters of such a node are configured statically",
    "describe_log_dirs.size_of_the_volume": "its log directory is memory",
}
"""Cases that such a node cannot pass."""


@contextmanager
def running(more: Mapping[str, str]) -> Iterator[Targets]:
    """A node in its second life."""
    configs = {**SETTINGS, "group.min.session.timeout.ms": "6000", **more}
    with Cluster(configs=configs) as cluster:
        cluster.stop_node(1)
        cluster.start_node(1)
        yield targets(cluster.bootstrap_servers, cluster.bootstrap_controllers)


@pytest.fixture(scope="module")
def open_node() -> Iterator[Targets]:
    with running({}) as node:
        yield node


@pytest.fixture(scope="module")
def guarded_node() -> Iterator[Targets]:
    """One with an authorizer."""
    with running(GUARD) as node:
        yield node


@pytest.mark.parametrize("module", case_modules())
def test_cases_pass(request: pytest.FixtureRequest, module: str) -> None:
    name = "guarded_node" if is_guarded(module) else "open_node"
    node: Targets = request.getfixturevalue(name)
    rows = [each for each in kept_rows([module]) if each.case.name not in ELSEWHERE]
    answers = Answers.read(PROFILE)
    assert not_passed(run_rows(rows, dict(node), parallel=4, answers=answers)) == []


def test_cases_that_run_elsewhere_exist() -> None:
    assert ELSEWHERE.keys() <= {each.case.name for each in kept_rows()}
