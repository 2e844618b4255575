"""What is counted of partitions: a story in which no two quantities are equal.

A metric that shows a neighbour of what its name promises (the high watermark for the end, bytes for
records, one replica for all) shows another number here.
"""

from collections.abc import Mapping
from typing import Any

from kraft_wire.broker.ports import LogDirectoryUsage
from kraft_wire.broker.settings import BrokerSettings
from kraft_wire.model import TopicPartition
from kraft_wire.node.metrics.partition_metrics import partition_metrics
from kraft_wire.settings.node_settings import NodeSettings
from tests.broker.replication.leading import TOPIC, Leading, batch
from tests.broker.small_broker import partition_image

LED, ALSO_LED, FOLLOWED, LOST = range(4)


def counted(leading: Leading) -> dict[str, tuple[bool, Mapping[Any, float]]]:
    """Every family by its name: whether it is a counter, and its values."""
    families = partition_metrics(leading.broker)
    return {each.name: (each.is_counter, each.values) for each in families}


def test_every_metric_of_partitions_shows_its_own_quantity() -> None:
    leading = Leading(
        partition_image(LED, replicas=(1, 2)),
        partition_image(ALSO_LED, replicas=(1, 2, 3)),
        partition_image(FOLLOWED, replicas=(2, 1), leader=2),
        partition_image(LOST, replicas=(1, 2)),
    )
    leading.produce(5, acks=1, number=LED)
    leading.produce(2, acks=1, number=LED)
    leading.produce(3, acks=1, number=ALSO_LED)
    leading.produce(4, acks=1, number=LOST)
    leading.fetch(0, number=LED)
    leading.fetch(5, number=LED)
    leading.fetch(0, replica=-1, number=LED)
    leading.fetch(0, replica=-1, number=LED)
    leading.delete_records(2)
    leading.partition(LOST).offline = True
    led, also_led = TopicPartition(TOPIC, LED), TopicPartition(TOPIC, ALSO_LED)
    leading.logs.entries = [
        LogDirectoryUsage(
            path="/a", total_bytes=1_000, usable_bytes=400, partition_bytes={led: 70}
        ),
        LogDirectoryUsage(
            path="/b", total_bytes=2_000, usable_bytes=500, partition_bytes={also_led: 80}
        ),
        *(LogDirectoryUsage(path=path, is_offline=True) for path in ("/c", "/d", "/e")),
    ]
    cordoned = NodeSettings({"cordoned.log.dirs": "/b,/d"})
    leading.broker.settings = BrokerSettings.of(cordoned)
    sizes = [len(batch(count)) for count in (5, 2, 3, 4)]
    assert counted(leading) == {
        "kafka_server_brokertopicmetrics_bytesin": (True, {TOPIC: sum(sizes)}),
        "kafka_server_brokertopicmetrics_messagesin": (True, {TOPIC: 14}),
        "kafka_server_brokertopicmetrics_bytesout": (True, {"": 2 * sizes[0]}),
        "kafka_server_brokertopicmetrics_replicationbytesout": (
            True,
            {"": sizes[0] + 2 * sizes[1]},
        ),
        "kafka_log_log_size": (False, {(TOPIC, "0"): 70, (TOPIC, "1"): 80}),
        "kafka_log_log_logendoffset": (False, {(TOPIC, "0"): 7, (TOPIC, "1"): 3, (TOPIC, "2"): 0}),
        "kafka_log_log_logstartoffset": (
            False,
            {(TOPIC, "0"): 2, (TOPIC, "1"): 0, (TOPIC, "2"): 0},
        ),
        "kraft_wire_follower_lag_records": (
            False,
            {(TOPIC, "0", "2"): 2, (TOPIC, "1", "2"): 3, (TOPIC, "1", "3"): 3},
        ),
        "kraft_wire_log_directory_free_bytes": (False, {"/a": 400, "/b": 500}),
        "kraft_wire_log_directory_total_bytes": (False, {"/a": 1_000, "/b": 2_000}),
        "kafka_log_logmanager_offlinelogdirectorycount": (False, {"": 3}),
        "kafka_log_logmanager_cordonedlogdirectorycount": (False, {"": 2}),
        "kafka_log_logmanager_logdirectorycordoned": (
            False,
            {"/a": 0, "/b": 1, "/c": 0, "/d": 1, "/e": 0},
        ),
    }
