"""Changes of a partition's segments, indexes and producer snapshots."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

from kraft_wire.wire.records.record_batch import parse_batches
from tests.apache.odd_directories.file_changes import (
    Change,
    added,
    copied_to,
    cut_by,
    cut_to,
    doubled,
    emptied,
    flipped,
    moved,
    removed,
    text,
    together,
)

__all__ = ["INDEXES", "LEFTOVERS", "SEGMENTS", "SNAPSHOTS"]

S0, S8, S9 = f"{0:020}", f"{8:020}", f"{9:020}"
"""The names of the segments; see `making`."""
_NOISE = bytes(range(7, 247, 3))


def _name(offset: int, suffix: str) -> str:
    return f"{offset:020}{suffix}"


def _indexes(segment: str) -> dict[str, Change]:
    """Changes of the offset index and the time index of a segment."""
    found: dict[str, Change] = {}
    for suffix, size in ((".index", 8), (".timeindex", 12)):
        name = segment + suffix
        found |= {
            f"{name} missing": removed(name),
            f"{name} empty": emptied(name),
            f"{name} with a part of an entry": added(name, _NOISE[:5]),
            f"{name} cut within an entry": cut_to(name, size - 3),
            f"{name} with zeros behind": added(name, bytes(4 * size)),
            f"{name} of noise": together(emptied(name), added(name, _NOISE[: 3 * size])),
            f"{name} with noise behind": added(name, _NOISE[:size]),
            f"{name} of zeros": together(emptied(name), added(name, bytes(2 * size))),
        }
    return found


def _offset_entry(relative: int, position: int) -> bytes:
    return struct.pack(">ii", relative, position)


def _time_entry(time: int, relative: int) -> bytes:
    return struct.pack(">qi", time, relative)


INDEXES: dict[str, Change] = {
    **_indexes(S0),
    **_indexes(S9),
    "index beyond the segment": together(
        emptied(S0 + ".index"), added(S0 + ".index", _offset_entry(7, 100_000))
    ),
    "index within a batch": together(
        emptied(S0 + ".index"), added(S0 + ".index", _offset_entry(5, 191))
    ),
    "index beyond the last offset": together(
        emptied(S9 + ".index"), added(S9 + ".index", _offset_entry(900, 100))
    ),
    "index of another segment": copied_to(S9 + ".index", S0 + ".index"),
    "time index of another segment": copied_to(S9 + ".timeindex", S0 + ".timeindex"),
    "time index of the future": together(
        emptied(S0 + ".timeindex"), added(S0 + ".timeindex", _time_entry(1 << 50, 7))
    ),
    "time index of the past": together(
        emptied(S0 + ".timeindex"), added(S0 + ".timeindex", _time_entry(5, 1))
    ),
    "time index of the past at the end": together(
        emptied(S9 + ".timeindex"), added(S9 + ".timeindex", _time_entry(5, 0))
    ),
    "time index beyond the last offset": together(
        emptied(S9 + ".timeindex"), added(S9 + ".timeindex", _time_entry(1 << 42, 500))
    ),
    "all indexes missing": removed("*.index", "*.timeindex", "*.txnindex"),
    "indexes without a segment": together(
        copied_to(S0 + ".index", _name(5, ".index")),
        copied_to(S0 + ".timeindex", _name(5, ".timeindex")),
        copied_to(S9 + ".txnindex", _name(5, ".txnindex")),
    ),
    "txnindex missing": removed(S9 + ".txnindex"),
    "txnindex empty": emptied(S9 + ".txnindex"),
    "txnindex cut": cut_by(S9 + ".txnindex", 5),
    "txnindex with noise behind": added(S9 + ".txnindex", _NOISE[:34]),
    "txnindex with a part behind": added(S9 + ".txnindex", _NOISE[:11]),
    "txnindex with zeros behind": added(S9 + ".txnindex", bytes(34)),
    "txnindex of version 1": flipped(S9 + ".txnindex", 1),
    "txnindex of an earlier segment": copied_to(S9 + ".txnindex", S0 + ".txnindex"),
    "txnindex with its entries twice": doubled(S9 + ".txnindex"),
}


SNAPSHOTS: dict[str, Change] = {
    "last snapshot missing": removed(_name(16, ".snapshot")),
    "all snapshots missing": removed("*.snapshot"),
    "all snapshots but the first missing": removed(
        _name(9, ".snapshot"), _name(12, ".snapshot"), _name(16, ".snapshot")
    ),
    "last snapshot damaged": flipped(_name(16, ".snapshot"), 20),
    "last snapshot empty": emptied(_name(16, ".snapshot")),
    "last snapshot cut": cut_by(_name(16, ".snapshot"), 9),
    "last snapshot with zeros behind": added(_name(16, ".snapshot"), bytes(46)),
    "last snapshot of version 9": flipped(_name(16, ".snapshot"), 1),
    "all snapshots damaged": together(
        *(flipped(_name(n, ".snapshot"), 20) for n in (8, 9, 12, 16))
    ),
    "all snapshots empty": together(*(emptied(_name(n, ".snapshot")) for n in (8, 9, 12, 16))),
    "snapshot beyond the end": copied_to(_name(16, ".snapshot"), _name(99, ".snapshot")),
    "snapshot within a segment": copied_to(_name(8, ".snapshot"), _name(5, ".snapshot")),
    "snapshot of an older state at the end": copied_to(
        _name(9, ".snapshot"), _name(16, ".snapshot")
    ),
    "snapshot of the end in the past": copied_to(_name(16, ".snapshot"), _name(9, ".snapshot")),
    "snapshot at the beginning": copied_to(_name(8, ".snapshot"), _name(0, ".snapshot")),
    "snapshot with another name": copied_to(_name(9, ".snapshot"), "latest.snapshot"),
}


def _merged(*names: str, target: str) -> Change:
    """Write a segment of the bytes of several."""

    def change(directory: Path) -> None:
        data = b"".join((directory / name).read_bytes() for name in names)
        (directory / target).write_bytes(data)

    return change


def _last_batch(change_it: Callable[[bytearray], bytes]) -> Change:
    """Change the last batch of the log."""

    def change(directory: Path) -> None:
        file = directory / (S9 + ".log")
        data = file.read_bytes()
        *_, last = parse_batches(memoryview(data))
        start = len(data) - last.size_bytes
        file.write_bytes(data[:start] + change_it(bytearray(data[start:])))

    return change


def _with(at: int, value: bytes) -> Callable[[bytearray], bytes]:
    """Replace bytes of a batch at a position."""

    def changed(data: bytearray) -> bytes:
        data[at : at + len(value)] = value
        return bytes(data)

    return changed


SEGMENTS: dict[str, Change] = {
    "empty segment at the end": emptied(_name(16, ".log")),
    "empty segment with indexes at the end": together(
        *(emptied(_name(16, suffix)) for suffix in (".log", ".index", ".timeindex"))
    ),
    "empty segment behind a gap": emptied(_name(25, ".log")),
    "segment of zeros at the end": text(_name(16, ".log"), "\0" * 500),
    "zeros behind the last batch": added(S9 + ".log", bytes(1000)),
    "few zeros behind the last batch": added(S9 + ".log", bytes(7)),
    "zeros behind an earlier segment": added(S0 + ".log", bytes(1000)),
    "noise behind the last batch": added(S9 + ".log", _NOISE),
    "noise behind an earlier segment": added(S0 + ".log", _NOISE),
    "last batch cut": cut_by(S9 + ".log", 5),
    "last batch cut within its head": cut_by(S9 + ".log", 60),
    "last batch missing": _last_batch(lambda _: b""),
    "last batch twice": _last_batch(lambda data: bytes(data * 2)),
    "length of the last batch too large": _last_batch(_with(8, b"\0\1\0\0")),
    "length of the last batch negative": _last_batch(_with(8, b"\xff")),
    "magic of the last batch wrong": _last_batch(_with(16, b"\7")),
    "base offset of the last batch too high": _last_batch(_with(7, b"\x63")),
    "base offset of the last batch too low": _last_batch(_with(7, b"\1")),
    "epoch of the last batch too low": _last_batch(_with(15, b"\0")),
    "epoch of the last batch higher": _last_batch(_with(15, b"\3")),
    "earlier segment cut within a batch": cut_by(S0 + ".log", 5),
    "earlier segment cut at a batch": cut_by(S0 + ".log", 90),
    "earlier segment empty": emptied(S0 + ".log"),
    "middle segment empty": emptied(S8 + ".log"),
    "last segment empty": emptied(S9 + ".log"),
    "last segment missing": removed(S9 + ".*"),
    "log of the last segment missing": removed(S9 + ".log"),
    "middle segment missing": removed(S8 + ".*"),
    "log of the middle segment missing": removed(S8 + ".log"),
    "first segment missing": removed(S0 + ".*"),
    "log of the first segment missing": removed(S0 + ".log"),
    "all segments missing": removed("*.log"),
    "all files but the small ones missing": removed("0*"),
    "all files missing": removed("*"),
    "byte changed in the first segment": flipped(S0 + ".log", 150),
    "byte changed in the last batch": flipped(S9 + ".log", -3),
    "byte changed in the middle of the last segment": flipped(S9 + ".log", 140),
    "copy of the first segment in its middle": copied_to(S0 + ".log", _name(4, ".log")),
    "copy of the last segment behind the end": copied_to(S9 + ".log", _name(16, ".log")),
    "last segment with a later name": moved(S9 + ".log", _name(10, ".log")),
    "first two segments merged": together(
        _merged(S0 + ".log", S8 + ".log", target=S0 + ".log"), removed(S8 + ".log")
    ),
}

_BOTH = _merged(S0 + ".log", S8 + ".log", target=_name(0, ".log.swap"))
LEFTOVERS: dict[str, Change] = {
    "deleted segment": copied_to(S0 + ".log", _name(0, ".log.deleted")),
    "deleted files of a missing segment": together(
        *(moved(S8 + each, S8 + each + ".deleted") for each in (".log", ".index", ".timeindex"))
    ),
    "deleted snapshot": copied_to(_name(9, ".snapshot"), _name(9, ".snapshot.deleted")),
    "cleaned segment": copied_to(S0 + ".log", _name(0, ".log.cleaned")),
    "cleaned index": copied_to(S0 + ".index", _name(0, ".index.cleaned")),
    "cleaned segment alone": moved(S0 + ".log", _name(0, ".log.cleaned")),
    "swap of the first segment": copied_to(S0 + ".log", _name(0, ".log.swap")),
    "swap of the last segment": copied_to(S9 + ".log", _name(9, ".log.swap")),
    "swap of the first two segments": _BOTH,
    "swap of the first two segments, one removed": together(_BOTH, removed(S8 + ".*g")),
    "swap alone": moved(S0 + ".log", _name(0, ".log.swap")),
    "swap of all files alone": together(
        *(moved(S0 + each, S0 + each + ".swap") for each in (".log", ".index", ".timeindex"))
    ),
    "swap of the last segment alone": moved(S9 + ".log", _name(9, ".log.swap")),
    "swap of an index": moved(S0 + ".index", _name(0, ".index.swap")),
    "swap of an index beside it": copied_to(S9 + ".index", _name(0, ".index.swap")),
    "swap of a txnindex": moved(S9 + ".txnindex", _name(9, ".txnindex.swap")),
    "swap beside a cleaned segment": together(
        copied_to(S8 + ".log", _name(8, ".log.swap")),
        copied_to(S0 + ".log", _name(0, ".log.cleaned")),
    ),
    "swap before a cleaned segment": together(
        copied_to(S0 + ".log", _name(0, ".log.swap")),
        copied_to(S8 + ".log", _name(8, ".log.cleaned")),
    ),
    "swap alone beside a cleaned segment of its name": together(
        copied_to(S8 + ".log", _name(8, ".log.cleaned")),
        moved(S8 + ".log", _name(8, ".log.swap")),
    ),
    "empty swap": emptied(_name(0, ".log.swap")),
    "swap with a batch cut": together(
        copied_to(S0 + ".log", _name(0, ".log.swap")), cut_by(_name(0, ".log.swap"), 5)
    ),
    "swap with a byte changed": together(
        copied_to(S0 + ".log", _name(0, ".log.swap")), flipped(_name(0, ".log.swap"), 150)
    ),
    "swap with a part of the first segment": together(
        copied_to(S0 + ".log", _name(0, ".log.swap")), cut_by(_name(0, ".log.swap"), 90)
    ),
    "swap behind the end": copied_to(S9 + ".log", _name(30, ".log.swap")),
    "temporary checkpoint": text("leader-epoch-checkpoint.tmp", "0\n1\n0 0\n"),
    "temporary partition.metadata": text("partition.metadata.tmp", "version: 0\n"),
    "unknown file": text("notes.txt", "x"),
    "unknown hidden file": text(".DS_Store", "x"),
    "unknown folder": lambda directory: (directory / "folder").mkdir(),
    "backup of a segment": copied_to(S0 + ".log", S0 + ".log.bak"),
    "segment with a short name": copied_to(S8 + ".log", "8.log"),
    "editor's backup of a segment": copied_to(S0 + ".log", S0 + ".log~"),
    "snapshot of metadata": text("00000000000000000005-0000000001.checkpoint", "x"),
}
