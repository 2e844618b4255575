"""Invariants of what controllers decide: images are replays, and each record is allowed.

The committed log is replayed by a dumb twin (`metadata_twin`). Each record is compared with the
state before it: no fenced broker leads, an ISR adds only brokers that are allowed, epochs grow, ids
are unique, and a removed object existed. Sources: KIP-631, KIP-730, KIP-841, KIP-455, KIP-966.
"""

from __future__ import annotations

from typing import Any, Final

from kraft_wire.metadata.image_records import snapshot_values
from kraft_wire.metadata.records import decode_message
from kraft_wire.sim.judge.judge import Judge, LogSignals, NodeWatch, Signals
from kraft_wire.sim.judge.log_watch import SeenBatch, SeenSnapshot
from kraft_wire.sim.judge.metadata_twin import (
    Key,
    Partition,
    Twin,
    Value,
    acl_content,
    changed_partition,
)
from kraft_wire.wire.generated.abort_transaction_record import AbortTransactionRecord
from kraft_wire.wire.generated.access_control_entry_record import AccessControlEntryRecord
from kraft_wire.wire.generated.begin_transaction_record import BeginTransactionRecord
from kraft_wire.wire.generated.broker_registration_change_record import (
    BrokerRegistrationChangeRecord,
)
from kraft_wire.wire.generated.end_transaction_record import EndTransactionRecord
from kraft_wire.wire.generated.partition_change_record import PartitionChangeRecord
from kraft_wire.wire.generated.partition_record import PartitionRecord
from kraft_wire.wire.generated.producer_ids_record import ProducerIdsRecord
from kraft_wire.wire.generated.register_broker_record import RegisterBrokerRecord
from kraft_wire.wire.generated.remove_access_control_entry_record import (
    RemoveAccessControlEntryRecord,
)
from kraft_wire.wire.generated.remove_topic_record import RemoveTopicRecord
from kraft_wire.wire.generated.remove_user_scram_credential_record import (
    RemoveUserScramCredentialRecord,
)
from kraft_wire.wire.generated.topic_record import TopicRecord
from kraft_wire.wire.generated.unregister_broker_record import UnregisterBrokerRecord
from kraft_wire.wire.message import Message

__all__ = ["DECISIONS"]

_IMAGE_EVERY: Final = 16
_BLOCK: Final = 1_000
"""Producer ids of one block (KIP-730)."""
_NOBODY: Final = -1
_MIGRATING, _UNASSIGNED, _LOST = (number.to_bytes(16) for number in range(3))
"""Ids of directories that `DirectoryId` of release 4.3.1 reserves, 0 to 2."""
_LED: Final = (
    PartitionRecord,
    PartitionChangeRecord,
    RegisterBrokerRecord,
    BrokerRegistrationChangeRecord,
)
"""Records that may change leaders, or the replicas that may lead."""


class ImageIsReplay(Signals):
    """Images of nodes and snapshots equal the result of a dumb replay of the committed log."""

    id, name = "S45", "ImageIsReplay"

    def __init__(self, judge: Judge) -> None:
        super().__init__(judge)
        self._compared: dict[int, bool] = {}
        self._read: dict[bytes, dict[Key, Value]] = {}

    def applied(self, watch: NodeWatch) -> None:
        offset = watch.applied_offset
        if offset % _IMAGE_EVERY or offset in self._compared:
            return  # equal images at equal offsets are S16
        self._compared[offset] = True
        image = watch.node.raft.committed.image
        found = Twin().replay_all(map(decode_message, snapshot_values(image)))
        self._compare(watch, offset, found)

    def snapshot(self, watch: NodeWatch, snapshot: SeenSnapshot) -> None:
        if snapshot.offset == 0:
            return
        found = self._read.get(snapshot.data)
        if found is None:
            values = [value for batch in snapshot.batches() for value in batch.values()]
            found = Twin().replay_all(map(decode_message, values))
            self._read[snapshot.data] = found
        self._compare(watch, snapshot.offset, found)

    def _compare(self, watch: NodeWatch, offset: int, found: dict[Key, Value]) -> None:
        expected = self.judge.twin.state_at(offset)
        if found == expected:
            return
        keys = [key for key in {**found, **expected} if found.get(key) != expected.get(key)]
        facts = [f"{key}: {found.get(key)} instead of {expected.get(key)}" for key in keys[:3]]
        self._check(False, watch, offset, *facts)


class DecisionIsAllowed(LogSignals):
    """No committed record contradicts the records before it.

    It replays the judge's twin too, where records of a transaction count at its end.
    """

    id, name = "S46", "DecisionIsAllowed"

    def __init__(self, judge: Judge) -> None:
        super().__init__(judge)
        self.twin = judge.twin
        self._open: list[Message] | None = None
        """Records of the transaction that is open."""
        self._is_new = False
        """Whether brokers or partitions changed in this batch."""
        self._topic_ids: dict[bytes, bool] = {}
        self._epochs: dict[int, int] = {}
        """By broker: the highest epoch that it got."""
        self._base_offset = -1
        self._deposed_at: dict[int, int] = {}
        """By broker: the last batch in which it lost a leadership while it was active."""
        self._unfenced_at: dict[int, int] = {}
        """By broker: the last batch that unfenced it."""

    def committed(self, watch: NodeWatch, batch: SeenBatch) -> None:
        self._watch, self._epoch, self._base_offset = watch, batch.epoch, batch.base_offset
        for offset, value in enumerate(batch.values(), batch.base_offset):
            record = decode_message(value)
            if isinstance(record, BeginTransactionRecord):
                self._open = []
            elif isinstance(record, EndTransactionRecord | AbortTransactionRecord):
                records, self._open = self._open or [], None
                for each in records if isinstance(record, EndTransactionRecord) else ():
                    self._take(each, offset)
            elif self._open is not None:
                self._open.append(record)
            else:
                self._take(record, offset)
        if self._open is None and self._is_new:
            self._is_new = False
            self._led_by_the_living()

    def _led_by_the_living(self) -> None:
        """After a batch no fenced broker leads, and a partition that can have a leader has one.

        A fenced broker is in an ISR only alone.
        """
        for key, partition in self.twin.of_kind("partition"):
            isr, leader = partition["isr"], partition["leader"]
            can_lead = [each for each in isr if self._may_lead(each, partition)]
            fenced = [each for each in isr if self._is_fenced(each)]
            self._must(not self._is_fenced(leader), key, partition, "is led by a fenced broker")
            self._must(leader != _NOBODY or not can_lead, key, partition, "has no leader", can_lead)
            self._must(not fenced or len(isr) == 1, key, partition, "has fenced members", fenced)

    def _is_fenced(self, broker_id: int) -> bool:
        known: dict[str, Any] | None = self.twin.now.get(("broker", broker_id))
        return known is not None and bool(known["fenced"])

    def _take(self, record: Message, offset: int) -> None:
        self._is_new |= isinstance(record, _LED)
        match record:
            case TopicRecord():
                self._topic(record)
            case PartitionRecord():
                self._partition(record)
            case PartitionChangeRecord():
                self._partition_change(record)
            case RemoveTopicRecord():
                name = self.twin.topic_name(bytes(record.topic_id))
                self._must(name is not None, record, "there is no such topic")
            case RegisterBrokerRecord():
                self._registration(record, offset)
            case BrokerRegistrationChangeRecord() | UnregisterBrokerRecord():
                known = self.twin.now.get(("broker", record.broker_id))
                is_known = known is not None and known["epoch"] == record.broker_epoch
                self._must(is_known, record, known)
                if isinstance(record, BrokerRegistrationChangeRecord) and record.fenced > 0:
                    self.judge.marks["broker fenced"] += 1
                    led = self._deposed_at.get(record.broker_id) == self._base_offset
                    self.judge.fenced(self._epoch, record.broker_id, record.broker_epoch, led)
                elif isinstance(record, BrokerRegistrationChangeRecord) and record.fenced < 0:
                    self._unfenced_at[record.broker_id] = self._base_offset
            case _:
                self._others(record)
        self.twin.replay(record, offset)

    def _must(self, holds: bool, *facts: object) -> None:
        self._check(holds, self._watch, *facts)

    def _others(self, record: Message) -> None:
        now = self.twin.now
        match record:
            case ProducerIdsRecord():
                before = now.get(("producer ids",), 0)
                self._must(record.next_producer_id == before + _BLOCK, record, before)
                known = now.get(("broker", record.broker_id))
                self._must(known is not None and known["epoch"] == record.broker_epoch, record)
            case AccessControlEntryRecord():
                self._must(("acl", bytes(record.id)) not in now, record, "has a known id")
                contents = [content for _, content in self.twin.of_kind("acl")]
                self._must(acl_content(record) not in contents, record, "is there already")
            case RemoveAccessControlEntryRecord():
                self._must(("acl", bytes(record.id)) in now, record, "is not there")
            case RemoveUserScramCredentialRecord():
                self._must(("scram", record.name, record.mechanism) in now, record, "is not there")

    # -- topics ----------------------------------------------------------------------------------

    def _topic(self, record: TopicRecord) -> None:
        self._must(("topic", record.name) not in self.twin.now, record, "is there already")
        self._must(bytes(record.topic_id) not in self._topic_ids, record, "has a known id")
        self._topic_ids[bytes(record.topic_id)] = True

    def _partition(self, record: PartitionRecord) -> None:
        topic_id = bytes(record.topic_id)
        self._must(self.twin.topic_name(topic_id) is not None, record, "there is no such topic")
        count = sum(1 for key, _ in self.twin.of_kind("partition") if key[1] == topic_id)
        self._must(record.partition_id == count, record, "is not the next of", count)
        self._must(record.leader_epoch == record.partition_epoch == 0, record, "is not new")
        twin = Twin()
        twin.replay(record, 0)
        self._placed(record, {"isr": (), "leader": _NOBODY, "replicas": ()}, *twin.now.values())

    def _partition_change(self, record: PartitionChangeRecord) -> None:
        key = ("partition", bytes(record.topic_id), record.partition_id)
        before = self.twin.now.get(key)
        self._must(before is not None, record, "there is no such partition")
        assert before is not None
        after = changed_partition(before, record)
        self.judge.marks["partition changed"] += 1
        self._placed(record, before, after)
        former = before["leader"]
        is_deposed = former not in after["isr"] or after["leader"] == _NOBODY
        if is_deposed and record.replicas is None and self._is_active(former):
            self._deposed_at[former] = self._base_offset
        if record.leader in (-2, _NOBODY):
            return
        # A partition without a leader elects a replica where its new directory is named.
        known = after if before["leader"] == _NOBODY else before
        self._must(self._may_lead(record.leader, known), record, "leads, and may not", before)
        if record.leader != before["leader"]:
            in_order = [each for each in after["replicas"] if each in after["isr"]]
            first = next((each for each in in_order if self._may_lead(each, known)), _NOBODY)
            self._must(record.leader == first, record, "is not the first that may lead", before)
        if not self._watch.machine.setup.data.may_elect_uncleanly:
            # The change that ends a reassignment may bring its new leader into the ISR.
            in_sync = [*before["isr"], *before["eligible_leader_replicas"]]
            if not any(map(self._is_active, in_sync)):
                in_sync += before["last_known_elr"]
            joins = record.replicas is not None and record.leader in (record.isr or ())
            self._must(record.leader in in_sync or joins, record, "was not in sync", before)

    def _placed(self, record: Message, before: Partition, after: Partition) -> None:
        """Replicas are different brokers, and the ISR and its new members are of them.

        Only where eligible leader replicas are kept can the last member leave the ISR (KIP-966).
        """
        replicas, isr = after["replicas"], after["isr"]
        self._must(len(set(replicas)) == len(replicas) > 0, record, "replicas", replicas)
        self._must(len(set(isr)) == len(isr), record, "ISR", isr)
        self._must(isr or self._watch.machine.setup.keeps_elr, record, "ISR", isr)
        self._eligible(record, before, after)
        self._must(set(isr) <= set(replicas), record, "ISR", isr, "of", replicas)
        is_led = after["leader"] in (_NOBODY, *isr)
        self._must(is_led, record, "leader", after["leader"], "ISR", isr)
        for name in ("adding_replicas", "removing_replicas"):
            self._must(set(after.get(name, ())) <= set(replicas), record, name, after)
        for member in isr:
            if member not in before["isr"]:
                self._must(self._is_active(member), record, member, "joins the ISR", before)
        for replica in replicas:
            if replica not in before["replicas"]:
                is_known = ("broker", replica) in self.twin.now
                self._must(is_known, record, replica, "is not registered")

    def _eligible(self, record: Message, before: Partition, after: Partition) -> None:
        """Only what left the ISR with all committed records is eligible, and the last leader known.

        The last leader is remembered while no replica is in sync or eligible (KIP-966).
        """
        names = ("isr", "eligible_leader_replicas", "last_known_elr")
        isr, elr, last = (after.get(name, ()) for name in names)
        left = {*before["isr"], *before.get("eligible_leader_replicas", ())}
        self._must(set(elr) <= left - {*isr}, record, "eligible", elr, "after", before)
        self._must(set(elr) <= {*after["replicas"]}, record, "eligible", elr, "of", after)
        is_last = not last or (len(last) == 1 and not isr)
        self._must(is_last, record, "last leader", last, "after", before)

    def _is_active(self, broker_id: int) -> bool:
        """Return whether a broker is registered, unfenced, and not about to stop."""
        known: dict[str, Any] | None = self.twin.now.get(("broker", broker_id))
        return known is not None and not known["fenced"] and not known["leaving"]

    def _may_lead(self, broker_id: int, partition: Partition) -> bool:
        """Return whether a broker is active, and has the directory of its replica (KIP-858).

        A broker that lost its disk registers another directory: it leads nothing of the lost one
        until it has told the controller where the replica is now. As in Kafka, a broker may lead
        from the record on that unfences it, also if it was fenced in a controlled shutdown.
        """
        is_just_unfenced = self._unfenced_at.get(broker_id) == self._base_offset
        if not (self._is_active(broker_id) or is_just_unfenced):
            return False
        registered = self.twin.now[("broker", broker_id)]["directories"]
        places = dict(zip(partition["replicas"], partition.get("directories", ()), strict=False))
        place = places.get(broker_id, _MIGRATING)
        return place in (_UNASSIGNED, _MIGRATING, *registered) or (
            not registered and place != _LOST
        )

    # -- brokers ---------------------------------------------------------------------------------

    def _registration(self, record: RegisterBrokerRecord, offset: int) -> None:
        highest = self._epochs.get(record.broker_id, -1)
        known = self.twin.now.get(("broker", record.broker_id))
        is_same = known is not None and known["incarnation"] == bytes(record.incarnation_id)
        grows = record.broker_epoch > highest or (is_same and record.broker_epoch == highest)
        self._must(grows and record.broker_epoch <= offset, record, "after epoch", highest)
        self._epochs[record.broker_id] = record.broker_epoch


DECISIONS: Final = (ImageIsReplay, DecisionIsAllowed)
