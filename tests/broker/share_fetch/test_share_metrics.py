"""What is counted of share groups, under the names that Kafka's own metrics have (KIP-1103)."""

from __future__ import annotations

from kraft_wire.node.metrics.share_metrics import share_metrics
from tests.broker.share_fetch.sharing_node import SharingDoor, ranges
from tests.node.quotas.throttled_node import CONSUMER, TOPIC

ACCEPT, RELEASE = 1, 2
LOCK_MS = 30_000
PARTITION = ("g", TOPIC, "0")


def counted(node: SharingDoor) -> dict[str, dict[object, float]]:
    """Every family's values by the last part of its name."""
    found = share_metrics(node.node.broker)
    return {each.name.rpartition("_")[2]: dict(each.values) for each in found}


def test_broker_without_share_sessions_counts_nothing() -> None:
    assert counted(SharingDoor()) == {}


def test_sessions_acknowledgements_and_records_in_flight_are_counted() -> None:
    node = SharingDoor()
    for _ in range(3):
        node.produce(100)
    reply = node.share_fetch("m", 0, connection=CONSUMER)
    node.advance(100)
    assert ranges(reply) == [(0, 2, 1)]
    values = counted(node)
    assert values["sharesessionscount"] == {"": 1}
    assert values["sharepartitionscount"] == {"": 1}
    assert values["inflightmessagecount"] == {PARTITION: 3}
    assert values["recordacknowledgements"]["Accept"] == 0
    node.acknowledge("m", 1, [(0, 1, ACCEPT), (2, 2, RELEASE)], connection=CONSUMER)
    node.advance(100)
    values = counted(node)
    wanted = {"Accept": 2, "Release": 1, "Reject": 0, "Renew": 0}
    assert values["recordacknowledgements"] == wanted
    assert values["inflightmessagecount"] == {PARTITION: 1}


def test_refused_acknowledgement_is_not_counted() -> None:
    node = SharingDoor()
    node.produce(100)
    node.share_fetch("m", 0, connection=CONSUMER)
    node.advance(100)
    node.acknowledge("m", 1, [(0, 7, ACCEPT)], connection=CONSUMER)
    node.advance(100)
    assert counted(node)["recordacknowledgements"]["Accept"] == 0


def test_locks_that_ended_by_time_are_counted_by_record() -> None:
    node = SharingDoor()
    node.produce(100)
    node.produce(100)
    node.share_fetch("m", 0, connection=CONSUMER)
    node.advance(100)
    assert counted(node)["acquisitionlocktimeout"] == {PARTITION: 0}
    node.advance(LOCK_MS)
    assert counted(node)["acquisitionlocktimeout"] == {PARTITION: 2}
