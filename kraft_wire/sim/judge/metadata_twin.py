"""A dumb twin of the controllers' image: keys and values, replayed from committed records.

It shares no code with `metadata.replay`: every record sets or removes values under a key, and the
last one wins. `state_at` answers for any offset, so that lagging nodes and old snapshots can be
compared too. Sessions, voters and transactions are not here: the caller leaves out records of open
transactions.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Any, Final

from kraft_wire.wire.generated.access_control_entry_record import AccessControlEntryRecord
from kraft_wire.wire.generated.broker_registration_change_record import (
    BrokerRegistrationChangeRecord,
)
from kraft_wire.wire.generated.client_quota_record import ClientQuotaRecord
from kraft_wire.wire.generated.config_record import ConfigRecord
from kraft_wire.wire.generated.delegation_token_record import DelegationTokenRecord
from kraft_wire.wire.generated.feature_level_record import FeatureLevelRecord
from kraft_wire.wire.generated.partition_change_record import PartitionChangeRecord
from kraft_wire.wire.generated.partition_record import PartitionRecord
from kraft_wire.wire.generated.producer_ids_record import ProducerIdsRecord
from kraft_wire.wire.generated.register_broker_record import RegisterBrokerRecord
from kraft_wire.wire.generated.register_controller_record import RegisterControllerRecord
from kraft_wire.wire.generated.remove_access_control_entry_record import (
    RemoveAccessControlEntryRecord,
)
from kraft_wire.wire.generated.remove_delegation_token_record import RemoveDelegationTokenRecord
from kraft_wire.wire.generated.remove_topic_record import RemoveTopicRecord
from kraft_wire.wire.generated.remove_user_scram_credential_record import (
    RemoveUserScramCredentialRecord,
)
from kraft_wire.wire.generated.topic_record import TopicRecord
from kraft_wire.wire.generated.unregister_broker_record import UnregisterBrokerRecord
from kraft_wire.wire.generated.user_scram_credential_record import UserScramCredentialRecord
from kraft_wire.wire.message import Message

__all__ = ["Key", "Partition", "Twin", "Value"]

Key = tuple[Any, ...]
"""The key of a value: its kind, then names and numbers."""
Value = Any
"""A comparable value; None is the lack of one."""
Partition = dict[str, Any]

_TOPIC_RESOURCE: Final = 2
_SAME_LEADER: Final = -2
_LISTS: Final = (
    "replicas",
    "isr",
    "adding_replicas",
    "removing_replicas",
    "directories",
    "eligible_leader_replicas",
    "last_known_elr",
)


class Twin:
    """Values by key, now and at every offset before."""

    def __init__(self) -> None:
        self.now: dict[Key, Value] = {}
        self._history: dict[Key, list[tuple[int, Value]]] = {}

    def replay_all(self, records: Iterable[Message]) -> dict[Key, Value]:
        """Replay the records of a snapshot, and return the state."""
        for record in records:
            self.replay(record, 0)
        return self.now

    def state_at(self, end_offset: int) -> dict[Key, Value]:
        """Return the state of the records below an offset."""
        found = {}
        for key, changes in self._history.items():
            at = bisect_left(changes, end_offset, key=lambda change: change[0])
            if at and changes[at - 1][1] is not None:
                found[key] = changes[at - 1][1]
        return found

    def of_kind(self, kind: str) -> list[tuple[Key, Value]]:
        """Return the values of one kind, in the order of their creation."""
        return [(key, value) for key, value in self.now.items() if key[0] == kind]

    def topic_name(self, topic_id: bytes) -> str | None:
        """Return the name of a topic that exists."""
        return next((key[1] for key, of in self.of_kind("topic") if of == topic_id), None)

    def _set(self, key: Key, value: Value, offset: int) -> None:
        if value is None:
            self.now.pop(key, None)
        else:
            self.now[key] = value
        self._history.setdefault(key, []).append((offset, value))

    # -- records ---------------------------------------------------------------------------------

    def replay(self, record: Message, offset: int) -> None:
        """Apply one record, which counts from `offset` on; records without a value do nothing."""
        match record:
            case FeatureLevelRecord(name=name, feature_level=level):
                self._set(("feature", name), level or None, offset)
            case ConfigRecord():
                key = ("config", record.resource_type, record.resource_name, record.name)
                self._set(key, record.value, offset)
            case ClientQuotaRecord():
                entity = tuple(sorted((e.entity_type, e.entity_name or "") for e in record.entity))
                value = None if record.remove else record.value
                self._set(("quota", entity, record.key), value, offset)
            case ProducerIdsRecord():
                self._set(("producer ids",), record.next_producer_id, offset)
            case _:
                self._replay_nodes(record, offset)

    def _replay_nodes(self, record: Message, offset: int) -> None:
        match record:
            case RegisterBrokerRecord():
                self._set(("broker", record.broker_id), _broker(record), offset)
            case BrokerRegistrationChangeRecord():
                self._change_broker(record, offset)
            case UnregisterBrokerRecord():
                self._set(("broker", record.broker_id), None, offset)
            case RegisterControllerRecord():
                content = (record.incarnation_id, _endpoints(record), _features(record))
                self._set(("controller", record.controller_id), content, offset)
            case _:
                self._replay_topics(record, offset)

    def _replay_topics(self, record: Message, offset: int) -> None:
        match record:
            case TopicRecord():
                self._set(("topic", record.name), bytes(record.topic_id), offset)
            case PartitionRecord():
                key = ("partition", bytes(record.topic_id), record.partition_id)
                self._set(key, _partition(record), offset)
            case PartitionChangeRecord():
                key = ("partition", bytes(record.topic_id), record.partition_id)
                self._set(key, changed_partition(self.now[key], record), offset)
            case RemoveTopicRecord():
                self._remove_topic(bytes(record.topic_id), offset)
            case _:
                self._replay_security(record, offset)

    def _replay_security(self, record: Message, offset: int) -> None:
        match record:
            case AccessControlEntryRecord():
                self._set(("acl", bytes(record.id)), acl_content(record), offset)
            case RemoveAccessControlEntryRecord():
                self._set(("acl", bytes(record.id)), None, offset)
            case UserScramCredentialRecord():
                keys = (bytes(record.salt), bytes(record.stored_key), bytes(record.server_key))
                key = ("scram", record.name, record.mechanism)
                self._set(key, (*keys, record.iterations), offset)
            case RemoveUserScramCredentialRecord():
                self._set(("scram", record.name, record.mechanism), None, offset)
            case DelegationTokenRecord():
                times = (record.issue_timestamp, record.max_timestamp, record.expiration_timestamp)
                content = (record.owner, record.requester, tuple(record.renewers), *times)
                self._set(("token", record.token_id), content, offset)
            case RemoveDelegationTokenRecord():
                self._set(("token", record.token_id), None, offset)

    def _change_broker(self, record: BrokerRegistrationChangeRecord, offset: int) -> None:
        after = dict(self.now["broker", record.broker_id])
        if record.fenced:
            after["fenced"] = record.fenced > 0
        if record.in_controlled_shutdown:
            after["leaving"] = True
        if record.log_dirs:
            after["directories"] = tuple(sorted(bytes(each) for each in record.log_dirs))
        if record.cordoned_log_dirs is not None:
            after["cordoned"] = tuple(bytes(each) for each in record.cordoned_log_dirs)
        self._set(("broker", record.broker_id), after, offset)

    def _remove_topic(self, topic_id: bytes, offset: int) -> None:
        """A topic takes its partitions and its settings with it."""
        name = self.topic_name(topic_id)
        for key in list(self.now):
            is_setting = key[:3] == ("config", _TOPIC_RESOURCE, name)
            if is_setting or key == ("topic", name) or key[:2] == ("partition", topic_id):
                self._set(key, None, offset)


def _broker(record: RegisterBrokerRecord) -> dict[str, Any]:
    return {
        "epoch": record.broker_epoch,
        "incarnation": bytes(record.incarnation_id),
        "endpoints": _endpoints(record),
        "features": _features(record),
        "rack": record.rack,
        "fenced": record.fenced,
        "leaving": record.in_controlled_shutdown,
        "directories": tuple(sorted(bytes(each) for each in record.log_dirs)),
        "cordoned": tuple(bytes(each) for each in record.cordoned_log_dirs or ()),
    }


def _endpoints(record: RegisterBrokerRecord | RegisterControllerRecord) -> Value:
    return sorted((e.name, e.host, e.port, e.security_protocol) for e in record.end_points)


def _features(record: RegisterBrokerRecord | RegisterControllerRecord) -> Value:
    features = record.features
    return sorted((f.name, f.min_supported_version, f.max_supported_version) for f in features)


def _partition(record: PartitionRecord) -> Partition:
    found: Partition = {name: _listed(getattr(record, name)) for name in _LISTS}
    found["leader"] = record.leader
    found["leader_epoch"] = record.leader_epoch
    found["partition_epoch"] = record.partition_epoch
    found["recovery"] = record.leader_recovery_state
    return found


def changed_partition(before: Partition, record: PartitionChangeRecord) -> Partition:
    """Return a partition after a change: null members stay, epochs rise by one."""
    after = dict(before)
    for name in _LISTS:
        if getattr(record, name) is not None:
            after[name] = _listed(getattr(record, name))
    if record.leader != _SAME_LEADER:
        after["leader"] = record.leader
        after["leader_epoch"] += 1
    if record.leader_recovery_state >= 0:
        after["recovery"] = record.leader_recovery_state
    after["partition_epoch"] += 1
    return after


def _listed(values: Sequence[Any] | None) -> tuple[Any, ...]:
    return tuple(bytes(each) if isinstance(each, bytes) else each for each in values or ())


def acl_content(record: AccessControlEntryRecord) -> tuple[Any, ...]:
    """Return the fields of an access-control entry, without its id."""
    return (
        record.resource_type,
        record.resource_name,
        record.pattern_type,
        record.principal,
        record.host,
        record.operation,
        record.permission_type,
    )
