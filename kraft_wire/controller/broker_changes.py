"""Records for a broker's partitions when it is fenced, unfenced, stopped, restarted or removed.

KIP-631 (fenced and unfenced), KIP-841 (controlled shutdown, and members of an ISR), KIP-858
(failed directories), KIP-966 (unclean restarts). In the order of release 4.3.1: a broker gives up
its partitions before it is fenced, and is unfenced before it leads.

Not here: when this happens (`broker_heartbeat`, `broker_registration`, `broker_sessions`).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

from kraft_wire.controller.partition_changes import Accepts, Elections, PartitionChange, is_active
from kraft_wire.metadata.features import CORDONED_FROM, DIRECTORIES_FROM, ELR_VERSION
from kraft_wire.metadata.image import NO_LEADER, BrokerImage, MetadataImage, PartitionImage
from kraft_wire.metadata.records import VersionedRecord
from kraft_wire.model import Uuid
from kraft_wire.settings.node_settings import NodeSettings
from kraft_wire.wire.generated.broker_registration_change_record import (
    BrokerRegistrationChangeRecord,
)
from kraft_wire.wire.generated.partition_change_record import PartitionChangeRecord
from kraft_wire.wire.generated.unregister_broker_record import UnregisterBrokerRecord

__all__ = ["BrokerChanges"]

_FENCE, _UNFENCE = 1, -1
_Concerns = Callable[[PartitionImage], bool]


class BrokerChanges:
    """Changes of one broker and of its partitions, based on one image."""

    def __init__(self, image: MetadataImage, settings: NodeSettings, broker_id: int) -> None:
        assert broker_id >= 0, broker_id
        self._image = image
        self._settings = settings
        self._broker_id = broker_id

    @property
    def _broker(self) -> BrokerImage:
        assert self._broker_id in self._image.brokers, self._broker_id
        return self._image.brokers[self._broker_id]

    def leads(self) -> bool:
        """Tell whether the broker leads a partition."""
        return any(
            partition.leader == self._broker_id
            for topic in self._image.topics_by_name.values()
            for partition in topic.partitions.values()
        )

    def fence(self) -> list[VersionedRecord]:
        """Remove the broker from leaderships and ISRs, then fence it."""
        records = [*self._leave(self._is_in_sync), self._change(fenced=_FENCE)]
        assert records[-1].version == 0, records[-1]
        return records

    def unfence(self, failed: Sequence[Uuid] = ()) -> list[VersionedRecord]:
        """Unfence the broker; it may lead partitions without a leader, not in failed directories.

        4.3.1 also makes it leader of partitions in a failed directory that it reports in the same
        request; these then have no working leader.
        """
        broker_id, image = self._broker_id, self._image
        assert self._broker.fenced, "only a fenced broker is unfenced"
        records = [self._change(fenced=_UNFENCE)]
        for elections, partition in self._partitions(lambda each: each.leader == NO_LEADER):
            may_lead = _directory(partition, broker_id) not in failed
            accepts = _accepting(image, broker_id, may_lead=may_lead)
            records += _made(PartitionChange(elections, partition, accepts=accepts))
        assert len(records) > 0
        return records

    def enter_controlled_shutdown(self) -> list[VersionedRecord]:
        """Begin a controlled shutdown: other brokers lead, and this one is in no ISR (KIP-841)."""
        assert not self._broker.fenced, "a fenced broker has already stopped"
        records = []
        if not self._broker.in_controlled_shutdown:
            records.append(self._change(version=1, in_controlled_shutdown=1))
        return [*records, *self._leave(self._is_in_sync)]

    def unregister(self) -> list[VersionedRecord]:
        """Remove the broker from its partitions, then from the metadata."""
        records = [*self._leave(self._is_in_sync), *self._leave(self._is_eligible)]
        epoch = self._broker.broker_epoch
        assert epoch >= 0, self._broker
        gone = UnregisterBrokerRecord(broker_id=self._broker_id, broker_epoch=epoch)
        return [*records, VersionedRecord(gone)]

    def restart(self, *, is_clean: bool) -> list[VersionedRecord]:
        """Remove a new incarnation from every ISR; after an unclean stop also from the ELRs."""
        if is_clean or self._image.finalized_features.get(ELR_VERSION, 0) == 0:
            return list(self._leave(self._is_in_sync))
        return [
            *self._leave(self._is_in_sync, is_unclean=True),
            *self._leave(self._is_eligible, is_unclean=True),
        ]

    def directories_offline(self, directories: Sequence[Uuid]) -> list[VersionedRecord]:
        """Remove replicas in failed directories from leaderships and ISRs (KIP-858)."""
        online = self._broker.log_dirs
        assert self._image.metadata_version >= DIRECTORIES_FROM
        failed = [each for each in online if each in directories]
        if not failed:
            return []
        records = list(self._leave(lambda each: _directory(each, self._broker_id) in failed))
        left = [each for each in online if each not in failed]
        assert len(left) < len(online), failed
        return [*records, self._change(version=2, log_dirs=left)]

    def leave(self, partitions: Iterable[tuple[str, int]]) -> list[VersionedRecord]:
        """Remove the broker from the ISRs of some partitions, given by topic and number."""
        records = []
        for topic_name, number in partitions:
            topic = self._image.topics_by_name[topic_name]
            elections = Elections.of(self._image, topic, self._settings)
            records += _made(self._without_broker(elections, topic.partitions[number]))
        assert all(isinstance(each.record, PartitionChangeRecord) for each in records), records
        return records

    def directories_cordoned(self, directories: Sequence[Uuid] | None) -> list[VersionedRecord]:
        """Record directories that get no new replicas (KIP-1066); None changes nothing."""
        known = self._broker.cordoned_log_dirs
        assert self._image.metadata_version >= CORDONED_FROM
        if directories is None or (known is not None and {*known} == {*directories}):
            return []
        return [self._change(version=3, cordoned_log_dirs=list(directories))]

    # -- partitions ------------------------------------------------------------------------------

    def _leave(self, concerns: _Concerns, *, is_unclean: bool = False) -> Iterator[VersionedRecord]:
        """Remove the broker from the ISR of partitions, and elect other leaders."""
        for elections, partition in self._partitions(concerns):
            change = self._without_broker(elections, partition)
            if is_unclean:
                change.unclean_shutdown = (self._broker_id,)
            yield from _made(change)

    def _without_broker(self, elections: Elections, partition: PartitionImage) -> PartitionChange:
        """Return a change that removes the broker from a partition's ISR and leadership."""
        broker_id, image = self._broker_id, self._image
        accepts = _accepting(image, broker_id, may_lead=False)
        change = PartitionChange(elections, partition, accepts=accepts)
        change.isr = tuple(each for each in partition.isr if each != broker_id)
        assert broker_id not in change.isr
        return change

    def _partitions(self, concerns: _Concerns) -> Iterator[tuple[Elections, PartitionImage]]:
        """Yield the affected partitions, topics in name order."""
        for topic in self._image.topics():
            elections = None
            for partition in topic.partitions.values():
                if concerns(partition):
                    assert partition.replicas, partition
                    elections = elections or Elections.of(self._image, topic, self._settings)
                    yield elections, partition

    def _is_in_sync(self, partition: PartitionImage) -> bool:
        return self._broker_id in partition.isr

    def _is_eligible(self, partition: PartitionImage) -> bool:
        return self._broker_id in partition.eligible_leader_replicas

    def _change(
        self,
        *,
        version: int = 0,
        fenced: int = 0,
        in_controlled_shutdown: int = 0,
        log_dirs: list[Uuid] | None = None,
        cordoned_log_dirs: list[Uuid] | None = None,
    ) -> VersionedRecord:
        """Return a change of the registration, in the lowest version that has it."""
        assert version >= 1 or not in_controlled_shutdown, version
        assert version >= 2 or not log_dirs, version
        assert version >= 3 or cordoned_log_dirs is None, version
        record = BrokerRegistrationChangeRecord(
            broker_id=self._broker_id,
            broker_epoch=self._broker.broker_epoch,
            fenced=fenced,
            in_controlled_shutdown=in_controlled_shutdown,
            log_dirs=log_dirs or [],
            cordoned_log_dirs=cordoned_log_dirs,
        )
        return VersionedRecord(record, version)


def _accepting(image: MetadataImage, broker_id: int, *, may_lead: bool) -> Accepts:
    """Return the test for leaders: `may_lead` for the broker, else whether it is active."""
    return lambda each: may_lead if each == broker_id else is_active(image, each)


def _made(change: PartitionChange) -> list[VersionedRecord]:
    record = change.record()
    assert record is None or isinstance(record.record, PartitionChangeRecord)
    return [] if record is None else [record]


def _directory(partition: PartitionImage, broker_id: int) -> Uuid | None:
    """Return the directory of a broker's replica of a partition, None if it is unknown."""
    by_replica = dict(zip(partition.replicas, partition.directories, strict=False))
    assert len(by_replica) <= len(partition.replicas), partition
    return by_replica.get(broker_id)
