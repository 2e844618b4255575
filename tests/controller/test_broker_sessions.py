"""Registrations that the sessions of brokers follow (KIP-631, KIP-919).

`registered_at` is the offset that a broker must have applied before it is unfenced; 4.3.1 keeps it
for every RegisterBrokerRecord that it replays (`ClusterControlManager`).
"""

from __future__ import annotations

import pytest

from kraft_wire.controller.broker_sessions import BrokerSessions
from kraft_wire.metadata.records import VersionedRecord
from kraft_wire.wire.generated.broker_registration_change_record import (
    BrokerRegistrationChangeRecord,
)
from kraft_wire.wire.generated.register_broker_record import RegisterBrokerRecord

BROKER = 2


def registered(broker_epoch: int) -> VersionedRecord:
    return VersionedRecord(RegisterBrokerRecord(broker_id=BROKER, broker_epoch=broker_epoch), 3)


def test_an_amended_registration_must_be_applied_too_and_keeps_the_session() -> None:
    """The same incarnation registers again when its features or listeners changed (KIP-919)."""
    sessions = BrokerSessions(own_id=1)
    sessions.follow([registered(10)], 10)
    sessions[BROKER].contact_ms = 500
    sessions.follow([registered(10)], 25)
    session = sessions[BROKER]
    assert (session.registered_at, session.contact_ms) == (25, 500)
    sessions.follow([registered(10)], 31)
    assert sessions[BROKER].registered_at == 31


def test_a_new_incarnation_has_no_session() -> None:
    sessions = BrokerSessions(own_id=1)
    sessions.follow([registered(10)], 10)
    former = sessions[BROKER]
    former.contact_ms, former.metadata_offset = 500, 9
    sessions.follow([registered(11)], 11)
    session = sessions[BROKER]
    assert session is not former
    assert (session.registered_at, session.contact_ms, session.metadata_offset) == (11, None, -1)


@pytest.mark.parametrize(("fenced", "offset"), [(1, -1), (0, 30), (-1, 30)])
def test_a_broker_that_is_fenced_is_no_longer_stopping(fenced: int, offset: int) -> None:
    """KIP-841: it may register, be unfenced and stop anew in the same epoch."""
    sessions = BrokerSessions(own_id=1)
    sessions.follow([registered(10)], 10)
    sessions[BROKER].controlled_shutdown_offset = 30
    change = BrokerRegistrationChangeRecord(broker_id=BROKER, broker_epoch=10, fenced=fenced)
    sessions.follow([VersionedRecord(change, 1)], 40)
    assert sessions[BROKER].controlled_shutdown_offset == offset
