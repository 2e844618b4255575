"""The nodes that the suite judges: each is one broker and controller in its second life.

The second start brings the quorum into epoch 2, which some cases need.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType

from kraft_wire.conformance.answers import Answers
from kraft_wire.conformance.case import Listener, all_cases
from kraft_wire.conformance.connection import split_address
from kraft_wire.conformance.profile import read_profile
from kraft_wire.conformance.quorum import quorum_facts
from kraft_wire.conformance.run import rows_of, run_rows
from kraft_wire.conformance.subject import Subject
from kraft_wire.conformance.target import Target, learn_target
from kraft_wire.conformance.verdict import Mismatch, Outcome, Verdict
from kraft_wire.wire.generated.messages import RELEASE
from tests.apache.node import ApacheNode
from tests.apache.three_nodes import ThreeNodes
from tests.quorum_processes import QuorumProcesses
from tests.waiting import HANG_S

__all__ = [
    "GUARD",
    "PROFILE",
    "SETTINGS",
    "SNAPSHOTS",
    "Targets",
    "apache_node",
    "is_guarded",
    "judged",
    "not_passed",
    "our_node",
    "targets",
    "three_apache_nodes",
    "three_nodes_of_ours",
    "until_one_fails",
]

PROFILE = "apache-4.3"
"""Of the release that is recorded."""

Targets = Mapping[Listener, Target]

_SINGLE = {
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "4",
    "num.partitions": "4",
    "group.initial.rebalance.delay.ms": "0",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.num.partitions": "4",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.num.partitions": "4",
    "share.coordinator.state.topic.min.isr": "1",
}

SNAPSHOTS = {"metadata.log.max.snapshot.interval.ms": "1000"}
"""So that a young node has a snapshot of its metadata log for the cases of FetchSnapshot."""

SETTINGS = {**_SINGLE, **SNAPSHOTS}
"""Of one node of ours."""

GUARDED: Sequence[str] = ("create_acls", "delete_acls", "describe_acls")
"""Files of cases that need an authorizer, while those of `acls` need a node without one."""
GUARD = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
"""Settings of a node with an authorizer, to which whoever asks is a super user."""

_AT_ONCE = 24
"""Rows; enough to keep four connections busy, few enough to stop soon."""


def targets(broker: str, controller: str | None = None) -> Targets:
    """Return the listeners of a node that runs."""
    found = {Listener.BROKER: learn_target(split_address(broker), HANG_S)}
    if controller is not None:
        found[Listener.CONTROLLER] = learn_target(split_address(controller), HANG_S)
    return found


def is_guarded(name: str) -> bool:
    """Whether a case, or a row, needs an authorizer."""
    return name.partition(".")[0] in GUARDED


@contextmanager
def our_node(directory: Path, more: Mapping[str, str] = MappingProxyType({})) -> Iterator[Targets]:
    """Run a node of ours with further settings."""
    overrides = {**SETTINGS, **more}
    with QuorumProcesses(directory, 1, is_combined=True, overrides=overrides) as node:
        node.stop(1)
        node.start(1)
        yield targets(node.client(1), node.controller(1))


@contextmanager
def apache_node(
    directory: Path, release: str = RELEASE, overrides: Mapping[str, str] | None = None
) -> Iterator[Targets]:
    """Run a node of Apache Kafka; by default it makes snapshots of its metadata log at once."""
    settings = SNAPSHOTS if overrides is None else overrides
    node = ApacheNode(directory, release=release, overrides=settings)
    node.format()
    node.start()
    try:
        node.stop()
        node.start()
        yield targets(node.bootstrap, node.controller_bootstrap)
    finally:
        node.kill()  # its orderly stop may hang, and no test reads its directory afterwards


@contextmanager
def three_apache_nodes(directory: Path) -> Iterator[Targets]:
    """Run three nodes of Apache Kafka; the one that is judged is the active controller."""
    with ThreeNodes(directory) as cluster:
        active = _active_controller(cluster.nodes[1].bootstrap)
        node = cluster.nodes[active]
        yield targets(node.bootstrap, node.controller_bootstrap)


@contextmanager
def three_nodes_of_ours(directory: Path) -> Iterator[Targets]:
    """Run three nodes of ours; the one that is judged is the active controller."""
    with QuorumProcesses(directory, 3, is_combined=True, overrides=_SINGLE) as cluster:
        active = _active_controller(cluster.client(1))
        yield targets(cluster.client(active), cluster.controller(active))


def _active_controller(address: str) -> int:
    """Return the node that leads the quorum, as a broker reports."""
    broker = Subject(learn_target(split_address(address), HANG_S), "")
    try:
        for _ in broker.attempts("an active controller"):
            with suppress(Mismatch):
                return quorum_facts(broker).leader_id
    finally:
        broker.close()
    raise AssertionError("attempts end in an exception")


def judged(
    node: Targets,
    *only: str,
    profile: str = PROFILE,
    keeps_exchanges: bool = False,
    has_answers: bool = True,
    only_newest: bool = False,
    listener: Listener | None = None,
    guarded: bool = False,
) -> list[Outcome]:
    """Run the rows of a profile, or some of them.

    `only_newest`: a case in its newest version. `listener`: those that ask a broker, or those that
    ask a controller. `guarded`: those that need an authorizer, else the others.
    """
    cases = [
        each
        for each in all_cases()
        if listener in (None, each.listener) and is_guarded(each.name) is guarded
    ]
    rows = rows_of(cases, read_profile(profile), only)
    if only_newest:
        rows = list({row.case.name: row for row in rows}.values())
    answers = Answers.read(profile) if has_answers else None
    return run_rows(rows, dict(node), parallel=4, keeps_exchanges=keeps_exchanges, answers=answers)


def until_one_fails(node: Targets, only: Sequence[str] = ()) -> tuple[str, int]:
    """Run rows until some do not pass; return the first of those and how many rows it took."""
    cases = [each for each in all_cases() if not is_guarded(each.name)]
    rows = rows_of(cases, read_profile(PROFILE), only)
    answers = Answers.read(PROFILE)
    for start in range(0, len(rows), _AT_ONCE):
        outcomes = run_rows(rows[start : start + _AT_ONCE], dict(node), parallel=4, answers=answers)
        failed = [each.row for each in outcomes if each.verdict is not Verdict.PASSED]
        if failed:
            return failed[0], start + len(outcomes)
    return "", len(rows)


def not_passed(outcomes: Sequence[Outcome]) -> list[str]:
    """Return a line for each row that did not pass."""
    return [
        f"{each.row}: {each.verdict}, expected {each.expected}, got {each.seen} at {each.path}"
        for each in outcomes
        if each.verdict is not Verdict.PASSED
    ]
