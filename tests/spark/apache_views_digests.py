"""Frames as counts and sums of digests by group: equal for equal rows, whatever their order.

A row becomes bytes that say every column by name, null apart from empty, and those an MD5; a group
is the number of its rows and the sums of the four words of their digests. Spark's own functions do
it, in the workers; `judge.CanonicalRow` makes the same bytes in Java of what Apache's classes read.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

WORDS = 4
HEX_OF_WORD = 8
JSON_COLUMNS = ("json", "voters")
_TEXT = "UTF-8"


class Digest(NamedTuple):
    """The rows of one group."""

    rows: int
    sums: tuple[int, ...]


Digests = Mapping[str, Digest]
"""By group: a partition as `topic-number`, or a topic."""


def digests(frame: DataFrame, group: Sequence[str], alone: str = "") -> Digests:
    """Read a frame and return its groups, by the columns that name one, or all as `alone`."""
    words = [
        sql.sum(sql.conv(sql.substring("digest", at, HEX_OF_WORD), 16, 10).cast("bigint"))
        for at in range(1, WORDS * HEX_OF_WORD, HEX_OF_WORD)
    ]
    digested = frame.select(_group(group, alone).alias("group"), digest(frame))
    found = digested.groupBy("group").agg(sql.count(sql.lit(1)), *words).collect()
    return {row[0]: Digest(row[1], tuple(row[2:])) for row in found}


def rows_of(
    frame: DataFrame, group: Sequence[str], place: str, name: str, alone: str = ""
) -> DataFrame:
    """Place and digest of each row of the group `name`; `place` is a column of numbers."""
    chosen = frame.where(_group(group, alone) == name)
    return chosen.select(sql.col(place).cast("bigint").alias("place"), digest(frame))


def read_rows(spark: SparkSession, path: Path) -> DataFrame:
    """The same as `judge.ViewDigests` printed it."""
    return spark.read.schema("place bigint, digest string").csv(str(path), sep=" ")


def first_difference(rows: DataFrame, others: DataFrame) -> int:
    """Return the lowest place of a row that only one side has, or has more often."""
    differing = rows.exceptAll(others).unionAll(others.exceptAll(rows))
    (row,) = differing.agg(sql.min("place")).collect()
    return int(row[0])


def _group(columns: Sequence[str], alone: str) -> Column:
    return sql.concat_ws("-", *columns) if columns else sql.lit(alone)


def digest(frame: DataFrame) -> Column:
    """The MD5 of the bytes that say a row, in column `digest`."""
    fields = []
    for field in frame.schema.fields:
        fields += [sql.lit(f"{field.name}=".encode()), _said(frame, field)]
    return sql.md5(sql.concat(*fields)).alias("digest")


def _said(frame: DataFrame, field: StructField) -> Column:
    value = frame[field.name]
    if field.name in JSON_COLUMNS:
        return _behind_length(sql.udf(json_bytes, BinaryType(), useArrow=False)(value))
    return _bytes(value, field.dataType)


def _bytes(value: Column, kind: DataType) -> Column:
    """A value as bytes that say where it ends, never null."""
    match kind:
        case BinaryType():
            return _behind_length(value)
        case StringType():
            return _behind_length(sql.encode(value, _TEXT))
        case IntegerType() | LongType() | BooleanType():
            return _text("", value.cast("string"), ";")
        case TimestampType():
            return _text("", sql.unix_micros(value).cast("string"), ";")
        case ArrayType():
            head = _text("[", sql.when(value.isNotNull(), sql.size(value)).cast("string"), "]")
            return sql.concat(head, _or_nothing(sql.aggregate(value, sql.lit(b""), _then(kind))))
        case StructType():
            return sql.concat(*(_bytes(value[each.name], each.dataType) for each in kind.fields))
    raise TypeError(f"no view has a column of type {kind.simpleString()}")


def _then(kind: ArrayType) -> Callable[[Column, Column], Column]:
    return lambda before, element: sql.concat(before, _bytes(element, kind.elementType))


def _behind_length(value: Column) -> Column:
    return sql.concat(_text("", sql.length(value).cast("string"), ":"), _or_nothing(value))


def _text(before: str, value: Column, behind: str) -> Column:
    told = sql.coalesce(value, sql.lit("-"))
    return sql.encode(sql.concat(sql.lit(before), told, sql.lit(behind)), _TEXT)


def _or_nothing(value: Column) -> Column:
    return sql.coalesce(value, sql.lit(b""))


def json_bytes(text: str | None) -> bytes | None:
    """Return what JSON says as bytes, however it is spelt: 1e7 or 10000000.0, `"é"` or escaped."""
    return None if text is None else _say(json.loads(text))


def _say(value: object) -> bytes:
    match value:
        case None:
            return b"null"
        case bool():
            return b"true" if value else b"false"
        case int():
            return b"i%d;" % value
        case float():
            return b"d" + struct.pack(">d", value).hex().encode()
        case str():
            return _say_text(value)
        case list():
            return b"[" + b"".join(map(_say, value)) + b"]"
        case dict():
            return (
                b"{" + b"".join(_say_text(key) + _say(each) for key, each in value.items()) + b"}"
            )
    raise TypeError(f"JSON has no {type(value).__name__}")


def _say_text(value: str) -> bytes:
    data = value.encode()
    return b"%d:%b" % (len(data), data)
