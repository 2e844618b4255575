"""`acknowledged`: records that were acknowledged to clients are in the leader's log.

A ledger has one JSON object a line: `topic`, `partition`, `offset` of a record, and `crc32` of its
value (of no bytes for a null value). Records below the log start were deleted by design, and
records of compacted topics may be gone: those that are present must match.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from kraft_wire.audit.finding import Finding
from kraft_wire.audit.layout import Layout
from kraft_wire.columnar.arrays import Bools, Int64s
from kraft_wire.foreign_text import json_value

__all__ = ["Acknowledged", "LedgerError", "check_acknowledged", "read_ledger", "wanted_offsets"]

_MISSING: Final = -1
_FIELDS: Final = ("topic", "partition", "offset", "crc32")


class LedgerError(ValueError):
    """A line that a ledger cannot have."""


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """The lines about one partition, by offset."""

    offsets: Int64s
    checksums: Int64s


def read_ledger(lines: Iterable[str], name: str) -> dict[tuple[str, int], Acknowledged]:
    """Return the ledger by topic and partition; LedgerError names the first line that is wrong."""
    found: defaultdict[tuple[str, int], list[tuple[int, int]]] = defaultdict(list)
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            entry = json_value(line)
            topic, *numbers = (entry[field] for field in _FIELDS)
            partition, offset, checksum = np.array(numbers, np.int64).tolist()
            found[str(topic), partition].append((offset, checksum))
        except (ValueError, TypeError, KeyError, OverflowError) as error:
            wanted = ", ".join(_FIELDS)
            raise LedgerError(f"{name}:{number}: not a JSON object with {wanted}") from error
    return {
        key: Acknowledged(*np.array(sorted(set(entries)), np.int64).T)
        for key, entries in found.items()
    }


def wanted_offsets(layout: Layout, ledger: Acknowledged) -> Bools:
    """Return which lines are still about the log: those at its start or behind it."""
    wanted: Bools = ledger.offsets >= layout.replica.log_start_offset
    return wanted


def check_acknowledged(
    layout: Layout, ledger: Acknowledged, offsets: Int64s, checksums: Int64s
) -> Iterator[Finding]:
    """Compare the ledger with the batches read of the leader's log, sorted by offset.

    Lines that are missing or wrong without a right one between them are one finding.
    """
    replica = layout.replica
    wanted = wanted_offsets(layout, ledger)
    acknowledged, sums = ledger.offsets[wanted], ledger.checksums[wanted]
    place = np.searchsorted(offsets, acknowledged)
    held = np.minimum(place, max(len(offsets) - 1, 0))
    is_there = (
        offsets[held] == acknowledged if len(offsets) else np.zeros(len(acknowledged), np.bool_)
    )
    found = np.where(is_there, checksums[held], _MISSING) if len(offsets) else acknowledged * 0 - 1
    wrong = found != sums
    if replica.is_compacted:
        wrong &= is_there
    begins = np.flatnonzero(wrong & ~np.concatenate(([False], wrong[:-1])))
    for begin in begins.tolist():
        right = np.flatnonzero(~wrong[begin:])
        end = begin + int(right[0]) if len(right) else len(wrong)
        yield Finding(
            *("acknowledged", "error", replica.node, replica.topic, replica.partition),
            *(int(acknowledged[begin]), *_place_of(layout, int(acknowledged[begin]))),
            _what_is_lost(acknowledged[begin:end], is_there[begin:end]),
        )


def _what_is_lost(offsets: Int64s, is_there: Bools) -> str:
    what = "has another value" if is_there[0] else "is not in the leader's log"
    if len(offsets) == 1:
        return f"the acknowledged record {what}"
    others = f"the next {len(offsets) - 1}, up to {offsets[-1]}"
    return f"the acknowledged record {what}; {others} fail too"


def _place_of(layout: Layout, offset: int) -> tuple[str, int]:
    """Return file and position of the batch that should hold an offset, or of the one before."""
    batches = layout.replica.batches
    if not len(layout.rows):
        return "", -1
    at = int(np.searchsorted(batches.base_offset[layout.rows], offset, side="right")) - 1
    row = int(layout.rows[max(at, 0)])
    return batches.file(row), int(batches.position[row])
