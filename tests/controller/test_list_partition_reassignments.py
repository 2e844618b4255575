"""ListPartitionReassignments: what is under way, of all partitions or of some."""

from tests.controller.reassigning import cluster_of_four, ongoing, reassign


def test_partitions_that_do_not_change_are_not_listed() -> None:
    cluster = cluster_of_four()
    assert ongoing(cluster) == {}
    reassign(cluster, [4, 5])
    assert ongoing(cluster) == {("t", 0): ([4, 5, 2, 3], [4, 5], [2, 3])}


def test_all_are_listed_by_topic_where_none_is_asked_for() -> None:
    cluster = cluster_of_four()
    cluster.create("a", [2, 3])
    for topic, number in (("t", 1), ("a", 0), ("t", 0)):
        reassign(cluster, [4, 5], topic, number)
    assert list(ongoing(cluster)) == [("a", 0), ("t", 0), ("t", 1)]


def test_only_what_is_asked_for_is_listed_and_what_does_not_exist_is_left_out() -> None:
    cluster = cluster_of_four()
    reassign(cluster, [4, 5])
    reassign(cluster, [4, 5], number=1)
    assert ongoing(cluster, []) == {}
    asked = [("x", [0]), ("t", [9, 1])]
    assert list(ongoing(cluster, asked)) == [("t", 1)]


def test_reassignment_that_is_taken_back_is_not_listed() -> None:
    cluster = cluster_of_four()
    reassign(cluster, [4, 5])
    reassign(cluster, None)
    assert ongoing(cluster) == {}


def test_replica_that_stays_neither_comes_nor_goes() -> None:
    """KIP-455: what is added and what is removed are the differences of the two assignments."""
    cluster = cluster_of_four()
    reassign(cluster, [4, 2, 5])
    assert ongoing(cluster) == {("t", 0): ([4, 2, 5, 3], [4, 5], [3])}
