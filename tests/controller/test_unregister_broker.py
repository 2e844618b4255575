"""UnregisterBroker: the end of a registration."""

import pytest

from kraft_wire.metadata.image import NO_LEADER
from kraft_wire.wire.generated.broker_heartbeat import BrokerHeartbeatResponse
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.unregister_broker import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)
from kraft_wire.wire.generated.unregister_broker_record import UnregisterBrokerRecord
from tests.controller.broker_cluster import BrokerCluster


@pytest.mark.parametrize("broker_id", [-1, 9, 1 << 30])
def test_broker_that_is_not_registered_cannot_be_forgotten(broker_id: int) -> None:
    cluster = BrokerCluster([2])
    answer = cluster.request(UnregisterBrokerRequest(broker_id=broker_id))
    assert answer == UnregisterBrokerResponse(
        error_code=ErrorCode.BROKER_ID_NOT_REGISTERED,
        error_message=f"Broker ID {broker_id} is not currently registered",
    )


def test_forgotten_broker_leads_nothing_is_in_no_isr_and_has_to_register_anew() -> None:
    cluster = BrokerCluster([2, 3])
    cluster.create("t", [2, 3])
    cluster.create("u", [2])
    epoch = cluster.epochs[2]
    answer = cluster.request(UnregisterBrokerRequest(broker_id=2))
    assert answer == UnregisterBrokerResponse()
    record = UnregisterBrokerRecord(broker_id=2, broker_epoch=epoch)
    assert cluster.committed[-1].record == record
    assert 2 not in cluster.loader.image.brokers
    assert (cluster.partition("t").leader, cluster.partition("t").isr) == (3, (3,))
    assert cluster.partition("u").leader == NO_LEADER
    stale = BrokerHeartbeatResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)
    assert cluster.heartbeat(2) == stale
    cluster.pass_time(60_000, alive=[3])
    assert cluster.register(2, 2).error_code == ErrorCode.NONE
    assert not cluster.heartbeat(2).is_fenced
    assert cluster.partition("u").leader == 2
