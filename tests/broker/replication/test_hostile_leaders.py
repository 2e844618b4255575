"""A leader may send anything: the follower goes on, and its log is sound at the next start."""

import struct
from random import Random

import pytest

from kraft_wire.model import Offset
from kraft_wire.storage.directory.log_directory import LogDirectory
from kraft_wire.storage.log_config import LogConfig
from kraft_wire.wire.crc32c import crc32c
from kraft_wire.wire.generated.fetch import FetchRequest, PartitionData
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


def spoilt(chance: Random, batch: bytes) -> bytes:
    """The batch with a field of its header changed, mostly under a right checksum."""
    changed = bytearray(batch)
    for _ in range(chance.choice([0, 0, 0, 1, 1, 2])):
        at, kind = chance.choice(list(FIELDS.items()))
        bits = 8 * struct.calcsize(kind)
        value = chance.choice([*SOME, chance.getrandbits(bits)]) & ((1 << bits) - 1)
        changed[at : at + bits // 8] = value.to_bytes(bits // 8, "big")
    if chance.randrange(8) == 0:
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    else:
        changed[17:21] = crc32c(bytes(changed[21:])).to_bytes(4, "big")
    return bytes(changed)


def answer_of(chance: Random, next_offset: int) -> PartitionData:
    """Records that follow, more or less, and bounds of any kind."""
    batches, offset = [], next_offset + chance.choice([0, 0, 0, 0, -1, 3])
    for _ in range(chance.randrange(4)):
        count = 1 + chance.randrange(3)
        made = batch_bytes(
            max(0, offset),
            count=count,
            epoch=chance.choice([4, 5, 5, 5, 6]),
            producer_id=chance.choice([-1, 3]),
            sequence=chance.choice([0, offset % 1_000]),
            timestamp=chance.choice([0, 1, -1, 1 << 40]),
            transactional=chance.randrange(3) == 0,
        )
        batches.append(spoilt(chance, made))
        offset += count
    return data(
        b"".join(batches)[: chance.choice([None, None, None, 70])],
        high_watermark=chance.choice([*SOME, offset]),
        log_start_offset=chance.choice([0, 0, 0, *SOME]),
        error=chance.choice([0] * 12 + [1, 3, 6, 74, 76, 4_711]),
        diverging=chance.choice(
            [None] * 9 + [(chance.randrange(7), chance.randrange(30)), (5, 1 << 62)]
        ),
    )


@pytest.mark.parametrize("seed", range(6))
def test_whatever_a_leader_sends_the_follower_goes_on_and_its_log_is_sound(seed: int) -> None:
    chance = Random(seed)
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
                found = answer_of(chance, log.log_end_offset)
                follower.answer(found, session_id=chance.choice([9, 9, 9, 9, 0, 8]))
            else:
                follower.answer(session_id=0)
        elif request is not None:
            follower.answer_offset(
                chance.choice([*SOME, log.log_end_offset]), chance.choice([0, 74])
            )
        follower.now_ms += chance.choice([0, BACKOFF_MS])
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
