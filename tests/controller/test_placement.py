"""Where new partitions go: KIP-36's aims, checked on many clusters and seeds."""

from collections import Counter
from dataclasses import replace

import pytest

from kraft_wire.controller.placement import place, read_assignment
from kraft_wire.controller.refusal import Refusal
from kraft_wire.metadata.image import BrokerImage
from kraft_wire.model import ZERO_UUID, Uuid
from kraft_wire.wire.generated.error_code import ErrorCode
from tests.controller.cluster import SeededRandomSource

DIRECTORY = Uuid(b"d" * 16)


def brokers(**racks: int) -> dict[int, BrokerImage]:
    """Return unfenced brokers numbered from 1, so many in each rack."""
    found: dict[int, BrokerImage] = {}
    for rack, count in racks.items():
        for _ in range(count):
            number = len(found) + 1
            found[number] = broker(number, rack=rack)
    return found


def broker(number: int, *, rack: str | None = None, fenced: bool = False) -> BrokerImage:
    return BrokerImage(number, 0, ZERO_UUID, {}, {}, rack=rack, fenced=fenced)


@pytest.mark.parametrize("seed", range(20))
def test_each_replica_is_in_another_rack_while_there_are_racks(seed: int) -> None:
    cluster = brokers(a=2, b=3, c=1)
    for replicas in place(cluster, 30, 3, SeededRandomSource(seed)):
        assert len({cluster[number].rack for number in replicas}) == 3
    for replicas in place(cluster, 30, 6, SeededRandomSource(seed)):
        assert sorted(replicas) == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("seed", range(20))
def test_leaders_and_replicas_are_spread_evenly_over_brokers_of_one_rack(seed: int) -> None:
    cluster = brokers(a=5)
    placed = place(cluster, 100, 2, SeededRandomSource(seed))
    assert set(Counter(replicas[0] for replicas in placed).values()) == {20}
    assert set(Counter(number for replicas in placed for number in replicas).values()) == {40}


@pytest.mark.parametrize("has_stopped", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_fenced_broker_gets_replicas_but_never_leads(seed: int, has_stopped: bool) -> None:
    """One that was fenced at the end of its controlled shutdown may return, too."""
    fenced = replace(broker(3, rack="a", fenced=True), in_controlled_shutdown=has_stopped)
    cluster = brokers(a=2) | {3: fenced}
    placed = place(cluster, 20, 3, SeededRandomSource(seed))
    assert all(replicas[0] in (1, 2) for replicas in placed)
    assert all(replicas[2] == 3 for replicas in placed), "unfenced ones come first"
    alone = place(cluster | {4: broker(4, rack="b", fenced=True)}, 20, 1, SeededRandomSource(seed))
    assert all(replicas[0] in (1, 2) for replicas in alone)


@pytest.mark.parametrize(
    ("cluster", "replicas", "words"),
    [
        ({}, 1, "^All brokers are currently fenced, or have all their log directories cordoned"),
        (brokers(a=2), 3, "^The target replication factor of 3 cannot be reached because only 2 "),
        ({1: broker(1, fenced=True)}, 1, "currently fenced"),
        (
            {1: BrokerImage(1, 0, ZERO_UUID, {}, {}, fenced=False, in_controlled_shutdown=True)},
            2,
            "currently fenced",
        ),
        (
            {
                1: BrokerImage(
                    1,
                    0,
                    ZERO_UUID,
                    {},
                    {},
                    fenced=False,
                    log_dirs=(DIRECTORY,),
                    cordoned_log_dirs=(DIRECTORY,),
                )
            },
            1,
            "currently fenced",
        ),
    ],
)
def test_too_few_brokers_are_refused(
    cluster: dict[int, BrokerImage], replicas: int, words: str
) -> None:
    with pytest.raises(Refusal, match=words) as refusal:
        place(cluster, 1, replicas, SeededRandomSource())
    assert refusal.value.error is ErrorCode.INVALID_REPLICATION_FACTOR


def test_broker_with_one_directory_that_is_not_cordoned_gets_replicas() -> None:
    open_directory = Uuid(b"o" * 16)
    directories = (DIRECTORY, open_directory)
    whole = BrokerImage(1, 0, ZERO_UUID, {}, {}, fenced=False, log_dirs=directories)
    partly = replace(whole, cordoned_log_dirs=(DIRECTORY,))
    assert place({1: partly}, 1, 1, SeededRandomSource()) == [[1]]
    with pytest.raises(Refusal, match="all their log directories cordoned"):
        place({1: replace(whole, cordoned_log_dirs=directories)}, 1, 1, SeededRandomSource())


def test_chosen_replicas_must_be_as_many_as_those_of_the_other_partitions() -> None:
    assert read_assignment(brokers(a=3), [3, 1], 2) == [3, 1]
    with pytest.raises(Refusal, match="previous partitions, which have 2 replica"):
        read_assignment(brokers(a=3), [3], 2)


@pytest.mark.parametrize(
    ("replicas", "problem"),
    [
        ([], "an empty replica list."),
        ([9, 9, 1], "broker 9, but no such broker is registered."),
        ([9, 3, 3, 1], "the broker 3 more than once."),
        ([1, 1, 9], "the broker 1 more than once."),
        ([8, 9], "broker 8, but no such broker is registered."),
        ([-1], "broker -1, but no such broker is registered."),
    ],
)
def test_first_problem_of_chosen_replicas_is_named_in_the_order_of_their_ids(
    replicas: list[int], problem: str
) -> None:
    """`ReplicationControlManager.validateManualPartitionAssignment` sorts them first."""
    with pytest.raises(Refusal) as refused:
        read_assignment(brokers(a=3), replicas, 2)
    assert refused.value.message == f"The manual partition assignment includes {problem}"
