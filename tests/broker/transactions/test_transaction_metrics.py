"""What is counted of transactions, under the names that Kafka's own metrics have."""

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


def test_a_broker_that_coordinates_nothing_has_no_ids() -> None:
    node = Coordinating()
    values = counted(node)
    assert values["ids"] == {}
    assert values["unknowndestinationqueuesize"] == {"": 0}
