"""Every operation of the client library that waits gives up at the caller's deadline, exactly.

Neither the time that one answer may take, nor a default, nor the library's own pauses end it.
"""

from collections.abc import Callable

import pytest

from kraft_wire.client.cluster import ClusterRefused, ClusterSettings, RetryDeadline
from kraft_wire.client.coordinator import GroupCoordinator
from kraft_wire.wire.generated.error_code import ErrorCode as E
from kraft_wire.wire.generated.heartbeat import HeartbeatRequest, HeartbeatResponse
from kraft_wire.wire.generated.join_group import JoinGroupRequest
from tests.client.test_cluster import BOOTSTRAP, A, B, Brokers
from tests.client.test_group_member import Group, member_of
from tests.client.test_producing import no_time

FOR_EVER = 999


def _join(seconds: float) -> None:
    group = Group()
    group.settings = ClusterSettings(("nowhere:1",), deadline_seconds=seconds)
    group.errors[JoinGroupRequest] = [E.REBALANCE_IN_PROGRESS] * FOR_EVER
    member_of(group).join()


def _topic_names(seconds: float) -> None:
    brokers = Brokers(seconds)
    brokers.down = set(BOOTSTRAP)
    brokers.topic_names()


def _partitions(seconds: float) -> None:
    brokers = Brokers(seconds)
    brokers.topic_errors = [E.LEADER_NOT_AVAILABLE] * FOR_EVER
    brokers.partitions_of(["t"])


def _offsets(seconds: float) -> None:
    brokers = Brokers(seconds)
    brokers.errors = {A: [E.NOT_LEADER_OR_FOLLOWER] * FOR_EVER}
    brokers.offsets_at({A: 1, B: 1})


def _ask_a_coordinator(seconds: float) -> None:
    brokers = Brokers(seconds)
    brokers.down = set(BOOTSTRAP)
    with GroupCoordinator(brokers, "g") as coordinator:
        request = HeartbeatRequest(group_id="g")
        coordinator.send(request, HeartbeatResponse, lambda answer: answer.error_code)


@pytest.mark.parametrize("seconds", [0.3, 7.0, 45.0, 200.0])
@pytest.mark.parametrize("act", [_join, _topic_names, _partitions, _offsets, _ask_a_coordinator])
def test_an_operation_gives_up_at_the_deadline(
    act: Callable[[float], None], seconds: float
) -> None:
    with no_time():
        before, after = RetryDeadline(seconds - 0.001), RetryDeadline(seconds + 0.001)
        with pytest.raises(ClusterRefused):
            act(seconds)
        assert (before.is_over, after.is_over) == (True, False)
