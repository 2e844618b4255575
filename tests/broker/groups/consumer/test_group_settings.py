"""Settings of consumer groups: the broker's, one group's own, and the broker's limits."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kraft_wire.metadata.image import GROUP_RESOURCE
from kraft_wire.settings.server_assignors import UnknownAssignor, assignor_names
from kraft_wire.wire.generated.error_code import ErrorCode
from tests.broker.groups.harness import Harness
from tests.broker.groups.test_consumer_group_describe import describe
from tests.broker.groups.test_consumer_group_heartbeat import (
    assigned,
    group_in,
    joining,
    send,
    staying,
    with_topic,
)

RANGE_CLASS = "org.apache.kafka.coordinator.group.assignor.RangeAssignor"


def configure(harness: Harness, **values: str) -> None:
    """Give the group settings of its own."""
    own = {name.replace("_", "."): value for name, value in values.items()}
    configs = {(GROUP_RESOURCE, "group"): own}
    harness.publish(replace(harness.image, configs=configs))


@pytest.mark.parametrize(
    ("own", "effective"), [("50000", 50_000), ("1", 45_000), ("x", 45_000), ("70000", 60_000)]
)
def test_a_group_has_its_own_session_timeout_within_the_limits(own: str, effective: int) -> None:
    """848-FEAT-06, 848-TIME-01: a stored value below the limit counts as the limit."""
    harness = with_topic()
    configure(harness, consumer_session_timeout_ms=own)
    send(harness, joining())
    harness.advance(effective - 1)
    assert not group_in(harness).is_empty
    harness.advance(1)
    assert group_in(harness).is_empty


@pytest.mark.parametrize(("own", "effective"), [("7000", 7_000), ("1", 5_000), ("99999", 15_000)])
def test_a_group_has_its_own_heartbeat_interval_within_the_limits(own: str, effective: int) -> None:
    """848-FEAT-06, 848-TIME-02."""
    harness = with_topic()
    configure(harness, consumer_heartbeat_interval_ms=own)
    assert send(harness, joining()).response.heartbeat_interval_ms == effective


def test_a_changed_assignment_interval_acts_at_once_and_the_groups_own_wins() -> None:
    """848-ASSIGN-03: 0 is at once, though the broker's is a second."""
    harness = Harness(group_consumer_assignment_interval_ms=1_000)
    harness.create_topic("topic", 2)
    assert send(harness, joining(member_id="first")).response.member_epoch == 2
    waits = send(harness, joining(member_id="second")).response
    assert (waits.member_epoch, waits.assignment.topic_partitions) == (2, [])
    configure(harness, consumer_assignment_interval_ms="0")
    assert assigned(send(harness, staying(2, member_id="first"))) == [0]


def test_the_first_configured_assignor_is_the_default() -> None:
    """848-ASSIGN-04, 848-ASSIGN-05: also by the names of Kafka's classes."""
    harness = with_topic(group_consumer_assignors=(RANGE_CLASS,))
    assert send(harness, joining()).error == ErrorCode.NONE
    assert describe(harness, "group")[0].assignor_name == "range"
    refused = send(harness, joining(member_id="other", server_assignor="uniform")).response
    assert refused.error_code == ErrorCode.UNSUPPORTED_ASSIGNOR
    assert refused.error_message == (
        "ServerAssignor uniform is not supported. Supported assignors: range."
    )


def test_an_assignor_that_is_not_built_in_is_refused() -> None:
    with pytest.raises(UnknownAssignor, match=r"Class org\.example\.Sticky cannot be found"):
        assignor_names(("uniform", "org.example.Sticky"))


@pytest.mark.parametrize(("protocols", "error"), [(("classic",), 35), (("Consumer",), 0)])
def test_a_broker_may_leave_the_protocol_out(protocols: tuple[str, ...], error: int) -> None:
    """848-FEAT-02, 848-FEAT-03."""
    harness = with_topic(group_coordinator_rebalance_protocols=protocols)
    assert send(harness, joining()).error == error
    assert describe(harness, "group")[0].error_code == error


def test_a_group_may_have_a_member_limit_and_known_members_pass() -> None:
    """848-HB-17."""
    harness = with_topic(group_consumer_max_size=1)
    send(harness, joining())
    full = send(harness, joining(member_id="second")).response
    assert full.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert full.error_message == (
        "The consumer group has reached its maximum capacity of 1 members."
    )
    assert send(harness, staying(2)).error == ErrorCode.NONE
