"""One run of the whole suite for each make, shared by the tests that look at it."""

import pytest

from kraft_wire.conformance.verdict import Outcome
from tests.conformance.judged_nodes import apache_node, judged, our_node
from tests.conformance.recording import NEWER, NEWER_RELEASE

CHANGED = ("api_versions", "delete_groups", "describe_producers", "framing", "streams_*", "*share*")
"""Cases of the APIs that the newer release has changed; `make record-apache` asks all."""


@pytest.fixture(scope="session")
def our_outcomes(tmp_path_factory: pytest.TempPathFactory) -> list[Outcome]:
    with our_node(tmp_path_factory.mktemp("ours")) as node:
        return judged(node, keeps_exchanges=True)


@pytest.fixture(scope="session")
def apache_outcomes(tmp_path_factory: pytest.TempPathFactory) -> list[Outcome]:
    with apache_node(tmp_path_factory.mktemp("apache")) as node:
        return judged(node, keeps_exchanges=True)


@pytest.fixture(scope="session")
def older_apache_outcomes(tmp_path_factory: pytest.TempPathFactory) -> list[Outcome]:
    with apache_node(tmp_path_factory.mktemp("older"), "3.9.1") as node:
        return judged(node, profile="apache-3.9", only_newest=True)


@pytest.fixture(scope="session")
def newer_apache_outcomes(tmp_path_factory: pytest.TempPathFactory) -> list[Outcome]:
    with apache_node(tmp_path_factory.mktemp("newer"), NEWER_RELEASE) as node:
        return judged(node, *CHANGED, profile=NEWER, only_newest=True)
