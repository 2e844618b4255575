"""Requests to a group's coordinator: dead connections, and how long one answer may take."""

from typing import Any
from unittest.mock import MagicMock, patch

import pytest

from kraft_wire.client.cluster import ClusterClient, ClusterRefused, ClusterSettings
from kraft_wire.client.connection import BrokerConnectionError, NotAuthenticated
from kraft_wire.client.coordinator import GroupCoordinator
from kraft_wire.wire.generated.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kraft_wire.wire.generated.heartbeat import HeartbeatRequest, HeartbeatResponse
from tests.client.test_producing import no_time


class OnlyBroker(ClusterClient):
    """A broker that coordinates every group; the connection that is known to it may be dead."""

    def __init__(self) -> None:
        super().__init__(ClusterSettings(("nowhere:1",), request_seconds=30, deadline_seconds=5))
        self.is_dead = False
        self.patience: list[float] = []
        self.found = FindCoordinatorResponse(host="only", port=1)
        self.beats: list[int | Exception] = []
        """Errors of the next heartbeats; an empty list means no error."""

    def forget(self) -> None:
        self.is_dead = False

    def any_broker(self) -> Any:
        return self

    def wait_at_most(self, seconds: float) -> None:
        self.patience.append(seconds)

    def version_of(self, request: Any, *, at_most: int | None = None) -> int:
        return request.MAX_VERSION if at_most is None else at_most

    def send(self, request: Any, _: type[object], *, version: int) -> Any:
        if self.is_dead:
            raise BrokerConnectionError("lost")
        if isinstance(request, FindCoordinatorRequest):
            return self.found
        said = self.beats.pop(0) if self.beats else 0
        if isinstance(said, Exception):
            raise said
        return HeartbeatResponse(error_code=said)


@pytest.fixture
def broker() -> OnlyBroker:
    return OnlyBroker()


def beat(coordinator: GroupCoordinator, seconds: float | None = None) -> int:
    request = HeartbeatRequest(group_id="g")
    return coordinator.send(
        request, HeartbeatResponse, lambda answer: answer.error_code, seconds=seconds
    ).error_code


def test_the_coordinator_is_looked_for_over_a_new_connection(broker: OnlyBroker) -> None:
    """A broker that restarted closed all of them, that for metadata too."""
    broker.is_dead = True
    with no_time(), patch("kraft_wire.client.coordinator.connect", lambda *_: broker):
        assert beat(GroupCoordinator(broker, "g")) == 0


def test_whether_the_coordinator_serves_a_request(broker: OnlyBroker) -> None:
    coordinator = GroupCoordinator(broker, "g")
    with no_time(), patch("kraft_wire.client.coordinator.connect", lambda *_: broker):
        beat(coordinator)
    assert coordinator.serves(HeartbeatRequest(group_id="g"))
    broker.version_of = MagicMock(side_effect=BrokerConnectionError("not served"))  # type: ignore[method-assign]  # an older broker
    assert not coordinator.serves(HeartbeatRequest(group_id="g"))


def test_patience_for_one_answer_is_not_that_for_the_next(broker: OnlyBroker) -> None:
    """A join waits for the whole group; a heartbeat on the same connection does not."""
    with no_time(), patch("kraft_wire.client.coordinator.connect", lambda *_: broker):
        coordinator = GroupCoordinator(broker, "g")
        for seconds in (70.0, None):
            assert beat(coordinator, seconds) == 0
    assert broker.patience == [70, 30]


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (30, "group g: GROUP_AUTHORIZATION_FAILED Group authorization failed."),
        (15, "group g: no coordinator: COORDINATOR_NOT_AVAILABLE"),
    ],
)
def test_a_group_without_a_coordinator_is_named(broker: OnlyBroker, code: int, words: str) -> None:
    """An error that passes is waited for, any other ends the request with the broker's words."""
    broker.found = FindCoordinatorResponse(
        error_code=code, error_message="Group authorization failed."
    )
    with no_time(), pytest.raises(ClusterRefused) as refused:
        beat(GroupCoordinator(broker, "g"))
    assert str(refused.value) == words


def test_a_coordinator_that_has_moved_is_asked_elsewhere_until_the_deadline(
    broker: OnlyBroker,
) -> None:
    """NOT_COORDINATOR and COORDINATOR_LOAD_IN_PROGRESS are retriable; REBALANCE_IN_PROGRESS not."""
    broker.beats = [16, 14, 16, 27]
    with no_time(), patch("kraft_wire.client.coordinator.connect", lambda *_: broker):
        assert beat(GroupCoordinator(broker, "g")) == 27
        broker.beats = [16] * 1_000
        with pytest.raises(ClusterRefused, match="group g: NOT_COORDINATOR"):
            beat(GroupCoordinator(broker, "g"))


def test_a_login_that_is_refused_is_not_tried_again(broker: OnlyBroker) -> None:
    broker.beats = [NotAuthenticated("no login at only:1"), 0]
    with (
        no_time(),
        patch("kraft_wire.client.coordinator.connect", lambda *_: broker),
        pytest.raises(ClusterRefused, match="no login at only:1"),
    ):
        beat(GroupCoordinator(broker, "g"))
    assert broker.beats == [0]
