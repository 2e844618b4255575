"""The tables of groups as Arrow tables, from one replica of each partition.

One partition's groups are in memory at a time.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import pyarrow as pa

from kraft_wire.columnar import PartitionFiles
from kraft_wire.spark.metadata.group_rows import Row, group_rows, offset_rows
from kraft_wire.spark.metadata.group_schemas import GROUP_TABLES
from kraft_wire.spark.metadata.group_state import load_partition
from kraft_wire.spark.metadata.member_rows import TopicNames, member_rows
from kraft_wire.storage.files import FileSystem

__all__ = ["group_tables"]

_CHUNK_ROWS = 1 << 16


def group_tables(
    fs: FileSystem,
    logs: Sequence[PartitionFiles],
    until_ms: int | None,
    cluster_id: str,
    names: TopicNames,
) -> dict[str, pa.Table]:
    """Return `groups`, `members` and `group_offsets` as they were at the time `until_ms`."""
    parts: dict[str, list[pa.RecordBatch]] = {name: [] for name in GROUP_TABLES}
    for files in logs:
        loaded = load_partition(fs, files, until_ms)
        rows = {
            "groups": group_rows(loaded),
            "members": member_rows(loaded, names),
            "group_offsets": offset_rows(loaded),
        }
        for name, each in rows.items():
            parts[name] += _batches(each, cluster_id, GROUP_TABLES[name])
    return {
        name: pa.Table.from_batches(parts[name], schema=schema)
        for name, schema in GROUP_TABLES.items()
    }


def _batches(rows: Iterable[Row], cluster_id: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield rows in chunks: as Python objects they are many times larger than in Arrow."""
    left = iter(rows)
    while chunk := [row | {"clusterId": cluster_id} for row in islice(left, _CHUNK_ROWS)]:
        yield pa.RecordBatch.from_pylist(chunk, schema=schema)
