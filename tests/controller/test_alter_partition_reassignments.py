"""AlterPartitionReassignments: replicas come and go in two steps."""

import pytest

from kraft_wire.wire.generated.error_code import ErrorCode as E
from tests.controller.broker_cluster import BrokerCluster, directory
from tests.controller.reassigning import cluster_of_four, ongoing, reassign
from tests.controller.test_alter_partition import alter


def test_reassignment_adds_waits_for_the_isr_and_then_removes() -> None:
    cluster = cluster_of_four()
    assert reassign(cluster, [4, 5]) == E.NONE
    begun = cluster.partition()
    assert begun.replicas == (4, 5, 2, 3)
    assert begun.directories == tuple(directory(each) for each in (4, 5, 2, 3))
    assert (begun.isr, begun.leader, begun.leader_epoch) == ((2, 3), 2, 0)
    assert ongoing(cluster) == {("t", 0): ([4, 5, 2, 3], [4, 5], [2, 3])}
    assert ongoing(cluster, [("t", [1, 0, 9]), ("x", [0])]) == ongoing(cluster)
    assert ongoing(cluster, [("t", [1])]) == {}
    assert alter(cluster, 2, [2, 3, 4]).error_code == E.NONE
    assert cluster.partition().leader == 2
    assert alter(cluster, 2, [2, 3, 4, 5]).error_code == E.NEW_LEADER_ELECTED
    after = cluster.partition()
    assert (after.replicas, after.isr, after.leader) == ((4, 5), (4, 5), 4)
    assert after.directories == (directory(4), directory(5))
    assert after.leader_epoch == 1
    assert ongoing(cluster) == {}


def test_other_order_of_the_same_replicas_is_done_at_once() -> None:
    cluster = cluster_of_four()
    assert reassign(cluster, [3, 2]) == E.NONE
    after = cluster.partition()
    assert (after.replicas, after.leader, after.leader_epoch) == ((3, 2), 2, 0)
    assert ongoing(cluster) == {}
    since = len(cluster.committed)
    assert reassign(cluster, [3, 2]) == E.NONE
    assert cluster.written(since) == []


def test_replica_that_was_to_come_and_is_to_go_is_not_waited_for() -> None:
    """Release 4.3.1 still names it as new, waits for it, and for ever."""
    cluster = cluster_of_four()
    reassign(cluster, [4, 2])
    assert reassign(cluster, [2, 3]) == E.NONE
    after = cluster.partition()
    assert (after.replicas, after.isr, after.leader) == ((2, 3), (2, 3), 2)
    assert ongoing(cluster) == {}


def test_replica_that_only_goes_is_removed_at_once_under_a_new_leader_epoch() -> None:
    cluster = cluster_of_four()
    assert reassign(cluster, [2]) == E.NONE
    after = cluster.partition()
    assert (after.replicas, after.isr, after.leader, after.leader_epoch) == ((2,), (2,), 2, 1)


def test_shrinking_reassignment_waits_until_every_replica_that_stays_is_in_sync() -> None:
    """With three replicas of which one lags, the last that is in sync must not go alone."""
    cluster = BrokerCluster([2, 3, 4])
    cluster.create("t", [2, 3, 4])
    assert alter(cluster, 2, [2, 3]).error_code == E.NONE
    assert reassign(cluster, [3, 4]) == E.NONE
    waiting = cluster.partition()
    assert (waiting.replicas, waiting.removing_replicas) == ((3, 4, 2), (2,))
    assert (waiting.isr, waiting.leader) == ((2, 3), 2)
    assert alter(cluster, 2, [2, 3, 4]).error_code == E.NEW_LEADER_ELECTED
    after = cluster.partition()
    assert (after.replicas, set(after.isr), after.removing_replicas) == ((3, 4), {3, 4}, ())


def test_reassignment_that_is_taken_back_leaves_what_was() -> None:
    cluster = cluster_of_four()
    assert reassign(cluster, None) == E.NO_REASSIGNMENT_IN_PROGRESS
    reassign(cluster, [4, 2])
    alter(cluster, 2, [2, 4])
    assert reassign(cluster, [5, 4]) == E.NONE, "changed on the way"
    assert reassign(cluster, None) == E.NONE
    after = cluster.partition()
    assert (after.adding_replicas, after.removing_replicas) == ((), ())
    assert 5 not in after.replicas


def test_what_a_reassignment_under_way_adds_and_removes_stays_so_when_all_are_named() -> None:
    """As `changePartitionReassignment` of 4.3.1: lists that would be empty are not set."""
    cluster = cluster_of_four()
    assert reassign(cluster, [4, 2]) == E.NONE
    assert reassign(cluster, [2, 4, 3]) == E.NONE
    after = cluster.partition()
    assert after.replicas == (2, 4, 3)
    assert (after.adding_replicas, after.removing_replicas) == ((4,), (3,))


@pytest.mark.parametrize("replicas", [[2], [2, 5]])
@pytest.mark.parametrize(
    ("allowed", "error"), [("false", E.INVALID_REPLICA_ASSIGNMENT), ("true", E.NONE)]
)
def test_reassignment_of_which_only_new_replicas_are_in_sync_is_taken_back_uncleanly(
    allowed: str, error: E, replicas: list[int]
) -> None:
    """The first replica of before is in sync alone (`PartitionReassignmentRevert`)."""
    cluster = BrokerCluster([2, 3, 4, 5])
    cluster.create("t", replicas)
    cluster.configure("t", "unclean.leader.election.enable", allowed)
    reassign(cluster, [3, 4])
    alter(cluster, 2, [2, 3])
    cluster.pass_time(10_000, alive=[3, 4])
    assert (cluster.partition().isr, cluster.partition().leader) == ((3,), 3)
    cluster.heartbeat(2)
    assert reassign(cluster, None) == error
    if error is E.NONE:
        after = cluster.partition()
        assert (after.replicas, after.isr, after.leader) == (tuple(replicas), (2,), 2)


@pytest.mark.parametrize(
    ("replicas", "topic", "number", "error"),
    [
        ([], "x", 0, E.UNKNOWN_TOPIC_OR_PARTITION),
        (None, "t", 2, E.UNKNOWN_TOPIC_OR_PARTITION),
        ([], "t", -1, E.UNKNOWN_TOPIC_OR_PARTITION),
        ([], "t", 0, E.INVALID_REPLICA_ASSIGNMENT),
        ([2, 2], "t", 0, E.INVALID_REPLICA_ASSIGNMENT),
        ([2, 9], "t", 0, E.INVALID_REPLICA_ASSIGNMENT),
        ([-1], "t", 0, E.INVALID_REPLICA_ASSIGNMENT),
        ([2], "t", 0, E.INVALID_REPLICATION_FACTOR),
        ([2, 3, 4], "t", 0, E.INVALID_REPLICATION_FACTOR),
        ([2, 4], "t", 0, E.NONE),
    ],
)
def test_replicas_that_cannot_be_are_refused_and_another_number_where_it_must_stay(
    replicas: list[int] | None, topic: str, number: int, error: E
) -> None:
    cluster = cluster_of_four()
    since = len(cluster.committed)
    assert reassign(cluster, replicas, topic, number, keeps_count=True) == error
    assert bool(cluster.written(since)) is (error is E.NONE)
    if error is E.NONE:
        assert reassign(cluster, [4, 5], keeps_count=True) == E.NONE, "two, not the three of now"


def test_number_of_replicas_that_must_stay_is_what_a_reassignment_under_way_leads_to() -> None:
    """As 4.3.1 counts: with those that come, without those that go."""
    cluster = cluster_of_four()
    assert reassign(cluster, [2, 3, 4]) == E.NONE
    assert reassign(cluster, [2, 3], keeps_count=True) == E.INVALID_REPLICATION_FACTOR
    assert reassign(cluster, [2, 3, 5], keeps_count=True) == E.NONE
