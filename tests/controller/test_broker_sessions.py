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
from tests.broker.small_broker import broker_image

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


def test_a_new_active_controller_has_just_heard_from_unfenced_brokers_alone() -> None:
    """A fenced one may register as another incarnation at once (`BrokerHeartbeatManager.register`).

    A broker must have applied all that the controller knows: which part of it is its registration
    is not known any more.
    """
    sessions = BrokerSessions(own_id=1)
    brokers = {2: broker_image(2, fenced=True), 3: broker_image(3)}
    sessions.begin(brokers, 90, 500)
    assert [sessions.is_valid(each, 100, 600) for each in brokers] == [False, True]
    assert [sessions[each].registered_at for each in brokers] == [90, 90]
    assert sessions.deadline_ms(brokers, 100) == 601
