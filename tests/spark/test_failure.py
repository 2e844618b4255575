"""What stops a query says what, where and what to do, in a line that is easy to find."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from kraft_wire.spark import PipelineError, translated
from kraft_wire.spark.failure import line_of
from tests.spark.log_directories import WrittenLogs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.java
@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"veiw": "records"}, "option 'veiw' does not exist in kraftlog; did you mean view?"),
        ({"topics": "monney"}, "option topics: monney is not in "),
    ],
)
def test_what_a_user_got_wrong_is_in_the_first_line_of_sparks_error(
    spark: SparkSession, written: WrittenLogs, options: dict[str, str], line: str
) -> None:
    with pytest.raises(PySparkException) as failed:
        spark.read.format("kraftlog").options(**options).load(str(written.path)).count()
    assert line in str(failed.value).splitlines()[0]


@pytest.fixture
def damaged(written: WrittenLogs, tmp_path: Path) -> tuple[str, Path]:
    """A copy of the directory with a flipped bit in a first batch, and the file that has it."""
    copy = Path(shutil.copytree(written.path, tmp_path / "damaged"))
    file = min((copy / "plain-0").glob("*.log"))
    data = bytearray(file.read_bytes())
    data[70] ^= 1
    file.write_bytes(data)
    return str(copy), file


@pytest.mark.java
def test_damage_that_a_worker_met_is_said_right_behind_sparks_own_words(
    spark: SparkSession, damaged: tuple[str, Path]
) -> None:
    directory, file = damaged
    with pytest.raises(PySparkException) as failed:
        spark.read.format("kraftlog").load(directory).collect()
    head, line = str(failed.value).splitlines()[:2]
    assert head == "An exception was thrown from the Python worker:"
    assert f"PipelineError: {file} position 0 (node 1): " in line
    assert "set onCorrupt to skip or report" in line


@pytest.mark.java
def test_trace_of_anything_else_stays(spark: SparkSession, damaged: tuple[str, Path]) -> None:
    with pytest.raises(PySparkException):
        spark.read.format("kraftlog").load(damaged[0]).collect()

    def broken(batches: object) -> object:
        raise ValueError("of a user's own")

    with pytest.raises(PySparkException, match="Traceback"):
        spark.range(4).mapInArrow(broken, "id long").collect()


@pytest.mark.java
def test_damage_that_a_worker_met_is_dug_out_of_the_trace(
    spark: SparkSession, damaged: tuple[str, Path]
) -> None:
    directory, file = damaged
    with pytest.raises(PipelineError) as failed, translated():
        spark.read.format("kraftlog").load(directory).collect()
    assert str(failed.value).startswith(f"{file} position 0 (node 1): ")
    assert "set onCorrupt to skip or report" in str(failed.value)


def test_other_failures_become_one_line_too() -> None:
    with pytest.raises(PipelineError, match=r"^/full: No space left on device$"), translated():
        raise OSError(28, "No space left on device", "/full")
    trace = "Job aborted due to stage failure\n\tat org.apache.Foo\nTraceback (most recent"
    with pytest.raises(PipelineError, match=r"^Job aborted due to stage failure$"), translated():
        raise PySparkException(trace)


def test_trace_without_a_line_of_its_own_is_its_first_line() -> None:
    assert line_of(" \n\tat org.apache.Foo\n\tat org.apache.Bar") == "at org.apache.Foo"
    assert line_of(" \n") == "Spark failed without a message"


def test_gateways_own_line_is_not_what_went_wrong() -> None:
    def fail() -> None:
        raise Py4JError(
            "An error occurred while calling o63.start.\n: a.Fault: no such thing\n\tat x"
        )

    with pytest.raises(PipelineError, match=r"^a\.Fault: no such thing$"), translated():
        fail()
