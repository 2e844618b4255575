"""Each case in its first and its last version on a node in this process.

`test_both_makes` runs the whole suite on a node with a process of its own. Here the runner of
mutants sees which case runs a line.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kraft_wire.conformance.answers import Answers
from kraft_wire.conformance.run import run_rows
from kraft_wire.testing.cluster import Cluster
from tests.conformance.judged_nodes import PROFILE, SETTINGS, Targets, not_passed, targets
from tests.conformance.stories import case_modules, kept_rows

ELSEWHERE = {
    "describe_quorum.addresses_of_the_voters": "voters of such a node are configured statically",
    "describe_log_dirs.size_of_the_volume": "its log directory is memory",
}
"""Cases that such a node cannot pass."""


@pytest.fixture(scope="module")
def node() -> Iterator[Targets]:
    """A node in its second life."""
    with Cluster(configs={**SETTINGS, "group.min.session.timeout.ms": "6000"}) as cluster:
        cluster.stop_node(1)
        cluster.start_node(1)
        yield targets(cluster.bootstrap_servers, cluster.bootstrap_controllers)


@pytest.mark.parametrize("module", case_modules())
def test_cases_pass(node: Targets, module: str) -> None:
    rows = [each for each in kept_rows([module]) if each.case.name not in ELSEWHERE]
    answers = Answers.read(PROFILE)
    assert not_passed(run_rows(rows, dict(node), parallel=4, answers=answers)) == []


def test_cases_that_run_elsewhere_exist() -> None:
    assert ELSEWHERE.keys() <= {each.case.name for each in kept_rows()}
