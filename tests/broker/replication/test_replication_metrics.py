"""What is counted of led partitions, under the names that Kafka's own metrics have."""

from typing import Any

import pytest

from kraft_wire.node.metrics.replication_metrics import replication_metrics
from kraft_wire.wire.generated.error_code import ErrorCode as E
from tests.broker.replication.leading import LAG_MAX_MS, Leading
from tests.broker.small_broker import partition_image


def counted(leading: Leading) -> dict[str, float]:
    """Every value by the last part of its name."""
    families = replication_metrics(leading.broker)
    return {each.name.rpartition("_")[2]: each.values[""] for each in families}


def expect(leading: Leading, **wanted: Any) -> None:
    values = counted(leading)
    assert {name: values[name] for name in wanted} == wanted


def test_partitions_are_counted_by_what_their_isr_lacks() -> None:
    leading = Leading(
        partition_image(0),
        partition_image(1, replicas=(1, 2)),
        partition_image(2, replicas=(1, 2, 3), isr=(1, 2)),
        partition_image(3, replicas=(1, 2), isr=(1,)),
        partition_image(4, replicas=(1, 2, 3), isr=(1, 2), adding_replicas=(3,)),
        partition_image(5, replicas=(2, 1), leader=2),
        config={"min.insync.replicas": "2"},
    )
    expect(leading, leadercount=5, underreplicatedpartitions=2)
    expect(leading, underminisrpartitioncount=1, atminisrpartitioncount=4)


def test_fewer_replicas_than_the_isr_needs_are_enough_when_all_are_in_it() -> None:
    """KIP-966: acks=all needs at most as many members as there are replicas."""
    leading = Leading(
        partition_image(0),
        partition_image(1, replicas=(1, 2)),
        partition_image(2, replicas=(1, 2), isr=(1,)),
        partition_image(3, replicas=(1, 2, 3)),
        config={"min.insync.replicas": "3"},
    )
    expect(leading, underminisrpartitioncount=1, atminisrpartitioncount=3)


def test_changes_of_isrs_are_counted_when_the_controller_has_made_them() -> None:
    leading = Leading(partition_image(0, replicas=(1, 2)))
    leading.produce(acks=1)
    for _ in range(3):
        leading.pass_time(LAG_MAX_MS // 2)
    expect(leading, isrshrinks=0, isrexpands=0)
    leading.answer()
    expect(leading, isrshrinks=1, isrexpands=0, underreplicatedpartitions=1)
    leading.fetch(1)
    leading.answer(E.INELIGIBLE_REPLICA)
    expect(leading, isrshrinks=1, isrexpands=0)
    leading.fetch(1)
    leading.answer()
    expect(leading, isrshrinks=1, isrexpands=1, underreplicatedpartitions=0)


@pytest.mark.parametrize("is_answered", [True, False])
def test_a_change_of_an_isr_is_counted_once_where_the_metadata_tell_it_first(
    is_answered: bool,
) -> None:
    """Of a controller elsewhere the metadata may well come before the answer."""
    leading = Leading(partition_image(0, replicas=(1, 2)))
    leading.produce(acks=1)
    for _ in range(3):
        leading.pass_time(LAG_MAX_MS // 2)
    leading.change(isr=(1,))
    expect(leading, isrshrinks=1, isrexpands=0)
    if is_answered:
        leading.answer()
    else:
        leading.answer(E.INVALID_UPDATE_VERSION)
    leading.fetch(1)
    leading.change(isr=(2, 1))
    leading.answer()
    expect(leading, isrshrinks=1, isrexpands=1)


def test_an_isr_that_nobody_asked_for_is_not_counted() -> None:
    leading = Leading(partition_image(0, replicas=(1, 2, 3)))
    leading.produce(acks=1)
    leading.fetch(1, replica=3)
    for _ in range(3):
        leading.pass_time(LAG_MAX_MS // 2)
    leading.change(isr=(1, 2))
    leading.answer()
    expect(leading, isrshrinks=0, isrexpands=0)


def test_a_broker_that_leads_nobody_else_counts_zeros() -> None:
    leading = Leading(partition_image(0))
    expect(leading, leadercount=1, underreplicatedpartitions=0, isrshrinks=0, isrexpands=0)
