"""Framing: any chunking gives the same frames, and no length is trusted before it is checked."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraft_wire.wire.frame import FrameReader, MalformedFrame, frame_prefix

SIZES = [0, 1, 5, 59, 60, 61, 64, 200, 3, 1000]
FRAMES = [bytes([n]) * size for n, size in enumerate(SIZES)]
STREAM = b"".join(frame_prefix(len(frame)) + frame for frame in FRAMES)


@given(cuts=st.lists(st.integers(min_value=0, max_value=len(STREAM)), max_size=30))
def test_any_chunking_gives_the_same_frames(cuts: list[int]) -> None:
    reader = FrameReader(frame_bytes_max=1000)
    frames: list[bytes] = []
    edges = sorted({0, *cuts, len(STREAM)})
    for start, end in pairwise(edges):
        frames += reader.feed(STREAM[start:end])
    assert frames == FRAMES
    assert reader.pending_bytes == 0


def test_every_byte_alone_gives_the_same_frames() -> None:
    reader = FrameReader(frame_bytes_max=1000)
    assert [frame for byte in STREAM for frame in reader.feed(bytes([byte]))] == FRAMES


@pytest.mark.parametrize(
    ("size", "reason"), [(1001, "1000 bytes are the maximum"), (-1, "negative")]
)
def test_length_that_no_frame_may_have_is_refused_as_soon_as_it_is_there(
    size: int, reason: str
) -> None:
    reader = FrameReader(frame_bytes_max=1000)
    with pytest.raises(MalformedFrame, match=reason) as caught:
        reader.feed(size.to_bytes(4, "big", signed=True))
    assert caught.value.size_bytes == size


def test_frames_before_a_bad_length_are_returned_and_then_it_is_refused_for_good() -> None:
    reader = FrameReader(frame_bytes_max=10)
    assert reader.feed(frame_prefix(2) + b"ab" + b"\xff\xff\xff\xff") == [b"ab"]
    for _ in range(2):
        with pytest.raises(MalformedFrame):
            reader.feed(b"")


def test_limit_may_change_between_frames() -> None:
    reader = FrameReader(frame_bytes_max=10)
    assert reader.feed(frame_prefix(10) + bytes(10)) == [bytes(10)]
    reader.frame_bytes_max = 20
    assert reader.feed(frame_prefix(20) + bytes(20)) == [bytes(20)]
    with pytest.raises(MalformedFrame):
        reader.feed(frame_prefix(21))
