"""The entries of a segment's `.index`: offsets and the positions where their batches begin.

Entries are returned as they are; the caller checks each one, because an index may be stale. The
index file of an active segment is preallocated, ten megabytes of zeros behind a few entries, so it
is read in chunks up to the first invalid entry.
"""

from typing import Final, NamedTuple

import numpy as np

from kraft_wire.columnar.arrays import Int64s
from kraft_wire.model import StorageError
from kraft_wire.storage.files import FileSystem
from kraft_wire.storage.segment import LOG_SUFFIX

__all__ = ["IndexEntries", "index_entries"]

_SUFFIX: Final = ".index"
_ENTRY: Final = np.dtype([("relative_offset", ">i4"), ("position", ">i4")])
_CHUNK_BYTES: Final = 1 << 16


class IndexEntries(NamedTuple):
    """One element an entry, in the order of the file."""

    relative_offsets: Int64s
    """Of the last record of each batch, from the segment's base offset on."""
    positions: Int64s
    """In the `.log` file, always above 0: its beginning needs no entry."""


def index_entries(fs: FileSystem, log_path: str, log_bytes: int) -> IndexEntries:
    """Return the entries that point into the log; none without an index."""
    try:
        data = _read(fs, log_path.removesuffix(LOG_SUFFIX) + _SUFFIX)
    except StorageError:
        data = b""
    whole = len(data) // _ENTRY.itemsize * _ENTRY.itemsize
    entries = np.frombuffer(data[:whole], _ENTRY)
    positions = entries["position"].astype(np.int64)
    usable = (positions > 0) & (positions < log_bytes)
    return IndexEntries(
        entries["relative_offset"].astype(np.int64)[usable],
        positions[usable],
    )


def _read(fs: FileSystem, path: str) -> bytes:
    """Return the file up to a chunk that ends in zeros."""
    file = fs.open_for_reading(path)
    chunks: list[bytes] = []
    try:
        while chunk := file.pread(_CHUNK_BYTES, len(chunks) * _CHUNK_BYTES):
            chunks.append(chunk)
            if len(chunk) < _CHUNK_BYTES or not any(chunk[-_ENTRY.itemsize :]):
                break
    finally:
        file.close()
    return b"".join(chunks)
