"""Settings of streams groups: the broker's, one group's own, and the broker's limits."""

from __future__ import annotations

import pytest

from kraft_wire.wire.generated.streams_group_heartbeat import TopicInfo
from tests.broker.groups.consumer.test_group_settings import configure
from tests.broker.groups.harness import Harness
from tests.broker.groups.test_streams_group_heartbeat import (
    group_in,
    joining,
    send,
    statuses,
    staying,
    topology,
    with_topic,
)


@pytest.mark.parametrize(
    ("own", "effective"), [("50000", 50_000), ("1", 45_000), ("x", 45_000), ("70000", 60_000)]
)
def test_a_group_has_its_own_session_timeout_within_the_limits(own: str, effective: int) -> None:
    harness = with_topic()
    configure(harness, streams_session_timeout_ms=own)
    send(harness, joining())
    harness.advance(effective - 1)
    assert not group_in(harness).is_empty
    harness.advance(1)
    assert group_in(harness).is_empty


@pytest.mark.parametrize(("own", "effective"), [("7000", 7_000), ("1", 5_000), ("99999", 15_000)])
def test_a_group_has_its_own_heartbeat_interval_within_the_limits(own: str, effective: int) -> None:
    harness = with_topic()
    configure(harness, streams_heartbeat_interval_ms=own)
    assert send(harness, joining()).response.heartbeat_interval_ms == effective


def test_the_groups_own_initial_rebalance_delay_has_no_limits() -> None:
    harness = with_topic(group_streams_initial_rebalance_delay_ms=3_000)
    configure(harness, streams_initial_rebalance_delay_ms="0")
    assert statuses(send(harness, joining())) == []
    assert statuses(send(harness, joining(group_id="other"))) == [5]


def test_the_groups_own_assignment_interval_wins() -> None:
    harness = with_topic(group_streams_assignment_interval_ms=1_000)
    send(harness, joining())
    assert statuses(send(harness, joining(member_id="second"))) == [5]
    configure(harness, streams_assignment_interval_ms="0")
    assert statuses(send(harness, joining(member_id="second"))) == []


def stateful() -> Harness:
    """Return a group of one member with a changelog topic."""
    harness = with_topic()
    harness.create_topic("log", 3)
    changelogs = [TopicInfo(name="log")]
    for member in "ab":
        given = topology(state_changelog_topics=changelogs)
        send(harness, joining(member_id=member, process_id=member, topology=given))
    return harness


@pytest.mark.parametrize(("own", "effective"), [("1", "1"), ("2", "2"), ("9", "2")])
def test_other_standby_replicas_raise_the_epoch(own: str, effective: str) -> None:
    harness = stateful()
    before = group_in(harness).epoch
    configure(harness, streams_num_standby_replicas=own)
    send(harness, staying(group_in(harness).members["a"].member_epoch, member_id="a"))
    group = group_in(harness)
    assert group.epoch == before + 1
    assert group.assignment_configs == {"num.standby.replicas": effective}
    targets = [target.standby for _, target in group.targets.items()]
    assert sum(len(each) for target in targets for each in target.values()) == 3


def test_group_that_is_empty_before_its_first_rebalance_gets_no_targets() -> None:
    """KIP-1071: the initial delay ends, and the group has no member for its tasks."""
    harness = with_topic(group_streams_initial_rebalance_delay_ms=3_000)
    send(harness, joining())
    send(harness, staying(-1))
    group = group_in(harness)
    assert group.is_empty
    before = group.epoch, group.assignment_epoch
    ends = dict(harness.store.ends)
    harness.advance(3_001)
    assert (group.epoch, group.assignment_epoch) == before
    assert harness.store.ends == ends
