"""Metrics of a broker's partitions: traffic by topic, logs, lag of followers, disks.

Names are those of Kafka's JMX exporter if Kafka has the metric. Incoming traffic is that of the
partitions led here since the process started; a partition that moves away takes its counts along.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from kraft_wire.broker.broker import Broker
from kraft_wire.broker.partition import Partition
from kraft_wire.broker.ports import LogDirectoryUsage
from kraft_wire.node.metrics.families import Family, LabelledFamily
from kraft_wire.settings.cordoning import is_cordoned
from kraft_wire.settings.node_settings import NodeSettings

__all__ = ["partition_metrics"]

_TOPIC = "kafka_server_brokertopicmetrics_"
_LOG = "kafka_log_log_"


def partition_metrics(broker: Broker) -> Iterator[Family | LabelledFamily]:
    """Yield traffic, log sizes and lags."""
    partitions = list(broker.partitions.values())
    yield from _traffic(partitions)
    yield from _reads(broker)
    usage = broker.logs.usage()
    yield _sizes(usage)
    yield from _bounds([each for each in partitions if not each.offline])
    yield _lags(partitions)
    yield from _disks(usage)
    yield from _cordoned([each.path for each in usage], broker.settings.source)


def _traffic(partitions: list[Partition]) -> Iterator[Family]:
    bytes_in: defaultdict[str, float] = defaultdict(float)
    messages: defaultdict[str, float] = defaultdict(float)
    for each in partitions:
        bytes_in[each.topic] += each.bytes_in
        messages[each.topic] += each.messages_in
    for name, text, values in (
        ("bytesin", "Bytes of batches appended for producers.", bytes_in),
        ("messagesin", "Records appended for producers.", messages),
    ):
        yield Family(f"{_TOPIC}{name}", True, text, "topic", values)


def _reads(broker: Broker) -> Iterator[Family]:
    for name, text, value in (
        ("bytesout", "Bytes of records read by consumers.", broker.bytes_out),
        ("replicationbytesout", "Bytes of records read by followers.", broker.replica_bytes_out),
    ):
        yield Family(f"{_TOPIC}{name}", True, text, "", {"": value})


def _sizes(usage: Sequence[LogDirectoryUsage]) -> LabelledFamily:
    sizes: dict[tuple[str, ...], float] = {}
    for directory in usage:
        for name, size_bytes in directory.partition_bytes.items():
            sizes[name.topic, str(name.partition)] = size_bytes
    text = "Bytes of all segments."
    return LabelledFamily(f"{_LOG}size", False, text, ("topic", "partition"), sizes)


def _bounds(partitions: list[Partition]) -> Iterator[LabelledFamily]:
    ends: dict[tuple[str, ...], float] = {}
    starts: dict[tuple[str, ...], float] = {}
    for each in partitions:
        labels = (each.topic, str(each.partition))
        ends[labels], starts[labels] = each.log_end_offset, each.log_start_offset
    for name, text, values in (
        ("logendoffset", "Offset that the next record gets.", ends),
        ("logstartoffset", "First offset.", starts),
    ):
        yield LabelledFamily(f"{_LOG}{name}", False, text, ("topic", "partition"), values)


def _lags(partitions: list[Partition]) -> LabelledFamily:
    """Return the lag in records of each follower of the partitions led here."""
    lags: dict[tuple[str, ...], float] = {}
    for each in partitions:
        if each.leadership is None or each.offline:
            continue
        for follower in each.leadership.followers.values():
            behind = each.log_end_offset - max(0, follower.log_end_offset)
            lags[each.topic, str(each.partition), str(follower.broker_id)] = behind
    return LabelledFamily(
        "kraft_wire_follower_lag_records",
        False,
        "Records that a follower lacks, as its leader knows.",
        ("topic", "partition", "follower"),
        lags,
    )


def _disks(usage: Sequence[LogDirectoryUsage]) -> Iterator[Family]:
    online = [each for each in usage if not each.is_offline]
    for name, text, values in (
        ("free", "Bytes that are free, without the reserve.", [e.usable_bytes for e in online]),
        ("total", "Bytes of the disk.", [e.total_bytes for e in online]),
    ):
        by_path = {each.path: value for each, value in zip(online, values, strict=True)}
        yield Family(f"kraft_wire_log_directory_{name}_bytes", False, text, "directory", by_path)
    offline = {"": len(usage) - len(online)}
    name = "kafka_log_logmanager_offlinelogdirectorycount"
    yield Family(name, False, "Log directories that failed.", "", offline)


def _cordoned(paths: Sequence[str], settings: NodeSettings) -> Iterator[Family]:
    """Yield which log directories get no new replicas (KIP-1066)."""
    found = {path: float(is_cordoned(settings, path)) for path in paths}
    text, name = (
        "Whether the log directory is cordoned.",
        "kafka_log_logmanager_logdirectorycordoned",
    )
    yield Family(name, False, text, "log_directory", found)
    name = "kafka_log_logmanager_cordonedlogdirectorycount"
    yield Family(name, False, "Log directories that are cordoned.", "", {"": sum(found.values())})
