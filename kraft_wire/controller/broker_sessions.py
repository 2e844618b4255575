"""Broker sessions at the active controller: last contact, progress, controlled shutdown.

Soft state (KIP-631, KIP-841): it is in no record, and a controller that becomes active gives every
unfenced broker a new session. A session belongs to one broker epoch. It starts with the first
heartbeat and ends after `broker.session.timeout.ms` without one: then the broker is fenced. Only
registered brokers have an entry, so peers cannot add entries.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from kraft_wire.frozen import slotted
from kraft_wire.metadata.image import BrokerImage
from kraft_wire.metadata.records import VersionedRecord
from kraft_wire.wire.generated.broker_registration_change_record import (
    BrokerRegistrationChangeRecord,
)
from kraft_wire.wire.generated.register_broker_record import RegisterBrokerRecord
from kraft_wire.wire.generated.unregister_broker_record import UnregisterBrokerRecord

__all__ = ["BrokerSession", "BrokerSessions"]

_NONE: Final = -1
_FENCED: Final = 1
_HIGHEST: Final = (1 << 63) - 1


@slotted(eq=False)
class BrokerSession:
    """One registered broker, as the active controller sees it."""

    registered_at: int
    """Offset of the registration's record: a broker that knows it may be unfenced."""
    contact_ms: int | None = None
    """Time of the last heartbeat, None without a session."""
    metadata_offset: int = _NONE
    """The last offset that the broker reported as applied."""
    controlled_shutdown_offset: int = _NONE
    """The offset that active brokers must apply before it may stop, -1 if it does not stop."""


class BrokerSessions:
    """The sessions of all registered brokers."""

    def __init__(self, own_id: int) -> None:
        """`own_id` is the node's own: its broker lasts as long as the controller beside it."""
        assert own_id >= 0, own_id
        self._own_id = own_id
        self._by_id: dict[int, BrokerSession] = {}

    def begin(self, brokers: Mapping[int, BrokerImage], offset: int, now_ms: int) -> None:
        """Start sessions as the active controller: all unfenced brokers count as just heard from.

        `offset` is the image's. The offset of an older registration is no longer known.
        """
        assert not self._by_id, "a controller begins once in a leader epoch"
        self._by_id = {
            broker_id: BrokerSession(offset, None if broker.fenced else now_ms)
            for broker_id, broker in brokers.items()
        }

    def end(self) -> None:
        """Cease to be active."""
        self._by_id = {}
        assert not self._by_id

    def __getitem__(self, broker_id: int) -> BrokerSession:
        """The session of a registered broker."""
        assert broker_id in self._by_id, broker_id
        return self._by_id[broker_id]

    def follow(self, records: Iterable[VersionedRecord], base_offset: int) -> None:
        """Follow the registration and sessions of brokers in a batch that was appended."""
        assert base_offset >= 0, base_offset
        for offset, (record, _) in enumerate(records, base_offset):
            match record:
                case RegisterBrokerRecord():
                    self._register(record, offset)
                case UnregisterBrokerRecord():
                    self._by_id.pop(record.broker_id, None)
                case BrokerRegistrationChangeRecord() if record.fenced == _FENCED:
                    self._by_id[record.broker_id].controlled_shutdown_offset = _NONE

    def _register(self, record: RegisterBrokerRecord, offset: int) -> None:
        """Follow a registration: a new incarnation has no session, an amendment keeps it."""
        assert record.broker_epoch <= offset, record
        known = self._by_id.get(record.broker_id)
        if known is not None and record.broker_epoch <= known.registered_at:
            known.registered_at = offset
            return
        self._by_id[record.broker_id] = BrokerSession(offset)

    # -- time ------------------------------------------------------------------------------------

    def is_valid(self, broker_id: int, timeout_ms: int, now_ms: int) -> bool:
        """Return whether a broker has a session that has not ended."""
        assert timeout_ms > 0, timeout_ms
        session = self._by_id.get(broker_id)
        if session is None or session.contact_ms is None:
            return False
        return broker_id == self._own_id or session.contact_ms + timeout_ms >= now_ms

    def deadline_ms(self, brokers: Mapping[int, BrokerImage], timeout_ms: int) -> int | None:
        """Return when the next session of an unfenced broker ends, None without one."""
        contacts = [
            session.contact_ms
            for broker_id, session in self._by_id.items()
            if session.contact_ms is not None and self._can_end(brokers, broker_id)
        ]
        assert timeout_ms > 0, timeout_ms
        return min(contacts) + timeout_ms + 1 if contacts else None

    def ended(self, brokers: Mapping[int, BrokerImage], timeout_ms: int, now_ms: int) -> int | None:
        """Return an unfenced broker whose session has ended; one at a time, as release 4.3.1."""
        assert self._by_id.keys() == brokers.keys(), "sessions are those of the image"
        for broker_id in self._by_id:
            if self._can_end(brokers, broker_id) and not self.is_valid(
                broker_id, timeout_ms, now_ms
            ):
                return broker_id
        return None

    def _can_end(self, brokers: Mapping[int, BrokerImage], broker_id: int) -> bool:
        """Tell whether a broker is unfenced and not the one beside this controller."""
        return broker_id != self._own_id and not brokers[broker_id].fenced

    # -- progress --------------------------------------------------------------------------------

    def lowest_active_offset(self, brokers: Mapping[int, BrokerImage]) -> int:
        """Return the offset that every active broker has applied; `_HIGHEST` without such brokers.

        The broker beside this controller does not count: it has no delay.
        """
        return min(
            (
                session.metadata_offset
                for broker_id, session in self._by_id.items()
                if self._can_end(brokers, broker_id) and session.controlled_shutdown_offset < 0
            ),
            default=_HIGHEST,
        )
