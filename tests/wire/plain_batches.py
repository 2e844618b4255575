"""Uncompressed batches that Apache's builder wrote, control batches among them.

`python -m tests.wire.plain_batches` has Apache write them again (needs Java). The builder is
measured against these byte for byte; compressed ones depend on the codec's library.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from kraft_wire.wire.records.memory_records import scan_batches
from kraft_wire.wire.records.record_batch import RecordBatch
from tests.apache import jars
from tests.golden.generate import generate
from tests.golden.vectors import RECORDS_KIND, read_vectors

VECTORS = Path(__file__).parents[1] / "golden" / "records" / "plain_batches.jsonl"
SEED = 595
PER_VERSION = 60
HEX_MAX = 3000
PER_KIND_MAX = 40


def plain_batches(path: Path = VECTORS) -> list[RecordBatch]:
    """The batches of a file of vectors that are of format 2 and not compressed."""
    batches = [
        batch
        for vector in read_vectors(path)
        if vector.kind == RECORDS_KIND and not vector.malformed
        for batch in scan_batches(bytes.fromhex(vector.hex))[0]
    ]
    return [each for each in batches if isinstance(each, RecordBatch) and not each.is_compressed]


def refresh() -> None:
    """Have Apache write vectors and keep a few of the short ones of each kind."""
    scratch = jars.CHECKOUT / "var" / "golden" / "plain_batches.jsonl"
    generate(scratch, seed=SEED, per_version=PER_VERSION, malformed=0, large=False)
    origin = f"judge.Golden over the published jars of Apache Kafka {jars.RELEASE}"
    kept: Counter[bool] = Counter()
    with VECTORS.open("w", encoding="utf-8") as file:
        print(json.dumps({"origin": origin, "seed": SEED}), file=file)
        for batch in plain_batches(scratch):
            if 2 * batch.size_bytes <= HEX_MAX and kept[batch.is_control] < PER_KIND_MAX:
                kept[batch.is_control] += 1
                vector = {"kind": RECORDS_KIND, "name": "MemoryRecords", "version": 2}
                print(json.dumps(vector | {"hex": batch.view.hex()}), file=file)


if __name__ == "__main__":
    refresh()
