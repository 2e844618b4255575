"""What is counted of transactions, under the names that Kafka's own metrics have."""

from types import SimpleNamespace
from typing import cast

import pytest

from kraft_wire.broker.broker import Broker
from kraft_wire.node.metrics.transaction_metrics import transaction_metrics
from kraft_wire.wire.generated.error_code import ErrorCode as E
from tests.broker.transactions.coordinating import TOPIC, Coordinating
from tests.kips.test_transactions_hanging import produce


def counted(node: Coordinating) -> dict[str, dict[str, float]]:
    """Every family's values by the last part of its name."""
    families = transaction_metrics(node.node.broker, node.wall_ms)
    return {each.name.rpartition("_")[2]: dict(each.values) for each in families}


def test_open_transactions_hold_readers_back_and_are_late_in_the_end() -> None:
    node = Coordinating(transaction_partition_verification_enable="false")
    good = node.producer()
    assert good.init() == E.NONE
    assert counted(node)["ids"] == {"Empty": 1}
    assert good.add(0) == [E.NONE]
    assert produce(node, "tid", good.id, good.epoch) == E.NONE
    assert produce(node, "late", good.id + 500, 3) == E.NONE
    before = counted(node)
    assert before["ids"] == {"Ongoing": 1}
    assert before["laststableoffsetlag"] == {f"{TOPIC}-0": 2}
    assert before["partitionswithlatetransactionscount"] == {"": 0}
    assert before["produceridcount"][""] >= 2
    node.advance(900_000 + 300_000 + 1)
    assert counted(node)["partitionswithlatetransactionscount"] == {"": 1}


WALL_MS, LATE_MS = 10_000_000, 900_000 + 300_000
"""The longest timeout and Kafka's five minutes more."""


def writer(silent_ms: int, first_offset: int | None = None) -> SimpleNamespace:
    """A producer, with the start of its open transaction if it has one."""
    return SimpleNamespace(
        last_timestamp=WALL_MS - silent_ms, transaction_first_offset=first_offset
    )


@pytest.mark.parametrize(
    ("changes", "writers", "lag", "late", "producers"),
    [
        ({}, [], {}, 0, 0),
        ({"last_stable_offset": 4}, [writer(LATE_MS, 4)], {"t-0": 6}, 0, 1),
        ({"last_stable_offset": 4}, [writer(LATE_MS + 1, 4)], {"t-0": 6}, 1, 1),
        ({}, [writer(LATE_MS + 1)], {}, 0, 1),
        ({"last_stable_offset": 4}, [writer(LATE_MS + 1), writer(0, 4)], {"t-0": 6}, 0, 2),
        ({"last_stable_offset": 4}, [writer(0, 4), writer(LATE_MS + 1, 7)], {"t-0": 6}, 1, 2),
        ({"is_leader": False, "last_stable_offset": 4}, [writer(LATE_MS + 1, 4)], {}, 0, 0),
        ({"offline": True, "last_stable_offset": 4}, [writer(LATE_MS + 1, 4)], {}, 0, 0),
    ],
)
def test_lag_and_lateness_are_of_open_transactions_of_partitions_led_here(
    changes: dict[str, object],
    writers: list[SimpleNamespace],
    lag: dict[str, float],
    late: int,
    producers: int,
) -> None:
    """Committed records are those below 10; two more are not committed yet."""
    fields: dict[str, object] = {"is_leader": True, "offline": False, "high_watermark": 10}
    fields |= {"last_stable_offset": 10, "log_end_offset": 12, "topic_partition": "t-0"}
    states = SimpleNamespace(active_producers=lambda: iter(writers))
    partition = SimpleNamespace(**(fields | changes), log=SimpleNamespace(producer_states=states))
    broker = SimpleNamespace(
        partitions={("t", 0): partition},
        settings=SimpleNamespace(transaction_max_timeout_ms=900_000),
        transactions_in_use=None,
    )
    families = transaction_metrics(cast(Broker, broker), WALL_MS)
    found = {each.name.rpartition("_")[2]: dict(each.values) for each in families}
    assert found["laststableoffsetlag"] == lag
    assert found["partitionswithlatetransactionscount"] == {"": late}
    assert found["produceridcount"] == {"": producers}


def test_a_broker_that_coordinates_nothing_has_no_ids() -> None:
    node = Coordinating()
    values = counted(node)
    assert values["ids"] == {}
    assert values["unknowndestinationqueuesize"] == {"": 0}
