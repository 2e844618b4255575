"""The columns of each view of `kraftlog`: one Arrow schema a view, and the same in Spark's DDL.

Spark compares a yielded batch exactly with its own Arrow schema, which is private; so the types
here are few, and one table has the name of each in Spark's DDL. A schema that a user gives chooses
columns and their order; types are not converted.
"""

from typing import Final

import pyarrow as pa
from pyspark.sql.types import StructType

from kraft_wire.columnar import BATCHES, SEGMENTS, records_schema
from kraft_wire.spark.failure import PipelineError
from kraft_wire.spark.kraftlog.options import LogOptions, View

__all__ = [
    "METADATA",
    "PARTITIONS",
    "SNAPSHOTS",
    "chosen_columns",
    "chosen_schema",
    "ddl_of",
    "view_schema",
]

_BROKERS: Final = pa.list_(pa.field("element", pa.int32()))

METADATA: Final = pa.schema(
    [
        ("offset", pa.int64()),
        ("epoch", pa.int32()),
        ("isControl", pa.bool_()),
        ("type", pa.string()),
        ("version", pa.int32()),
        ("json", pa.string()),
    ]
)
"""`type` is the record's name as Apache's tools print it (`PARTITION_RECORD`, `LEADER_CHANGE`)."""

SNAPSHOTS: Final = pa.schema(
    [
        ("endOffset", pa.int64()),
        ("epoch", pa.int32()),
        ("records", pa.int64()),
        ("headerVersion", pa.int32()),
        ("lastContainedLogTimestamp", pa.int64()),
        ("kraftVersion", pa.int32()),
        ("voters", pa.string()),
        ("footerVersion", pa.int32()),
        ("node", pa.string()),
        ("file", pa.string()),
        ("sizeInBytes", pa.int64()),
        ("status", pa.string()),
    ]
)
"""`records` are those between header and footer; `status` is `ok` or the error."""

PARTITIONS: Final = pa.schema(
    [
        ("topic", pa.string()),
        ("topicId", pa.string()),
        ("partition", pa.int32()),
        ("replicas", _BROKERS),
        ("isr", _BROKERS),
        ("leader", pa.int32()),
        ("leaderEpoch", pa.int32()),
        ("partitionEpoch", pa.int32()),
    ]
)

_FIXED: Final[dict[View, pa.Schema]] = {
    "batches": BATCHES,
    "segments": SEGMENTS,
    "metadata": METADATA,
    "snapshots": SNAPSHOTS,
    "partitions": PARTITIONS,
}
_NAMES: Final = {
    pa.string(): "string",
    pa.binary(): "binary",
    pa.bool_(): "boolean",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.timestamp("us", tz="UTC"): "timestamp",
}
_SYNONYMS: Final = {"long": "bigint", "integer": "int"}


def view_schema(options: LogOptions) -> pa.Schema:
    """Return all columns of the view that is asked for."""
    if options.view == "records":
        return records_schema(
            headers=options.include_headers, batch_fields=options.include_batch_fields
        )
    return _FIXED[options.view]


def ddl_of(schema: pa.Schema) -> str:
    """Return a schema in the words of Spark's CREATE TABLE."""
    return ", ".join(f"`{field.name}` {_type_name(field.type)}" for field in schema)


def _type_name(kind: pa.DataType) -> str:
    if pa.types.is_list(kind):
        return f"array<{_type_name(kind.value_type)}>"
    if pa.types.is_struct(kind):
        return f"struct<{','.join(f'{field.name}:{_type_name(field.type)}' for field in kind)}>"
    return _NAMES[kind]


def chosen_schema(options: LogOptions, asked: object) -> pa.Schema:
    """Return the columns that `asked` names, a StructType or a `pa.Schema`, in its order.

    Headers and fields of the batch may be asked for by a schema alone. PipelineError for a column
    that the view does not have, and for one of another type.
    """
    known = view_schema(options)
    if options.view == "records":
        known = records_schema(headers=True, batch_fields=True)
    return chosen_columns(f"view {options.view}", known, asked)


def chosen_columns(what: str, known: pa.Schema, asked: object) -> pa.Schema:
    """Return those columns of `known` that `asked` names; `what` has them, says the error."""
    chosen: list[pa.Field] = []
    for name, type_name, is_nullable in _asked_columns(asked):
        index = known.get_field_index(name)
        if index < 0:
            columns = ", ".join(known.names)
            raise PipelineError(f"{what} has no column {name!r}; it has {columns}")
        wanted = _type_name(known.field(index).type)
        if type_name != wanted:
            raise PipelineError(
                f"column {name} of {what} is {wanted}, not {type_name}: cast it after"
            )
        chosen.append(known.field(index).with_nullable(is_nullable))
    return pa.schema(chosen)


def _asked_columns(asked: object) -> list[tuple[str, str, bool]]:
    """Return name, type and whether null is allowed, of a StructType or a `pa.Schema`."""
    if isinstance(asked, pa.Schema):
        return [(field.name, _type_name(field.type), field.nullable) for field in asked]
    assert isinstance(asked, StructType), asked
    named = [(field, field.dataType.simpleString()) for field in asked.fields]
    return [(field.name, _SYNONYMS.get(name, name), field.nullable) for field, name in named]
