"""`check_index`, entry by entry: each boundary of what an index may say of the log beside it.

Batches and entries are arrays, written by hand. Each segment has batches of 100 bytes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from kraft_wire.audit.fault import END_OF_LOG, Fault
from kraft_wire.audit.finding import Finding
from kraft_wire.audit.index_checks import SegmentIndexEntries, check_index
from kraft_wire.audit.layout import Layout
from kraft_wire.audit.replica import Batches, Replica, segment_file
from kraft_wire.columnar.log_windows import Status

OFFSETS = ((0, 1), (2, 4), (5, 9))
"""Base and last offset of the three batches of a segment at 0; their times are 10, 20 and 30."""
TOLD = tuple[str, int, int, str]

END_OF_NONE = "entry for offset 3 at 100 is not the end of a batch"
NO_BATCH = "entry for offset 4 at 150 does not point at a batch"
OTHER_TIME = "entry for time 21 at offset 4 differs from the time of its batch"


def segment(base: int = 0, statuses: Sequence[Status] = (Status.OK,) * 3) -> list[dict[str, int]]:
    rows = []
    for place, (status, (first, last)) in enumerate(zip(statuses, OFFSETS, strict=True)):
        row = {"segment": base, "position": 100 * place, "size_bytes": 100, "status": status}
        row |= {"base_offset": base + first, "last_offset": base + last}
        rows.append(row | {"max_timestamp": 10 + 10 * place})
    return rows


def layout(
    rows: Sequence[dict[str, int]], segments: Sequence[int] = (), misplaced: Sequence[int] = ()
) -> Layout:
    def column(name: str) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return np.array([row.get(name, -1) for row in rows], np.int64)

    names = [name for name in Batches.__slots__ if name != "is_control"]
    batches = Batches(
        **{name: column(name) for name in names}, is_control=np.zeros(len(rows), np.bool_)
    )
    names_of_files = sorted({*segments, *(row["segment"] for row in rows)})
    replica = Replica("1", "t", 0, batches, 0, segments=names_of_files)
    valid = np.flatnonzero(batches.is_valid)
    return Layout(replica, valid, [], 0, None, frozenset(misplaced))


def fault(
    check: str, first: int, end: int = END_OF_LOG, position: int = 0, file: int | None = 0
) -> Fault:
    name = "" if file is None else segment_file(file)
    return Fault(Finding(check, "error", "1", "t", 0, first, name, position, ""), first, end)


def told(
    entries: Sequence[tuple[int, int]] = (),
    times: Sequence[tuple[int, int]] = (),
    rows: Sequence[dict[str, int]] | None = None,
    *,
    base: int = 0,
    log_bytes: int = 300,
    odd_bytes: tuple[int, int] = (0, 0),
    faults: Sequence[Fault] = (),
    segments: Sequence[int] = (),
    misplaced: Sequence[int] = (),
) -> list[TOLD]:
    """Judge entries of offsets with positions, and of times with offsets: (suffix, place, ...)."""
    indexes = SegmentIndexEntries(
        base,
        log_bytes,
        *(np.array([entry[at] for entry in entries], np.int64) for at in (0, 1)),
        *(np.array([entry[at] for entry in times], np.int64) for at in (0, 1)),
        odd_bytes,
    )
    rows = segment(base) if rows is None else rows
    found = check_index(layout(rows, [base, *segments], misplaced), indexes, faults)
    return [
        (each.file.removeprefix(f"{base:020d}"), each.position, each.offset, each.detail)
        for each in found
    ]


def test_an_entry_names_the_first_or_the_last_offset_of_the_batch_it_points_at() -> None:
    assert told() == []
    assert told([(0, 0), (2, 100), (5, 200)], [(10, 0), (20, 2), (30, 5)]) == []
    assert told([(1, 0), (4, 100), (9, 200)], [(10, 1), (20, 4), (30, 9)]) == []
    assert told([(4, 100)], [(20, 3)]) == []
    assert told([(4, 100)], [(20, 3)], base=1000) == []


@pytest.mark.parametrize(
    ("entries", "place", "offset", "detail"),
    [
        ([(1, 0), (4, 0)], 8, 4, "entry for offset 4 at 0 does not increase"),
        ([(4, 100), (9, 0)], 8, 9, "entry for offset 9 at 0 does not increase"),
        ([(4, 100), (4, 200)], 8, 4, "entry for offset 4 at 200 does not increase"),
        ([(9, 100), (4, 200)], 8, 4, "entry for offset 4 at 200 does not increase"),
        ([(1, -100)], 0, 1, "entry for offset 1 at -100 does not increase"),
        ([(-1, 0)], 0, -1, "entry for offset -1 at 0 does not increase"),
        ([(4, 150)], 0, 4, NO_BATCH),
        ([(1, 0), (9, 300)], 8, 9, "entry for offset 9 at 300 does not point at a batch"),
        ([(1, 100)], 0, 1, "entry for offset 1 at 100 is before its batch"),
        ([(3, 100)], 0, 3, END_OF_NONE),
        (
            [(1, 0), (2, 100), (6, 200)],
            16,
            6,
            "entry for offset 6 at 200 is not the end of a batch",
        ),
        ([(3, 100), (4, 150)], 0, 3, END_OF_NONE),
        ([(4, 150), (7, 200)], 0, 4, NO_BATCH),
    ],
)
def test_the_first_offset_entry_that_is_wrong_is_told(
    entries: list[tuple[int, int]], place: int, offset: int, detail: str
) -> None:
    assert told(entries) == [(".index", place, offset, detail)]


@pytest.mark.parametrize(
    ("times", "place", "offset", "detail"),
    [
        ([(10, 1), (10, 4)], 12, 4, "entry for time 10 at offset 4 does not increase"),
        ([(20, 4), (10, 9)], 12, 9, "entry for time 10 at offset 9 does not increase"),
        ([(20, 4), (30, 3)], 12, 3, "entry for time 30 at offset 3 does not increase"),
        ([(10, 0), (20, 4), (30, 1)], 24, 1, "entry for time 30 at offset 1 does not increase"),
        ([(30, 10)], 0, 10, "entry for time 30 at offset 10 is above the end"),
        ([(10, 0), (21, 4)], 12, 4, OTHER_TIME),
        ([(20, 5)], 0, 5, "entry for time 20 at offset 5 differs from the time of its batch"),
    ],
)
def test_the_first_time_entry_that_is_wrong_is_told(
    times: list[tuple[int, int]], place: int, offset: int, detail: str
) -> None:
    assert told(times=times) == [(".timeindex", place, offset, detail)]


def test_both_indexes_are_judged_by_offsets_behind_the_name_of_their_segment() -> None:
    assert told([(3, 100)], [(21, 4)], base=1000) == [
        (".index", 0, 1003, "entry for offset 1003 at 100 is not the end of a batch"),
        (
            ".timeindex",
            0,
            1004,
            "entry for time 21 at offset 1004 differs from the time of its batch",
        ),
    ]


def test_entries_beside_an_empty_log_point_at_nothing() -> None:
    assert told([(0, 0)], [(10, 0)], rows=[], log_bytes=0) == [
        (".index", 0, 0, "entry for offset 0 at 0 does not point at a batch"),
        (".timeindex", 0, 0, "entry for time 10 at offset 0 is above the end"),
    ]
    assert told(rows=[], log_bytes=0) == []


def test_bytes_behind_the_last_whole_entry_are_told_where_the_entries_are_right() -> None:
    assert told([(1, 0), (4, 100)], [(10, 0)], odd_bytes=(3, 5)) == [
        (".index", 16, -1, "3 bytes at the end are not a complete entry"),
        (".timeindex", 12, -1, "5 bytes at the end are not a complete entry"),
    ]
    assert told([(3, 100)], odd_bytes=(3, 0)) == [(".index", 0, 3, END_OF_NONE)]
    assert told(times=[(21, 4)], odd_bytes=(0, 3)) == [(".timeindex", 0, 4, OTHER_TIME)]


def test_a_log_that_grew_since_is_judged_up_to_its_last_batch_that_was_read() -> None:
    """The entry of the last batch is judged; what points behind it is about what came later."""
    assert told([(9, 200), (12, 250)], [(30, 9), (40, 10)], log_bytes=301, odd_bytes=(1, 1)) == []
    assert told([(8, 199)], [(31, 9)], log_bytes=301) == [
        (".index", 0, 8, "entry for offset 8 at 199 does not point at a batch"),
        (".timeindex", 0, 9, "entry for time 31 at offset 9 differs from the time of its batch"),
    ]
    assert told([(4, 200)], log_bytes=301) == [
        (".index", 0, 4, "entry for offset 4 at 200 is before its batch")
    ]
    assert told([(9, 0)], [(10, 0)], rows=[], log_bytes=1) == []
    below = told([(9, -1)], [(10, -1)], rows=[], log_bytes=1)
    assert [each[0] for each in below] == [".index", ".timeindex"]
    assert told([(3, 100)], log_bytes=301) == []  # later batches may end there


def test_a_log_that_is_shorter_now_or_holds_other_offsets_is_not_judged() -> None:
    assert told([(3, 100)], [(21, 4)], log_bytes=299) == []
    assert told([(3, 100)], [(21, 4)], log_bytes=-1) == []
    assert told([(3, 100)], [(21, 4)], misplaced=[0]) == []
    assert len(told([(3, 100)], [(21, 4)], misplaced=[1000])) == 2


def test_only_the_batches_of_the_own_segment_count() -> None:
    rows = [*segment(0), *segment(1000), *segment(2000)]
    for base in (0, 1000, 2000):
        assert told([(1, 0), (4, 100), (9, 200)], [(10, 1)], rows, base=base) == []
        assert told([(4, 150)], rows=rows, base=base)[0][2] == base + 4
        assert told([(3, 100)], rows=rows, base=base)[0][2] == base + 3


@pytest.mark.parametrize(
    ("first", "position", "offset"), [(0, 0, 0), (2, 100, 2), (5, 200, 5), (10, 300, 10)]
)
def test_entries_behind_a_fault_are_not_judged(first: int, position: int, offset: int) -> None:
    """A gap moves what follows: the entry just before it is judged, the one at it is not."""
    gap = [fault("gap", first)]
    assert told([(400, position)], [(400, offset)], faults=gap) == []
    assert told([(-1, position)], faults=gap) == []
    if first:
        (wrong,) = told([(400, position - 1)], faults=gap)
        assert wrong == (
            ".index",
            0,
            400,
            f"entry for offset 400 at {position - 1} does not point at a batch",
        )
        (late,) = told(times=[(400, offset - 1)], faults=gap)
        assert late[:3] == (".timeindex", 0, offset - 1)
    assert told(odd_bytes=(3, 3), faults=gap) == []


def test_a_fault_within_a_batch_hides_the_whole_of_it() -> None:
    for first in (2, 3, 4):
        gap = [fault("gap", first)]
        assert told([(400, 150)], faults=gap) == []
        assert told([(400, 50)], faults=gap) != []


def test_the_first_of_several_faults_is_the_end_of_what_is_judged() -> None:
    for faults in ([fault("gap", 2), fault("gap", 5)], [fault("gap", 5), fault("gap", 2)]):
        assert told([(400, 100)], [(400, 2)], faults=faults) == []
        assert len(told([(400, 99)], [(400, 1)], faults=faults)) == 2


def test_a_fault_of_another_segment_is_none_of_this_one() -> None:
    entries, times = [(1, 0), (4, 150)], [(20, 4), (20, 9)]
    for gap in (fault("gap", 999, 1000), fault("gap", 2000), fault("gap", 3000)):
        assert len(told(entries, times, base=1000, faults=[gap], segments=[0, 2000])) == 2
    for gap in (fault("gap", 1000), fault("gap", 1000, 1001)):
        assert told(entries, times, base=1000, faults=[gap], segments=[0, 2000]) == []
    for begin in (2000, 2500):
        (beyond,) = told(
            [(400, 300)], base=1000, faults=[fault("gap", begin)], segments=[2000, 3000]
        )
        assert beyond[3] == "entry for offset 1400 at 300 does not point at a batch"
    last = [fault("gap", 1999)]
    assert told([(400, 300)], [(40, 999)], base=1000, faults=last, segments=[2000]) == []


def test_a_fault_that_reaches_into_a_segment_hides_all_of_it() -> None:
    reaching = [fault("gap", 999, 1001)]
    assert told([(4, 150)], [(21, 4)], base=1000, faults=reaching, odd_bytes=(1, 1)) == []
    assert told([(-1, 0)], base=1000, faults=reaching) == []
    assert len(told([(4, 150)], [(21, 4)], base=1000, faults=[fault("gap", 999, 1000)])) == 2
    assert len(told([(4, 150)], [(21, 4)], base=1000, faults=[fault("epoch", 999, 1001)])) == 2


@pytest.mark.parametrize("check", ["epoch", "producer"])
def test_a_wrong_epoch_or_sequence_moves_nothing(check: str) -> None:
    assert told([(4, 150)], [(21, 4)], faults=[fault(check, 0)]) == [
        (".index", 0, 4, NO_BATCH),
        (".timeindex", 0, 4, OTHER_TIME),
    ]


def damaged(*statuses: Status) -> list[dict[str, int]]:
    return segment(statuses=statuses)


def test_a_wrong_checksum_leaves_the_batches_behind_it_where_they_were() -> None:
    """What the damaged batch itself says of offsets and times is not believed."""
    rows = damaged(Status.OK, Status.CRC, Status.OK)
    crc = [fault("crc", 2, 5, position=100)]
    assert told([(4, 100), (9, 200)], [(20, 4), (30, 9)], rows, faults=crc) == []
    assert told([(4, 150)], rows=rows, faults=crc) == [(".index", 0, 4, NO_BATCH)]
    assert told([(3, 100)], rows=rows, faults=crc) == []  # of which batch it is the end is lost
    assert told([(4, 200)], rows=rows, faults=crc) == [
        (".index", 0, 4, "entry for offset 4 at 200 is before its batch")
    ]
    assert told(times=[(77, 9)], rows=rows, faults=crc) == []  # the time of the damaged one
    assert told(times=[(20, 4), (20, 9)], rows=rows, faults=crc) == [
        (".timeindex", 12, 9, "entry for time 20 at offset 9 does not increase")
    ]
    assert told([(400, 100)], rows=damaged(Status.OK, Status.CRC, Status.CRC), faults=crc) == []


def test_a_wrong_checksum_of_the_last_batch_of_all_moves_nothing() -> None:
    rows, crc = damaged(Status.OK, Status.OK, Status.CRC), [fault("crc", 5, position=200)]
    assert told([(4, 150)], rows=rows, faults=crc) == [(".index", 0, 4, NO_BATCH)]
    assert told([(9, 200)], rows=rows, faults=crc) == []


def test_a_batch_of_the_one_record_at_0_is_as_sound_as_any() -> None:
    rows = segment()[:1]
    rows[0] |= {"last_offset": 0}
    assert told([(0, 0)], [(10, 0)], rows, log_bytes=100) == []
    assert told([(1, 0)], [(11, 0)], rows, log_bytes=100) == [
        (".index", 0, 1, "entry for offset 1 at 0 is not the end of a batch"),
        (".timeindex", 0, 0, "entry for time 11 at offset 0 differs from the time of its batch"),
    ]


def test_a_damaged_first_batch_is_believed_in_nothing() -> None:
    rows = damaged(Status.CRC, Status.OK, Status.OK)
    crc = [fault("crc", 0, 2, position=0)]
    assert told([(0, 0)], [(77, 1)], rows, faults=crc) == []


def test_a_wrong_length_moves_what_follows_it() -> None:
    """The rest of the batch stands behind it as bytes that are no batch."""
    for rest in (Status.TORN, Status.GARBAGE):
        rows = damaged(Status.OK, Status.CRC, rest)
        crc = [fault("crc", 2, position=100)]
        assert told([(400, 150)], [(400, 4)], rows, faults=crc) == []
        assert told([(400, 50)], [(11, 1)], rows, faults=crc) == [
            (".index", 0, 400, "entry for offset 400 at 50 does not point at a batch"),
            (
                ".timeindex",
                0,
                1,
                "entry for time 11 at offset 1 differs from the time of its batch",
            ),
        ]


def test_what_stands_in_the_next_segment_is_no_rest_of_the_last_batch() -> None:
    for rest in (Status.TORN, Status.GARBAGE, Status.OK):
        other = {"segment": 10, "position": 0, "size_bytes": 100, "status": rest}
        rows = [*damaged(Status.OK, Status.OK, Status.CRC), other]
        crc = [fault("crc", 5, position=200)]
        assert told([(4, 150)], rows=rows, faults=crc) == [(".index", 0, 4, NO_BATCH)]
        assert told([(9, 250)], rows=rows, faults=crc) != []


@pytest.mark.parametrize(
    ("statuses", "crc"),
    [
        ((Status.OK, Status.TORN, Status.OK), fault("crc", 2, position=100)),
        ((Status.OK, Status.GARBAGE, Status.OK), fault("crc", 2, position=100)),
        ((Status.OK, Status.CRC, Status.OK), fault("crc", 2, position=100, file=1000)),
        ((Status.OK, Status.CRC, Status.OK), fault("crc", 2, position=150)),
        ((Status.OK, Status.CRC, Status.OK), fault("gap", 2, position=100)),
        ((Status.OK, Status.OK, Status.OK), fault("crc", 2, position=100)),
    ],
)
def test_other_damage_may_have_moved_what_follows_it(
    statuses: tuple[Status, ...], crc: Fault
) -> None:
    assert told([(400, 250)], [(400, 4)], damaged(*statuses), faults=[crc]) == []


def test_the_damaged_batch_is_looked_for_in_every_segment_of_that_position() -> None:
    rows = [*segment(0), *segment(1000, (Status.OK, Status.CRC, Status.OK))]
    crc = [fault("crc", 1002, 1005, position=100, file=1000)]
    assert told([(4, 150)], rows=rows, base=1000, faults=crc) == [
        (".index", 0, 1004, "entry for offset 1004 at 150 does not point at a batch")
    ]
