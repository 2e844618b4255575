"""A leader may send anything: the follower goes on, and its log is sound at the next start."""

import struct
from random import Random

import pytest

from kraft_wire.model import Offset
from kraft_wire.storage.directory.log_directory import LogDirectory
from kraft_wire.storage.log_config import LogConfig
from kraft_wire.wire.crc32c import crc32c
from kraft_wire.wire.generated.fetch import FetchRequest, PartitionData
from kraft_wire.wire.generated.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from tests.broker.replication.followers import (
    BACKOFF_MS,
    BROKER_EPOCH,
    WALL_MS,
    Follower,
    content,
    data,
)
from tests.storage.making import batch_bytes

FIELDS = {
    0: "q",
    12: "i",
    16: "b",
    21: "h",
    23: "i",
    27: "q",
    35: "q",
    43: "q",
    51: "h",
    53: "i",
    57: "i",
}
"""Where a batch's header has a field, and its kind; the length and the checksum are made right."""
SOME = (0, 1, -1, 2, 7, 1 << 31, (1 << 31) - 1, -(1 << 31), (1 << 62), (1 << 63) - 1, -(1 << 63))


def spoilt(random_source: Random, batch: bytes) -> bytes:
    """The batch with a field of its header changed, mostly under a right checksum."""
    changed = bytearray(batch)
    for _ in range(random_source.choice([0, 0, 0, 1, 1, 2])):
        at, kind = random_source.choice(list(FIELDS.items()))
        bits = 8 * struct.calcsize(kind)
        value = random_source.choice([*SOME, random_source.getrandbits(bits)]) & ((1 << bits) - 1)
        changed[at : at + bits // 8] = value.to_bytes(bits // 8, "big")
    if random_source.randrange(8) == 0:
        changed[random_source.randrange(len(changed))] ^= 1 << random_source.randrange(8)
    else:
        changed[17:21] = crc32c(bytes(changed[21:])).to_bytes(4, "big")
    return bytes(changed)


def answer_of(random_source: Random, next_offset: int) -> PartitionData:
    """Records that follow, more or less, and bounds of any kind."""
    batches, offset = [], next_offset + random_source.choice([0, 0, 0, 0, -1, 3])
    for _ in range(random_source.randrange(4)):
        count = 1 + random_source.randrange(3)
        made = batch_bytes(
            max(0, offset),
            count=count,
            epoch=random_source.choice([4, 5, 5, 5, 6]),
            producer_id=random_source.choice([-1, 3]),
            sequence=random_source.choice([0, offset % 1_000]),
            timestamp=random_source.choice([0, 1, -1, 1 << 40]),
            transactional=random_source.randrange(3) == 0,
        )
        batches.append(spoilt(random_source, made))
        offset += count
    return data(
        b"".join(batches)[: random_source.choice([None, None, None, 70])],
        high_watermark=random_source.choice([*SOME, offset]),
        log_start_offset=random_source.choice([0, 0, 0, *SOME]),
        error=random_source.choice([0] * 12 + [1, 3, 6, 74, 76, 4_711]),
        diverging=random_source.choice(
            [None] * 9 + [(random_source.randrange(7), random_source.randrange(30)), (5, 1 << 62)]
        ),
    )


@pytest.mark.parametrize("seed", range(6))
def test_whatever_a_leader_sends_the_follower_goes_on_and_its_log_is_sound(seed: int) -> None:
    random_source = Random(seed)
    follower = Follower()
    config = {"segment.bytes": "1048576", "cleanup.policy": "compact"}
    log = follower.make(config=config)
    follower.follow()
    appended = 0
    for _ in range(400):
        before = log.log_end_offset
        request = follower.fetcher.request(BROKER_EPOCH, follower.now_ms)
        if isinstance(request, FetchRequest):
            if request.session_epoch == 0 or request.topics or follower.fetcher._session._wanted:
                found = answer_of(random_source, log.log_end_offset)
                follower.answer(found, session_id=random_source.choice([9, 9, 9, 9, 0, 8]))
            else:
                follower.answer(session_id=0)
        elif isinstance(request, OffsetForLeaderEpochRequest):
            end = random_source.choice([*SOME, log.log_end_offset, log.log_end_offset + 2])
            follower.answer_epoch(random_source.choice([-1, 3, 4, 5, 9]), end)
        elif request is not None:
            follower.answer_offset(
                random_source.choice([*SOME, log.log_end_offset]), random_source.choice([0, 74])
            )
        follower.now_ms += random_source.choice([0, BACKOFF_MS])
        appended += log.log_end_offset > before
        assert 0 <= log.log_start_offset <= log.high_watermark <= log.log_end_offset
        if log.log_end_offset > 1 << 60:  # from there nothing more would follow
            log.truncate_fully_and_start_at(Offset(0))
    assert not follower.failures
    log.flush()
    follower.directory.checkpoint()
    again = LogDirectory.open(follower.fs.crashed([]), "/disk")
    again.load_logs(lambda topic: LogConfig.from_mapping(config), WALL_MS)
    assert not again.damaged
    (found_log,) = again.logs.values()
    assert (found_log.log_end_offset, content(found_log)) == (log.log_end_offset, content(log))
    assert appended > 5
