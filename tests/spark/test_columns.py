"""Columns and their types are what queries name: those of all views and tables are written down."""

from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from kraft_wire.spark import parse_log_options
from kraft_wire.spark.kraftlog.options import View
from kraft_wire.spark.kraftlog.schemas import ddl_of, view_schema
from kraft_wire.spark.metadata.metadata_tables import TABLE_SCHEMAS

WRITTEN = Path(__file__).with_name("columns.txt")
"""A line for each view and table. `python -m tests.spark.test_columns` writes it anew."""


def lines() -> Iterator[str]:
    wide = {"includeHeaders": "true", "includeBatchFields": "true"}
    for view in get_args(View):
        given = wide if view == "records" else {}
        options = parse_log_options({"path": "/", "view": view, **given})
        yield f"kraftlog {view}: {ddl_of(view_schema(options))}"
    for name, schema in TABLE_SCHEMAS.items():
        yield f"table {name}: {', '.join(f'{each.name} {each.type}' for each in schema)}"


def test_columns_are_those_that_are_written_down() -> None:
    assert list(lines()) == WRITTEN.read_text().splitlines()


if __name__ == "__main__":
    WRITTEN.write_text("".join(f"{line}\n" for line in lines()))
