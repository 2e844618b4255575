"""The nodes that the suite judges: each is one broker and controller in its second life.

The second start brings the quorum into epoch 2, which some cases need.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from kraft_wire.conformance.case import Listener, all_cases
from kraft_wire.conformance.connection import split_address
from kraft_wire.conformance.profile import read_profile
from kraft_wire.conformance.run import rows_of, run_rows
from kraft_wire.conformance.target import Target, learn_target
from kraft_wire.conformance.verdict import Outcome, Verdict
from kraft_wire.wire.generated.messages import RELEASE
from tests.apache.node import ApacheNode
from tests.quorum_processes import QuorumProcesses
from tests.waiting import HANG_S

__all__ = ["Targets", "apache_node", "judged", "our_node", "targets", "until_one_fails"]

Targets = Mapping[Listener, Target]

_SINGLE = {
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "4",
    "num.partitions": "4",
    "group.initial.rebalance.delay.ms": "0",
}

_AT_ONCE = 24
"""Rows; enough to keep four connections busy, few enough to stop soon."""


def targets(broker: str, controller: str | None = None) -> Targets:
    """Return the listeners of a node that runs."""
    found = {Listener.BROKER: learn_target(split_address(broker), HANG_S)}
    if controller is not None:
        found[Listener.CONTROLLER] = learn_target(split_address(controller), HANG_S)
    return found


@contextmanager
def our_node(directory: Path) -> Iterator[Targets]:
    """Run a node of ours."""
    with QuorumProcesses(directory, 1, is_combined=True, overrides=_SINGLE) as node:
        node.stop(1)
        node.start(1)
        yield targets(node.client(1), node.controller(1))


@contextmanager
def apache_node(directory: Path, release: str = RELEASE) -> Iterator[Targets]:
    """Run a node of Apache Kafka."""
    node = ApacheNode(directory, release=release)
    node.format()
    node.start()
    try:
        node.stop()
        node.start()
        yield targets(node.bootstrap, node.controller_bootstrap)
    finally:
        node.stop()


def judged(
    node: Targets, *only: str, profile: str = "apache-4.3", keeps_exchanges: bool = False
) -> list[Outcome]:
    """Run the rows of a profile, or some of them."""
    rows = rows_of(all_cases(), read_profile(profile), only)
    return run_rows(rows, dict(node), parallel=4, keeps_exchanges=keeps_exchanges)


def until_one_fails(node: Targets, only: Sequence[str] = ()) -> tuple[str, int]:
    """Run rows until some do not pass; return the first of those and how many rows it took."""
    rows = rows_of(all_cases(), read_profile("apache-4.3"), only)
    for start in range(0, len(rows), _AT_ONCE):
        outcomes = run_rows(rows[start : start + _AT_ONCE], dict(node), parallel=4)
        failed = [each.row for each in outcomes if each.verdict is not Verdict.PASSED]
        if failed:
            return failed[0], start + len(outcomes)
    return "", len(rows)
