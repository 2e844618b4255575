"""`make apache-views` on little, and that it fails: a row that one side has otherwise is named."""

from __future__ import annotations

import io
import json
import shutil
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.spark.apache_views import main
from tests.spark.apache_views_changes import CHANGES
from tests.spark.apache_views_compare import compare_view, views_of
from tests.spark.apache_views_digests import Digests, digest, digests, json_bytes
from tests.spark.apache_views_oracle import apache_views

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.java, pytest.mark.slow]

RECORDS, PARTITIONS = 8_000, 120


@pytest.fixture(scope="module")
def run(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """What three nodes wrote, and what the verb said of it."""
    output = tmp_path_factory.mktemp("views") / "nodes"
    words = ["--records", str(RECORDS), "--partitions", str(PARTITIONS)]
    printed = io.StringIO()
    with redirect_stdout(printed):
        code = main([*words, "--output", str(output), "--json"])
    told = json.loads(printed.getvalue())
    assert (code, told["equal"]) == (0, True), told
    return output, told


@pytest.fixture(scope="module")
def apache(run: tuple[Path, Any]) -> tuple[Path, dict[str, Digests]]:
    """The directory of one of the nodes, and what Apache's classes read there."""
    directory = run[0] / "node-2" / "data"
    return directory, apache_views(directory)


def test_every_view_of_every_node_is_what_apache_reads(run: tuple[Path, Any]) -> None:
    rows = {(row["node"], row["view"]): row["rows"] for row in run[1]["rows"]}
    assert {node for node, _ in rows} == {"1", "2", "3", "leaders", "all"}
    for node in "123":
        views = {view: count for (where, view), count in rows.items() if where == node}
        assert min(views.values()) > 0
        assert len([view for view in views if view.startswith("partitions snapshot")]) >= 2
        physical, earliest = (
            [views[f"records {start} read_{level}"] for level in ("uncommitted", "committed")]
            for start in ("physical", "earliest")
        )
        assert RECORDS < earliest[0] < physical[0]
        assert earliest[1] < earliest[0]
        assert views["partitions replay"] > PARTITIONS
    assert rows["leaders", "records read_uncommitted, connector"] > RECORDS * 0.9


@pytest.mark.parametrize("name", CHANGES)
def test_what_only_one_side_has_is_named(
    spark: SparkSession, apache: tuple[Path, dict[str, Digests]], tmp_path: Path, name: str
) -> None:
    view_name, change = CHANGES[name]
    directory, told = apache
    changed = shutil.copytree(directory, tmp_path / "data")
    first = change(changed)
    view = next(each for each in views_of(told) if each.name.startswith(view_name))
    found = compare_view(spark, "2", view, changed, told[view.name], directory)
    assert not found.is_equal
    assert found.difference == first


def test_equal_rows_have_equal_digests_in_any_order_and_no_others(spark: SparkSession) -> None:
    schema = "topic string, key binary, headers array<struct<key string, value binary>>"
    rows: list[tuple[Any, ...]] = [
        ("t", b"1", [("a", b""), ("b", None)]),
        ("t", b"1", [("a", b""), ("b", b"")]),
        ("t", b"1", [("b", None), ("a", b"")]),
        ("t", b"1", [("a", b"")]),
        ("t", b"1", []),
        ("t", b"1", None),
        ("t", b"", None),
        ("t", None, None),
        ("t", b"1:", [("a", b""), ("b", None)]),
        (None, b"1", None),
    ]
    frame = spark.createDataFrame(rows, schema)
    assert frame.select(digest(frame)).distinct().count() == len(rows)
    twice = spark.createDataFrame([*rows[::-1], rows[0], rows[3]], schema)
    known, other = (digests(each, ["topic"]) for each in (frame, twice))
    assert other["t"].rows == known["t"].rows + 2
    assert all(one != two for one, two in zip(other["t"].sums, known["t"].sums, strict=True))
    assert digests(spark.createDataFrame(rows[::-1], schema), ["topic"]) == known


def test_json_counts_by_what_it_says() -> None:
    assert json_bytes('{"a": 1e7, "b": "\\u00e9"}') == json_bytes('{"a":10000000.0,"b":"é"}')
    assert json_bytes(None) is None
    said = [json_bytes(each) for each in ("null", "0", "0.0", '""', "[]", "{}", "false", '"0"')]
    assert len(set(said)) == len(said)
