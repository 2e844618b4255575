"""Batches that we build, read by Apache: the way back of the ``records`` kind.

Records that Apache wrote are read by us, built into new batches with every codec, and given to
Apache's MemoryRecords, which must see the same records and the same header fields again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from kraft_wire.wire.compression.codecs import Compression
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record_batch import RecordBatch, parse_batches
from tests.apache.oracle import ask_apache
from tests.golden.comparison import Tally
from tests.golden.vectors import RECORDS_KIND, Vector, first_difference, read_vectors, same_json

VECTORS_MAX = 60
DIFFERING_KEYS = frozenset({"crc", "sizeInBytes", "compression"})


@dataclass(slots=True)
class BuiltBatches:
    """How many of our batches Apache read as meant, and what it made of the others."""

    tally: Tally = field(default_factory=Tally)
    problems: list[str] = field(default_factory=list)


def rebuilt(batch: RecordBatch, codec: Compression) -> bytes:
    """The same records and header fields in a batch of another codec."""
    return bytes(
        build_batch(
            batch.records(),
            base_offset=batch.base_offset,
            partition_leader_epoch=batch.partition_leader_epoch,
            compression=codec,
            log_append_time=batch.max_timestamp if batch.is_log_append_time else None,
            producer_id=batch.producer_id,
            producer_epoch=batch.producer_epoch,
            base_sequence=batch.base_sequence,
            is_transactional=batch.is_transactional,
            is_control=batch.is_control,
            delete_horizon_ms=batch.delete_horizon_ms,
            last_offset=batch.last_offset,
            max_timestamp=batch.max_timestamp,
        )
    )


def compare_built_batches(path: Path) -> BuiltBatches:
    """Rebuild the format 2 vectors of a file with every codec and have Apache read them."""
    result = BuiltBatches()
    cases: list[tuple[Vector, Compression, str]] = []
    for vector in islice(_modern(path), VECTORS_MAX):
        batches = parse_batches(bytes.fromhex(vector.hex))
        for codec in Compression:
            data = b"".join(rebuilt(batch, codec) for batch in batches)
            cases.append((vector, codec, data.hex()))
    questions = (
        json.dumps({"kind": RECORDS_KIND, "name": vector.name, "version": 2, "hex": data})
        for vector, _, data in cases
    )
    for (vector, codec, _), answer in zip(cases, ask_apache(questions), strict=True):
        problem = _problem(vector, codec, answer)
        result.tally.count(problem is None)
        if problem is not None:
            result.problems.append(f"our {codec.name.lower()} batch of {vector.label}: {problem}")
    return result


def _modern(path: Path) -> Iterator[Vector]:
    for vector in read_vectors(path):
        if vector.kind == RECORDS_KIND and vector.version == 2 and not vector.malformed:
            yield vector


def _problem(vector: Vector, codec: Compression, answer: dict[str, Any]) -> str | None:
    if "error" in answer:
        return f"Apache refuses it: {answer['error']}"
    named = {batch["compression"] for batch in answer["json"]["batches"] if batch["count"]}
    if not named <= {codec.name.lower()}:
        return f"Apache calls the codec {named}"
    ours, apache = _comparable(answer["json"]), _comparable(vector.json)
    return None if same_json(ours, apache) else first_difference(ours, apache)


def _comparable(content: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {key: value for key, value in batch.items() if key not in _differing(batch)}
        for batch in content["batches"]
    ]


def _differing(batch: dict[str, Any]) -> frozenset[str]:
    """What a rebuilt batch may differ in; log append time hides what the base timestamp was."""
    hidden = batch["timestampType"] == "LogAppendTime" and batch["deleteHorizonMs"] is None
    return DIFFERING_KEYS | {"baseTimestamp"} if hidden else DIFFERING_KEYS
