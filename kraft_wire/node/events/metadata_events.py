"""Log events derived from metadata: the differences between two published images.

A node logs the partitions of which it has a replica; the active controller logs all of them. A
first image, and one from a fetched snapshot, is one line. Not here: roles in the quorum
(`quorum_events`).
"""

from collections.abc import Iterator, Sequence
from typing import Final

from kraft_wire.broker.capped_report import CappedReport
from kraft_wire.metadata.delta import MetadataDelta
from kraft_wire.metadata.image import (
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    NO_LEADER,
    TOPIC_RESOURCE,
    BrokerImage,
    MetadataImage,
    PartitionImage,
    TopicImage,
)
from kraft_wire.model import ReportEvent, TopicPartition, uuid_to_text

__all__ = ["MetadataEvents"]

_RESOURCES: Final = {
    TOPIC_RESOURCE: "topic",
    BROKER_RESOURCE: "broker",
    CLIENT_METRICS_RESOURCE: "client-metrics",
    GROUP_RESOURCE: "group",
}
_RECOVERING: Final = 1
"""`leader_recovery_state` after an unclean election."""
_NO_OFFSET: Final = -1


class MetadataEvents:
    """Logs the changes that one node publishes."""

    def __init__(self, node_id: int, report: ReportEvent) -> None:
        self._node_id = node_id
        self._report = CappedReport(report)

    def published(self, delta: MetadataDelta, *, is_active: bool) -> None:
        """Log the changes; `is_active` for the active controller."""
        before, after, report = delta.before, delta.after, self._report
        if before.offset == _NO_OFFSET:
            _log_loaded(after, report)
            return
        if delta.changes_brokers:
            _log_brokers(before, after, report)
        for topic_id, name in delta.deleted.items():
            report("topic_deleted", topic=name, topic_id=uuid_to_text(topic_id))
        for name, numbers in delta.topics.items():
            self._log_topic(before, after.topics_by_name[name], numbers, is_active=is_active)
        if delta.configs:
            _log_settings(delta, report)
        if before.finalized_features is not after.finalized_features:
            _log_features(before, after, report)
        report.end()

    def _log_topic(
        self, before: MetadataImage, topic: TopicImage, numbers: Sequence[int], *, is_active: bool
    ) -> None:
        old, report = before.topic_by_id(topic.topic_id), self._report
        if old is None:
            report(
                "topic_created",
                topic=topic.name,
                topic_id=uuid_to_text(topic.topic_id),
                partitions=len(topic.partitions),
                replicas=max((len(each.replicas) for each in topic.partitions.values()), default=0),
            )
            return
        added = len(topic.partitions) - len(old.partitions)
        if added:
            report(
                "partitions_added", topic=topic.name, partitions=len(topic.partitions), added=added
            )
        for number in numbers:
            was, now = old.partitions.get(number), topic.partitions[number]
            if was is None or not (is_active or self._has_replica(was, now)):
                continue
            _log_partition(TopicPartition(topic.name, number), was, now, report)

    def _has_replica(self, was: PartitionImage, now: PartitionImage) -> bool:
        return self._node_id in was.replicas or self._node_id in now.replicas


def _log_loaded(image: MetadataImage, report: CappedReport) -> None:
    report(
        "metadata_loaded",
        offset=image.offset,
        epoch=image.epoch,
        topics=len(image.topics_by_name),
        brokers=len(image.brokers),
        fenced=sum(each.fenced for each in image.brokers.values()),
    )
    report.end()


def _log_brokers(before: MetadataImage, after: MetadataImage, report: CappedReport) -> None:
    for broker_id in sorted({**before.brokers, **after.brokers}):
        was, now = before.brokers.get(broker_id), after.brokers.get(broker_id)
        if was is not now:
            for name in _broker_changes(was, now):
                known = now or was
                assert known is not None, broker_id
                report(name, broker=broker_id, broker_epoch=known.broker_epoch)


def _broker_changes(was: BrokerImage | None, now: BrokerImage | None) -> Iterator[str]:
    if now is None:
        yield "broker_unregistered"
        return
    if was is None or was.broker_epoch != now.broker_epoch:
        yield "broker_registered"
    was_fenced = was is None or was.fenced
    if was_fenced and not now.fenced:
        yield "broker_unfenced"
    elif now.fenced and not was_fenced:
        asked_to_stop = was is not None and was.in_controlled_shutdown
        yield "broker_stopped" if asked_to_stop else "broker_fenced"
    if now.in_controlled_shutdown and not (was is not None and was.in_controlled_shutdown):
        yield "broker_stopping"


def _log_partition(
    name: TopicPartition, was: PartitionImage, now: PartitionImage, report: CappedReport
) -> None:
    if now.leader != was.leader:
        event = "partition_leader_changed"
        if now.leader == NO_LEADER:
            event = "partition_offline"
        elif now.leader_recovery_state == _RECOVERING != was.leader_recovery_state:
            event = "unclean_leader_elected"
        report(
            event,
            partition=name,
            leader=_node(now.leader),
            before=_node(was.leader),
            leader_epoch=now.leader_epoch,
            isr=_ids(now.isr),
        )
    if sorted(now.isr) != sorted(was.isr):
        fewer, more = len(now.isr) < len(was.isr), len(now.isr) > len(was.isr)
        report(
            "isr_shrunk" if fewer else "isr_expanded" if more else "isr_changed",
            partition=name,
            isr=_ids(now.isr),
            before=_ids(was.isr),
            leader=_node(now.leader),
            leader_epoch=now.leader_epoch,
        )
    if now.replicas != was.replicas:
        report(
            "replicas_changed",
            partition=name,
            replicas=_ids(now.replicas),
            before=_ids(was.replicas),
        )


def _log_settings(delta: MetadataDelta, report: CappedReport) -> None:
    for kind, name in sorted(delta.configs):
        was, now = delta.before.config(kind, name), delta.after.config(kind, name)
        keys = [key for key in sorted({**was, **now}) if was.get(key) != now.get(key)]
        if kind != TOPIC_RESOURCE or (delta.before.topic(name) and delta.after.topic(name)):
            report(
                "settings_changed",
                resource=_RESOURCES.get(kind, kind),
                resource_name=name or "(default)",
                keys=",".join(keys),
            )


def _log_features(before: MetadataImage, after: MetadataImage, report: CappedReport) -> None:
    was, now = before.finalized_features, after.finalized_features
    for name in sorted({**was, **now}):
        if was.get(name, 0) != now.get(name, 0):
            report(
                "feature_level_changed",
                feature=name,
                level=now.get(name, 0),
                before=was.get(name, 0),
            )


def _node(node_id: int) -> object:
    return "-" if node_id == NO_LEADER else node_id


def _ids(ids: Sequence[int]) -> str:
    return ",".join(map(str, ids)) or "-"
