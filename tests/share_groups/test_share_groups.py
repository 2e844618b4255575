"""Share groups (KIP-932) of clients that we did not write, on Apache's broker and on ours."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.apache.node import ApacheNode
from tests.server_process import ServerProcess
from tests.share_groups.librdkafka import RECORDS, story
from tests.share_groups.scenarios import SCENARIOS, SETTINGS, seen_by_scenario

pytestmark = [pytest.mark.java, pytest.mark.client, pytest.mark.timeout(900)]

EXPECTED: dict[str, Any] = {
    "implicit": {"records": 300, "counts": [1]},
    "limit": [1, 2, 3, 4, 5],
    "renewed": {},
    "record-limit": [3, 3, 3, 1],
    "read-committed": {"0": 1, "2": 1, "3": 1, "5": 1, "6": 1, "8": 1},
    "latest": {},
}
"""What KIP-932, KIP-1206 (record limit) and KIP-1222 (renewal) promise."""


@pytest.fixture(scope="module")
def apache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    node = ApacheNode(tmp_path_factory.mktemp("apache"), overrides=SETTINGS)
    node.format()
    node.start()
    try:
        yield node.bootstrap
    finally:
        node.stop()


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with ServerProcess(tmp_path_factory.mktemp("ours"), overrides=SETTINGS) as server:
        yield server.bootstrap


@pytest.fixture(scope="module")
def seen_on_apache(apache: str) -> dict[str, Any]:
    return seen_by_scenario(apache)


@pytest.fixture(scope="module")
def seen_on_ours(ours: str) -> dict[str, Any]:
    return seen_by_scenario(ours)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_members_of_apaches_client_see_the_same(
    seen_on_apache: dict[str, Any], seen_on_ours: dict[str, Any], scenario: str
) -> None:
    assert seen_on_ours[scenario] == seen_on_apache[scenario]
    if scenario in EXPECTED:
        assert seen_on_apache[scenario] == EXPECTED[scenario]


@pytest.mark.parametrize("make", ["apache", "ours"])
def test_members_of_librdkafka_are_given_released_records_again(
    request: pytest.FixtureRequest, make: str
) -> None:
    again = story(request.getfixturevalue(make))
    assert again == dict.fromkeys(range(0, RECORDS, 3), 1)
