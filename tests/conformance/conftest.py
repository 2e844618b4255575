"""One run of the whole suite for each make, shared by the tests that look at it."""

from typing import Any

import pytest

from kraft_wire.conformance.verdict import Outcome
from kraft_wire.wire.generated.messages import RELEASE
from tests.conformance.judged_nodes import GUARD, SNAPSHOTS, apache_node, judged, our_node
from tests.conformance.recording import NEWER, NEWER_RELEASE, OLDER, OLDER_RELEASE, Node, both

CHANGED = ("api_versions", "delete_groups", "describe_producers", "framing", "streams_*", "*share*")
"""Cases of the APIs that the newer release has changed; `make record-apache` asks all."""


def of_both(open_node: Node, guarded: Node, **options: Any) -> list[Outcome]:
    """Judge a node without an authorizer, and one with it."""
    with open_node as node:
        outcomes = judged(node, **options)
    with guarded as node:
        return outcomes + judged(node, guarded=True, **options)


@pytest.fixture(scope="session")
def our_outcomes(tmp_path_factory: pytest.TempPathFactory) -> list[Outcome]:
    open_node = our_node(tmp_path_factory.mktemp("ours"))
    guarded = our_node(tmp_path_factory.mktemp("guarded"), GUARD)
    return of_both(open_node, guarded, keeps_exchanges=True)


@pytest.fixture(scope="session")
def apache_outcomes(tmp_path_factory: pytest.TempPathFactory) -> list[Outcome]:
    nodes = both(tmp_path_factory.mktemp("apache"), "node", RELEASE, SNAPSHOTS)
    return of_both(*nodes, keeps_exchanges=True)


@pytest.fixture(scope="session")
def older_apache_outcomes(tmp_path_factory: pytest.TempPathFactory) -> list[Outcome]:
    nodes = both(tmp_path_factory.mktemp("older"), "node", OLDER_RELEASE, SNAPSHOTS)
    return of_both(*nodes, profile=OLDER, only_newest=True)


@pytest.fixture(scope="session")
def newer_apache_outcomes(tmp_path_factory: pytest.TempPathFactory) -> list[Outcome]:
    with apache_node(tmp_path_factory.mktemp("newer"), NEWER_RELEASE) as node:
        return judged(node, *CHANGED, profile=NEWER, only_newest=True)
