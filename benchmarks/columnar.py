"""`python -m benchmarks.columnar [--quick]`: records to Arrow against the straight wire decoder.

Both sides read the same log file of batches of format 2, walk over it, check every checksum and
decode every record with key, value and headers; ours ends in Arrow arrays, the other side in
`Record` objects. Also the headers alone with checksums, in bytes a second. Rounds alternate in one
process; processor time, best round. A ratio is wire / columns: above 1 the columns are faster.
Needs the extra `columnar`; judged are equal counts of records and equal sums of value bytes.
"""

import argparse
import platform
import random
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow.compute as pc

from kraft_wire.columnar import (
    MemoryFile,
    batch_columns,
    read_records,
    read_windows,
)
from kraft_wire.wire.compression.codecs import Compression
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record
from kraft_wire.wire.records.record_batch import parse_batches

KEY_BYTES = 13
VALUE_BYTES = 135
BATCH_BYTES = (16 << 10, 1 << 20)
SEED = 5


@dataclass(frozen=True)
class Case:
    """One log file in memory."""

    name: str
    data: bytes
    records: int


def make(codec: Compression, batch_bytes: int, records: int) -> Case:
    """Batches of JSON-like values, every fifth record with a header."""
    random_source = random.Random(SEED)
    per_batch = batch_bytes // (KEY_BYTES + VALUE_BYTES + 12)
    filling = [
        b'{"user": %d, "amount": %d, "note": "'
        % (random_source.randrange(10**6), random_source.randrange(10**4))
        for _ in range(512)
    ]
    parts = []
    for first in range(0, records, per_batch):
        batch = [
            Record(
                b"key-%09d" % offset,
                filling[offset % 512].ljust(VALUE_BYTES, b"abcdef"[offset % 6 : offset % 6 + 1]),
                offset,
                1_700_000_000_000 + offset,
                [("trace", b"0123456789")] if offset % 5 == 0 else None,
            )
            for offset in range(first, min(first + per_batch, records))
        ]
        parts.append(build_batch(batch, base_offset=first, compression=codec))
    return Case(f"{codec.name.lower()}, {batch_bytes >> 10} KiB", b"".join(parts), records)


def by_wire(case: Case) -> tuple[int, int]:
    """Count records and value bytes with the straight decoder."""
    count = size = 0
    for batch in parse_batches(case.data):
        assert batch.crc_is_valid()
        records = batch.records()
        count += len(records)
        size += sum(len(record.value or b"") for record in records)
    return count, size


def by_columns(case: Case) -> tuple[int, int]:
    """The same with columns."""
    count = size = 0
    for window in read_windows(MemoryFile(case.data), len(case.data)):
        for records in read_records(window, batch_columns(window)):
            count += len(records)
            size += pc.sum(pc.binary_length(records.content["value"])).as_py() or 0
    return count, size


def headers_only(case: Case) -> tuple[int, int]:
    """Headers and checksums of every batch."""
    count = 0
    for window in read_windows(MemoryFile(case.data), len(case.data)):
        columns = batch_columns(window)
        assert columns.is_valid.all()
        count += int(columns.count.sum())
    return count, 0


def best(work: Callable[[Case], tuple[int, int]], case: Case, rounds: int) -> tuple[float, int]:
    """Return the processor seconds of the quickest round, and the sum that is compared."""
    seconds = []
    for _ in range(rounds):
        begin = time.process_time()
        count, size = work(case)
        seconds.append(time.process_time() - begin)
        assert count == case.records, (count, case.records)
    return min(seconds), size


def main() -> int:
    """Print one line a case; return 0."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.columnar")
    parser.add_argument("--quick", action="store_true", help="fewer records and rounds")
    quick = parser.parse_args().quick
    records, rounds = (60_000, 2) if quick else (400_000, 4)
    print(f"columns against the wire decoder, {records:,} records, {platform.processor()}")
    print("                    columns M/s   wire M/s   ratio   headers+CRC GB/s")
    for codec in Compression:
        for batch_bytes in BATCH_BYTES:
            case = make(codec, batch_bytes, records)
            ours, our_size = best(by_columns, case, rounds)
            wire, wire_size = best(by_wire, case, max(rounds // 2, 1))
            assert our_size == wire_size, (our_size, wire_size)
            scan, _ = best(headers_only, case, rounds)
            print(
                f"{case.name:<20}{records / ours / 1e6:>10.2f}{records / wire / 1e6:>11.2f}"
                f"{wire / ours:>8.1f}{len(case.data) / scan / 1e9:>16.1f}",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
