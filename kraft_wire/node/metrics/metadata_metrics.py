"""Metrics of the metadata that a node replayed, under Kafka's names.

Groups `KafkaController`, `MetadataLoader` and `SnapshotEmitter` (KIP-630, as KIP-938 shipped it),
and `broker-metadata-metrics` on a broker, spelled as a JMX exporter does. Left out: times in an
event queue, which this node does not have, and heartbeats of other brokers. The counts of errors
are always 0: metadata that cannot be replayed stop the process.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from kraft_wire.metadata.image import NO_LEADER, MetadataImage, PartitionImage
from kraft_wire.node.metrics.families import Family
from kraft_wire.node.quorum_node import QuorumNode

__all__ = ["metadata_metrics"]

_CONTROLLER: Final = "kafka_controller_kafkacontroller_"
_LOADER: Final = "kafka_server_metadataloader_"
_EMITTER: Final = "kafka_server_snapshotemitter_"
_BROKER: Final = "kafka_server_broker_metadata_metrics_"


class _Partitions(NamedTuple):
    """Partitions of the whole cluster."""

    total: int
    offline: int
    """Partitions without a leader."""
    imbalanced: int
    """Partitions that another replica than the first leads."""


def metadata_metrics(part: QuorumNode, wall_ms: int, *, is_broker: bool) -> Iterator[Family]:
    """Yield metrics of the image, of its loading, and of snapshots."""
    yield from _controller(part, wall_ms)
    yield from _loader(part)
    yield from _snapshots(part)
    if is_broker:
        yield from _broker(part, wall_ms)


def _controller(part: QuorumNode, wall_ms: int) -> Iterator[Family]:
    committed, image = part.raft.committed, part.raft.committed.image
    high_watermark = part.raft.replica.quorum.high_watermark
    fenced = sum(broker.fenced for broker in image.brokers.values())
    shutting_down = sum(broker.in_controlled_shutdown for broker in image.brokers.values())
    partitions = _partitions(image)
    for name, text, value in (
        ("activecontrollercount", "1 if this controller is active.", int(part.host.is_active)),
        (
            "newactivecontrollerscount",
            "Number of new active controllers seen by this node.",
            part.leaders_count,
        ),
        (
            "lastappliedrecordoffset",
            "Offset of the last replayed record.",
            committed.next_offset - 1,
        ),
        (
            "lastappliedrecordtimestamp",
            "Append time of the last replayed record.",
            committed.timestamp_ms,
        ),
        (
            "lastappliedrecordlagms",
            "Age of the last replayed record; 0 if this controller is active.",
            _lag_ms(part, wall_ms),
        ),
        (
            "lastcommittedrecordoffset",
            "Offset of the last committed record.",
            (high_watermark or 0) - 1,
        ),
        ("activebrokercount", "Unfenced brokers.", len(image.brokers) - fenced),
        ("fencedbrokercount", "Fenced brokers.", fenced),
        ("controlledshutdownbrokercount", "Brokers in controlled shutdown.", shutting_down),
        ("globaltopiccount", "Topics.", len(image.topics_by_name)),
        ("globalpartitioncount", "Partitions.", partitions.total),
        ("offlinepartitionscount", "Partitions without a leader.", partitions.offline),
        (
            "preferredreplicaimbalancecount",
            "Partitions whose leader is not the preferred replica.",
            partitions.imbalanced,
        ),
        ("metadataerrorcount", "Records that failed to replay.", 0),
        (
            "ignoredstaticvoters",
            "1 if the log's voters replace the configured ones.",
            _ignored(part),
        ),
    ):
        yield Family(f"{_CONTROLLER}{name}", False, text, "", {"": value})


def _loader(part: QuorumNode) -> Iterator[Family]:
    committed, quorum = part.raft.committed, part.raft.replica.quorum
    for name, text, value in (
        ("handleloadsnapshotcount", "Snapshots loaded.", committed.loads_count),
        ("currentcontrollerid", "Id of the leader; -1 if unknown.", quorum.leader_id),
        ("currentmetadataversion", "Finalized metadata.version.", committed.image.metadata_version),
    ):
        yield Family(f"{_LOADER}{name}", False, text, "", {"": value})
    levels = dict(sorted(committed.image.finalized_features.items()))
    text = "Finalized level of each feature."
    yield Family(f"{_LOADER}finalizedlevel", False, text, "featurename", levels)


def _snapshots(part: QuorumNode) -> Iterator[Family]:
    upkeep, now_ms = part.upkeep, part.raft.replica.stepped_ms
    age_ms = -1 if upkeep.generated_ms is None else now_ms - upkeep.generated_ms
    text = "Size of the newest snapshot that this node wrote."
    size_bytes = {"": upkeep.generated_bytes}
    yield Family(f"{_EMITTER}latestsnapshotgeneratedbytes", False, text, "", size_bytes)
    text = "Age of the newest snapshot in milliseconds; -1 if there is none."
    yield Family(f"{_EMITTER}latestsnapshotgeneratedagems", False, text, "", {"": age_ms})


def _broker(part: QuorumNode, wall_ms: int) -> Iterator[Family]:
    committed = part.raft.committed
    for name, text, value in (
        (
            "last_applied_record_offset",
            "Offset of the last replayed record.",
            committed.next_offset - 1,
        ),
        (
            "last_applied_record_timestamp",
            "Append time of the last replayed record.",
            committed.timestamp_ms,
        ),
        (
            "last_applied_record_lag_ms",
            "Age of the last replayed record in milliseconds.",
            _lag_ms(part, wall_ms),
        ),
        ("metadata_load_error_count", "Records that failed to load.", 0),
        ("metadata_apply_error_count", "Images that failed to apply.", 0),
        ("ignored_static_voters", "1 if the configured voters are ignored.", _ignored(part)),
    ):
        yield Family(f"{_BROKER}{name}", False, text, "", {"": value})


def _lag_ms(part: QuorumNode, wall_ms: int) -> int:
    """Return the age of the newest replayed record; 0 on the active controller, which wrote it."""
    appended_ms = part.raft.committed.timestamp_ms
    return 0 if part.host.is_active else max(0, wall_ms - appended_ms)


def _ignored(part: QuorumNode) -> int:
    return int(part.has_static_voters and part.raft.replica.quorum.voters.kraft_version > 0)


def _partitions(image: MetadataImage) -> _Partitions:
    every = [each for topic in image.topics_by_name.values() for each in topic.partitions.values()]
    offline = sum(each.leader == NO_LEADER for each in every)
    return _Partitions(len(every), offline, sum(map(_is_imbalanced, every)))


def _is_imbalanced(partition: PartitionImage) -> bool:
    return partition.leader != partition.replicas[0]
