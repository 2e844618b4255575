"""Consumers are sent to a follower in their rack: KIP-392, as Kafka's RackAwareReplicaSelector."""

from typing import Any

import pytest

from kraft_wire.metadata.image import BrokerImage
from kraft_wire.wire.generated.error_code import ErrorCode as E
from tests.broker.replication.leading import Leading
from tests.broker.small_broker import broker_image, partition_image

RACK_AWARE = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
RACKS = {1: "a", 2: "b", 3: "b", 4: "c"}


def in_rack(broker_id: int, **more: Any) -> BrokerImage:
    broker = broker_image(broker_id, **more)
    object.__setattr__(broker, "rack", RACKS[broker_id])
    return broker


def cluster(selector: str | None = RACK_AWARE, **more: Any) -> Leading:
    """Three committed records, of which every replica has three."""
    leading = Leading(
        partition_image(0, replicas=(1, 2, 3, 4), **more), replica_selector_class=selector
    )
    leading.brokers = {number: in_rack(number) for number in RACKS}
    leading.publish()
    for _ in range(3):
        leading.produce(acks=1)
    for replica in (2, 3, 4):
        leading.fetch(3, replica=replica)
    assert leading.high_watermark == 3
    return leading


def preferred(leading: Leading, rack: str, offset: int = 0, version: int = 18) -> int:
    data = leading.fetch(offset, replica=-1, rack=rack, version=version).fetched
    assert data.error_code == E.NONE
    assert (data.preferred_read_replica >= 0) == (not data.records)
    return data.preferred_read_replica


def test_a_consumer_is_sent_to_the_replica_in_its_rack_that_has_most() -> None:
    leading = cluster()
    assert preferred(leading, "c") == 4
    leading.produce(acks=1)
    leading.fetch(4, replica=2)
    assert preferred(leading, "b") == 2
    leading.fetch(4, replica=3)
    assert preferred(leading, "b") == 3


@pytest.mark.parametrize("rack", ["", "a", "nowhere"])
def test_who_is_near_the_leader_or_nobody_reads_here(rack: str) -> None:
    assert preferred(cluster(), rack) == -1


def test_a_consumer_of_version_10_reads_here() -> None:
    assert preferred(cluster(), "b", version=10) == -1


@pytest.mark.parametrize("selector", [None, "com.example.Selector"])
def test_without_kafkas_selector_everybody_reads_here(selector: str | None) -> None:
    assert preferred(cluster(selector), "b") == -1


def test_nobody_is_sent_to_a_replica_that_is_not_in_sync_or_lacks_the_offset() -> None:
    assert preferred(cluster(isr=(1, 2, 3)), "c") == -1
    leading = cluster()
    leading.fetch(3, replica=4, log_start_offset=1)
    assert preferred(leading, "c", offset=0) == -1
    assert preferred(leading, "c", offset=1) == 4
    leading.brokers[4] = in_rack(4, fenced=True)
    leading.publish()
    assert preferred(leading, "c", offset=1) == -1


def test_followers_are_sent_nowhere_and_consumers_are_served_by_them() -> None:
    leading = cluster()
    data = leading.fetch(0, replica=3, rack="c").fetched
    assert (data.preferred_read_replica, bool(data.records)) == (-1, True)
    leading.change(leader=2, leader_epoch=1)
    assert preferred(leading, "a") == -1


def test_the_answer_does_not_wait() -> None:
    waiting = cluster().fetch(3, replica=-1, rack="c", max_wait_ms=500)
    assert waiting.fetched.preferred_read_replica == 4


def test_a_partition_without_other_replicas_is_read_here() -> None:
    leading = Leading(partition_image(0), replica_selector_class=RACK_AWARE)
    leading.brokers = {number: in_rack(number) for number in RACKS}
    leading.publish()
    leading.produce()
    assert preferred(leading, "b") == -1
