"""What a leader looks at again although no log has grown: with time, brokers and settings."""

import pytest

from kraft_wire.broker.settings import BrokerSettings
from tests.broker.replication.leading import LAG_MAX_MS, Leading
from tests.broker.small_broker import partition_image

TWO = partition_image(0, replicas=(1, 2))


@pytest.mark.parametrize("lag_max_ms", [0, 1])
def test_the_shortest_lag_leaves_time_between_two_looks(lag_max_ms: int) -> None:
    leading = Leading(TWO)
    leading.broker.settings = BrokerSettings(replica_lag_time_max_ms=lag_max_ms)
    leading.pass_time(LAG_MAX_MS)
    assert leading.broker.deadline_ms() == leading.now_ms + 1
