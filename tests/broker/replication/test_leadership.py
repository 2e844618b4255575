"""A leader's state of one partition, rule by rule: members, commits, wanted ISRs and answers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kraft_wire.broker.replication.follower_state import NEVER_MS, NO_BROKER_EPOCH, FollowerState
from kraft_wire.broker.replication.leadership import IsrChange, Leadership
from kraft_wire.broker.replication.registered_brokers import RegisteredBrokers
from kraft_wire.broker.settings import BrokerSettings
from kraft_wire.metadata.image import MetadataImage
from kraft_wire.model import Offset
from kraft_wire.wire.generated.alter_partition import BrokerState, ResponsePartitionData
from kraft_wire.wire.generated.error_code import ErrorCode as E
from tests.broker.small_broker import broker_image, image_of, partition_image

LAG_MAX_MS = 100
NOW_MS = 1_000


def registered(**of_broker_2: Any) -> RegisteredBrokers:
    """Brokers 1 to 3 with the epochs 11 to 13."""
    brokers = [broker_image(1), replace(broker_image(2), **of_broker_2), broker_image(3)]
    image: MetadataImage = image_of({}, brokers)
    settings = BrokerSettings(replica_lag_time_max_ms=LAG_MAX_MS)
    return RegisteredBrokers(lambda: image, lambda: settings, lambda: 11)


def leading(*, isr: tuple[int, ...] = (1, 2, 3), end: int = 10, **of_broker_2: Any) -> Leadership:
    """Broker 1 leads epoch 5 of partition epoch 7 from offset 10 on, with followers 2 and 3."""
    leadership = Leadership(1, registered(**of_broker_2))
    view = partition_image(0, leader_epoch=5, replicas=(3, 1, 2), isr=isr)
    assert leadership.take(view._replace(partition_epoch=7), Offset(end), NOW_MS)
    return leadership


def fetched(
    leadership: Leadership, broker_id: int, offset: int, *, end: int = 10, now_ms: int = NOW_MS
) -> None:
    leadership.followers[broker_id].fetched(offset, 0, end, 10 + broker_id, now_ms)


def test_new_epoch_knows_its_members_alone() -> None:
    leadership = leading(isr=(1, 2))
    assert list(leadership.followers) == [3, 2], "in the order of the assignment"
    caught_up = {key: each.caught_up_ms for key, each in leadership.followers.items()}
    assert caught_up == {3: NEVER_MS, 2: NOW_MS}
    assert {key: each.is_in_isr for key, each in leadership.followers.items()} == {
        3: False,
        2: True,
    }
    assert (leadership.leader_epoch, leadership.partition_epoch) == (5, 7)
    assert (leadership.epoch_start_offset, leadership.replication_factor) == (10, 3)


@pytest.mark.parametrize(
    ("leader_epoch", "partition_epoch", "is_new", "is_known"),
    [(5, 7, False, True), (5, 6, False, True), (5, 8, True, True), (6, 8, True, False)],
)
def test_metadata_count_if_an_epoch_is_newer(
    leader_epoch: int, partition_epoch: int, is_new: bool, is_known: bool
) -> None:
    """Followers are forgotten with the leader epoch: they may have cut their logs since."""
    leadership = leading()
    follower = leadership.followers[2]
    view = partition_image(
        0,
        leader_epoch=leader_epoch,
        replicas=(1, 2, 4),
        isr=(1,),
        adding_replicas=(4,),
    )._replace(partition_epoch=partition_epoch)
    assert leadership.take(view, Offset(20), 2_000) is is_new
    assert (leadership.followers.get(2) is follower) is is_known
    assert follower.is_in_isr is (not is_new)
    if is_new:
        assert (leadership.isr, list(leadership.followers)) == ((1,), [2, 4])
        assert (leadership.partition_epoch, leadership.replication_factor) == (8, 2)
        assert leadership.epoch_start_offset == (20 if leader_epoch == 6 else 10)
        assert leadership.followers[4].caught_up_ms == NEVER_MS


@pytest.mark.parametrize(
    ("isr", "ends", "expected"),
    [
        ((1, 2, 3), (8, 9), 8),
        ((1, 2, 3), (12, 9), 9),
        ((1, 2, 3), (12, 12), 10),
        ((1, 3), (4, 9), 9),
        ((1, 2), (4, 9), 4),
        ((1,), (4, 9), None),
    ],
)
def test_committed_is_what_every_member_has(
    isr: tuple[int, ...], ends: tuple[int, int], expected: int | None
) -> None:
    leadership = leading(isr=isr)
    for broker_id, end in zip((2, 3), ends, strict=True):
        fetched(leadership, broker_id, end, end=99, now_ms=0)
    found = leadership.committed_end(Offset(10), Offset(99), 2, 10_000)
    assert found == expected
    assert leadership.min_isr(2) == 2
    assert leadership.min_isr(9) == 3, "at most the replicas"


@pytest.mark.parametrize(
    ("now_ms", "of_broker_2", "expected"),
    [
        (NOW_MS + LAG_MAX_MS, {}, 8),
        (NOW_MS + LAG_MAX_MS + 1, {}, 10),
        (NOW_MS, {"fenced": True}, 10),
        (NOW_MS, {"in_controlled_shutdown": True}, 10),
        (NOW_MS, {"broker_epoch": 99}, 10),
    ],
)
def test_follower_that_is_about_to_join_counts(
    now_ms: int, of_broker_2: dict[str, Any], expected: int
) -> None:
    """It had everything a moment ago; else it might stay behind the high watermark for ever."""
    leadership = leading(isr=(1, 3), **of_broker_2)
    fetched(leadership, 3, 10)
    fetched(leadership, 2, 8, end=8)
    assert leadership.committed_end(Offset(10), Offset(10), 1, now_ms) == expected


@pytest.mark.parametrize(
    ("end", "high_watermark", "isr", "is_wanted"),
    [
        (10, 10, (1, 3), True),
        (10, 11, (1, 3), False),
        (9, 5, (1, 3), False),
        (10, 5, (1, 2, 3), False),
        (10, 5, (3,), False),
    ],
)
def test_follower_with_all_that_may_be_committed_is_to_join(
    end: int, high_watermark: int, isr: tuple[int, ...], is_wanted: bool
) -> None:
    leadership = leading(isr=isr)
    fetched(leadership, 2, end)
    follower = leadership.followers[2]
    change = leadership.wanted_expansion(follower, Offset(high_watermark))
    assert leadership.change is change
    if not is_wanted:
        assert change is None
        return
    assert change is not None
    members = [(1, 11), (3, -1), (2, 12)]
    expected = [BrokerState(broker_id=key, broker_epoch=epoch) for key, epoch in members]
    assert (change.isr, change.maximal_isr, change.members) == ((1, 3, 2), (1, 3, 2), expected)
    assert (change.leader_epoch, change.partition_epoch) == (5, 7)
    assert (leadership.isr, leadership.maximal_isr) == ((1, 3), (1, 3, 2))
    assert leadership.wanted_expansion(follower, Offset(0)) is None, "one at a time"


@pytest.mark.parametrize(
    ("now_ms", "left"), [(NOW_MS + LAG_MAX_MS, (1, 2, 3)), (NOW_MS + LAG_MAX_MS + 1, (1, 3))]
)
def test_followers_that_lag_too_long_are_to_leave(now_ms: int, left: tuple[int, ...]) -> None:
    leadership = leading(isr=(1, 2, 3))
    fetched(leadership, 3, 10)
    change = leadership.wanted_shrinking(Offset(10), now_ms)
    if left == (1, 2, 3):
        assert change is None
        return
    assert change is not None
    assert (change.isr, change.maximal_isr) == (left, (1, 2, 3))
    assert leadership.maximal_isr == (1, 2, 3), "until the controller has agreed"
    assert leadership.wanted_shrinking(Offset(10), now_ms) is None, "one at a time"


def test_leader_that_is_in_no_isr_wants_none() -> None:
    leadership = leading(isr=(2, 3))
    assert leadership.wanted_shrinking(Offset(10), 1 << 40) is None


OF_NOW: dict[str, Any] = {"leader_epoch": 5, "partition_epoch": 8, "isr": [1, 2]}


@pytest.mark.parametrize(
    ("fields", "is_again", "is_pending", "isr"),
    [
        (OF_NOW, False, False, (1, 2)),
        ({**OF_NOW, "partition_epoch": 7}, False, False, (1, 2)),
        ({**OF_NOW, "partition_epoch": 6}, False, True, (1,)),
        ({**OF_NOW, "leader_epoch": 4}, False, True, (1,)),
        ({**OF_NOW, "leader_epoch": 6}, False, True, (1,)),
        ({**OF_NOW, "isr": [2]}, False, True, (1,)),
        ({**OF_NOW, "isr": [1, 2, 2]}, False, True, (1,)),
        ({**OF_NOW, "isr": [1, 4]}, False, True, (1,)),
        ({"error_code": E.INELIGIBLE_REPLICA}, False, False, (1,)),
        ({"error_code": E.OPERATION_NOT_ATTEMPTED}, False, False, (1,)),
        ({"error_code": E.FENCED_LEADER_EPOCH}, False, True, (1,)),
        ({"error_code": E.NOT_CONTROLLER}, True, True, (1,)),
    ],
)
def test_answer_ends_a_change_keeps_it_or_has_it_asked_again(
    fields: dict[str, Any], is_again: bool, is_pending: bool, isr: tuple[int, ...]
) -> None:
    leadership = leading(isr=(1,))
    fetched(leadership, 2, 10)
    change = leadership.wanted_expansion(leadership.followers[2], Offset(10))
    assert isinstance(change, IsrChange)
    other = replace_change(change)
    answer = ResponsePartitionData(**fields)
    assert leadership.answered(other, answer) is False
    assert leadership.change is change, "the answer to another one"
    assert leadership.answered(change, answer) is is_again
    assert (leadership.change is change, leadership.isr) == (is_pending, isr)
    assert leadership.followers[2].is_in_isr is (2 in isr)
    if isr == (1, 2):
        assert leadership.partition_epoch == fields["partition_epoch"]


def replace_change(change: IsrChange) -> IsrChange:
    """The same change, asked for another time."""
    return IsrChange(
        change.isr,
        change.maximal_isr,
        change.members,
        change.leader_epoch,
        change.partition_epoch,
    )


def test_low_watermark_waits_for_replicas_that_are_alive() -> None:
    for of_broker_2, expected in (({}, 3), ({"fenced": True}, 4)):
        leadership = leading(**of_broker_2)
        for broker_id, start in ((2, 3), (3, 4)):
            leadership.followers[broker_id].log_start_offset = start
        assert leadership.low_watermark(Offset(6)) == expected
        assert leadership.low_watermark(Offset(2)) == 2


@pytest.mark.parametrize(
    ("broker_id", "epoch", "is_known"),
    [(2, 12, True), (2, 13, True), (2, 11, False), (2, NO_BROKER_EPOCH, True), (9, 12, False)],
)
def test_fetch_counts_for_the_registered_life_of_a_broker(
    broker_id: int, epoch: int, is_known: bool
) -> None:
    """KIP-903; a later epoch than that of the metadata is one that they do not tell yet."""
    assert registered().is_known_sender(broker_id, epoch) is is_known


@pytest.mark.parametrize(
    ("epoch", "of_broker_2", "may_join"),
    [
        (12, {}, True),
        (NO_BROKER_EPOCH, {}, True),
        (13, {}, False),
        (None, {}, False),
        (12, {"fenced": True}, False),
        (12, {"in_controlled_shutdown": True}, False),
    ],
)
def test_follower_may_join_in_its_registered_life(
    epoch: int | None, of_broker_2: dict[str, Any], may_join: bool
) -> None:
    follower = FollowerState(2)
    follower.broker_epoch = epoch
    brokers = registered(**of_broker_2)
    assert brokers.may_join(follower) is may_join
    assert not brokers.may_join(FollowerState(9))
    assert (brokers.epoch_of(2), brokers.epoch_of(9), brokers.own_epoch()) == (12, -1, 11)
    assert brokers.is_alive(2) is ("fenced" not in of_broker_2)
    assert not brokers.is_alive(9)
