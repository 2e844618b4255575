"""What a batch may unfold to is the configuration's to say, through a whole node."""

import pytest

from kraft_wire.sim.disk.files import SimFileSystem
from kraft_wire.wire.compression.codecs import Compression
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record
from tests.broker.groups.harness import WALL_MS
from tests.broker.groups.node_door import NodeDoor


def produced(door: NodeDoor, value: bytes) -> int:
    """The error code of a produce of one gzip record."""
    record = Record(None, value, timestamp=WALL_MS)
    batch = bytes(build_batch([record], compression=Compression.GZIP))
    data = PartitionProduceData(index=0, records=batch)
    topic = TopicProduceData(name="t", partition_data=[data])
    request = ProduceRequest(acks=-1, timeout_ms=1_000, topic_data=[topic])
    answer = door.send(request, 9).response.responses[0].partition_responses[0]
    return int(answer.error_code)


@pytest.mark.parametrize(
    ("overrides", "size_bytes", "error"),
    [
        ({}, 1_000_000, ErrorCode.NONE),
        ({"max_decompressed_message_bytes": "100000"}, 99_900, ErrorCode.NONE),
        ({"max_decompressed_message_bytes": "100000"}, 100_001, ErrorCode.MESSAGE_TOO_LARGE),
        ({"decompression_ratio_max": "100"}, 1_000_000, ErrorCode.NONE),
        ({"decompression_ratio_max": "100"}, 3 << 20, ErrorCode.MESSAGE_TOO_LARGE),
        ({"compression_type": "zstd"}, 1_000_000, ErrorCode.NONE),
    ],
)
def test_batch_is_judged_by_the_configured_limits(
    overrides: dict[str, str], size_bytes: int, error: ErrorCode
) -> None:
    door = NodeDoor(SimFileSystem(), **overrides)
    door.prepare("t")
    assert produced(door, bytes(size_bytes)) == error
