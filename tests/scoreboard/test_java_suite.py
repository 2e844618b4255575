"""Apache's own tests find clusters of ours where they look for clusters."""

from pathlib import Path

import pytest

from tests.scoreboard.java_suite import OWN_TESTS
from tests.scoreboard.results import PASSED, SKIPPED

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(900)]


def test_tests_pass_on_our_nodes_or_reach_inside_a_broker(tmp_path: Path) -> None:
    wanted = [
        "kafka.server.HeartbeatRequestTest",
        "unit.kafka.server.AllocateProducerIdsRequestTest",
    ]
    found = OWN_TESTS["apache-core"].run("kraft-wire", tmp_path / "suite.log", wanted)
    assert {name.partition(".")[0]: verdict for name, verdict in found.items()} == {
        "HeartbeatRequestTest": PASSED,
        "AllocateProducerIdsRequestTest": SKIPPED,
    }
