"""Where the fuzzer starts from: valid bytes for each target, most of them made by Apache's classes.

The golden corpus gives bodies, headers and batches; compressed bodies come from the codecs' own
libraries. A fuzzer that begins with nothing spends its time on finding a magic number.
"""

import gzip
import hashlib
from collections.abc import Iterator
from pathlib import Path

import cramjam
import lz4.frame
import zstandard

from kraft_wire.wire.generated import registry
from tests.fuzz.login_seeds import LOGIN_SEEDS
from tests.golden.vectors import CORPUS, Vector, read_vectors

__all__ = ["write_seeds"]

PLAIN = b"the quick brown fox jumps over the lazy dog " * 20
SEEDS_MAX = 3000


def write_seeds(target: str, folder: Path) -> None:
    """Put the seeds of a target into its corpus folder; files that are there stay."""
    for number, data in enumerate(_seeds(target)):
        if number >= SEEDS_MAX:
            return
        (folder / hashlib.sha1(data).hexdigest()).write_bytes(data)


def _seeds(target: str) -> Iterator[bytes]:
    if target in _COMPRESSED:
        yield _COMPRESSED[target]
        return
    if target in LOGIN_SEEDS:
        yield from LOGIN_SEEDS[target]()
        return
    for path in sorted(CORPUS.rglob("*.jsonl")):
        for vector in read_vectors(path):
            data = _from_vector(target, vector)
            if data is not None:
                yield data


_COMPRESSED = {
    "gzip": gzip.compress(PLAIN),
    "snappy": bytes(cramjam.snappy.compress_raw(PLAIN)),
    "lz4": bytes(lz4.frame.compress(PLAIN)),
    "zstd": zstandard.compress(PLAIN),
}


def _from_vector(target: str, vector: Vector) -> bytes | None:
    raw = bytes.fromhex(vector.hex)
    if target in ("frame", "framing"):
        return len(raw).to_bytes(4, "big") + raw
    if target == "header":
        return raw if vector.kind == "request_header" else None
    if target in ("record_batch", "memory_records", "segment"):
        return raw if vector.kind == "records" else None
    if target == vector.kind and target in _ENTRIES:
        return _selector(target, vector) + raw
    return None


_ENTRIES = {
    "request": list(registry.REQUESTS.values()),
    "response": list(registry.RESPONSES.values()),
    "metadata_record": list(registry.METADATA_RECORDS.values()),
}


def _selector(target: str, vector: Vector) -> bytes:
    """Return the two bytes by which the target chooses message and version."""
    entries = _ENTRIES[target]
    position = next(n for n, entry in enumerate(entries) if entry.name == vector.name)
    return bytes([position, vector.version - entries[position].min_version])
