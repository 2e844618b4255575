"""Our controllers and Apache's in one quorum: they vote for, follow and lead each other."""

import time
from pathlib import Path

import pytest

from kraft_wire.wire.generated.describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from tests.apache.jars import RELEASE
from tests.apache.mixed_quorum import MixedQuorum
from tests.server.test_quorum_processes import retention, set_retention
from tests.server.wire_client import WireClient
from tests.waiting import HANG_S

pytestmark = [pytest.mark.java, pytest.mark.slow]

SECONDS_MAX = HANG_S


def until_equal(quorum: MixedQuorum) -> None:
    """Wait until every voter has the whole log."""
    deadline = time.monotonic() + SECONDS_MAX
    ends: list[int] = []
    while len(ends) < len(quorum.node_ids) or len(set(ends)) > 1 or ends[0] < 0:
        assert time.monotonic() < deadline, (ends, [quorum.log(each) for each in quorum.our_ids])
        time.sleep(0.1)
        described = quorum.describe(quorum.leader())
        ends = [voter.log_end_offset for voter in described.current_voters]


def decide(quorum: MixedQuorum, value: int) -> None:
    """Set a config at whoever leads; a new leader refuses until it has replayed what was before."""
    deadline = time.monotonic() + SECONDS_MAX
    while set_retention(quorum.controller(quorum.leader()), value) == ErrorCode.NOT_CONTROLLER:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def until_known(quorum: MixedQuorum, value: int) -> None:
    """Wait until all of our controllers have the config."""
    deadline = time.monotonic() + SECONDS_MAX
    while any(retention(quorum.controller(each)) != str(value) for each in quorum.our_ids):
        assert time.monotonic() < deadline, [quorum.log(each) for each in quorum.our_ids]
        time.sleep(0.05)


def registered(address: str) -> list[int]:
    """Return the controllers that a controller knows as registered."""
    with WireClient(address) as client:
        request = DescribeClusterRequest(endpoint_type=2)
        answer = client.call(request, 1, DescribeClusterResponse)
    return sorted(each.broker_id for each in answer.brokers)


@pytest.mark.parametrize(
    ("apache_ids", "release", "metadata_version"),
    [
        ((1, 2), RELEASE, None),
        ((1,), RELEASE, None),
        ((1, 2), "3.9.1", "3.9-IV0"),
        ((1,), "3.9.1", "3.9-IV0"),
        ((1, 2), "4.4.0", "4.3-IV0"),
    ],
    ids=[f"2 of {RELEASE}", f"1 of {RELEASE}", "2 of 3.9.1", "1 of 3.9.1", "2 of 4.4.0"],
)
def test_leadership_goes_round_and_the_logs_stay_equal(
    tmp_path: Path, apache_ids: tuple[int, ...], release: str, metadata_version: str | None
) -> None:
    with MixedQuorum(
        tmp_path, apache_ids, release=release, metadata_version=metadata_version
    ) as quorum:
        decide(quorum, 1_000)
        until_known(quorum, 1_000)
        until_equal(quorum)
        for value in range(1_001, 1_004):
            killed = quorum.leader()
            quorum.kill(killed)
            assert quorum.leader() != killed
            decide(quorum, value)
            quorum.start(killed)
            until_equal(quorum)
            until_known(quorum, value)
        deadline = time.monotonic() + SECONDS_MAX
        for node_id in quorum.node_ids:
            while registered(quorum.controller(node_id)) != quorum.node_ids:
                assert time.monotonic() < deadline, node_id
                time.sleep(0.1)
        until_equal(quorum)
        logs = [quorum.metadata_log(node_id) for node_id in quorum.node_ids]
        shortest = min(len(log) for log in logs)
        assert shortest > 0
        assert all(log[:shortest] == logs[0][:shortest] for log in logs)
        for node_id in apache_ids:
            errors = [line for line in quorum.log(node_id).splitlines() if " ERROR " in line]
            # A registration that is under way while the leadership moves, or that finds no leader
            # in time, is logged as an error, harmlessly: the controller repeats it. So is our
            # question to a controller that has not replayed its metadata.version yet.
            harmless = (
                "CONTROLLER_REGISTRATION",
                "RegistrationResponseHandler: channel manager timed out",
                "apiKey=DESCRIBE_CLUSTER",
            )
            strange = [line for line in errors if not any(each in line for each in harmless)]
            assert strange == [], "\n".join([*strange, quorum.log(node_id)])  # with what was thrown
