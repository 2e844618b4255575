"""What stops a query says what, where and what to do, in a line that is easy to find."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException

from kraft_wire.spark import PipelineError, translated
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


@pytest.mark.java
def test_damage_that_a_worker_met_is_dug_out_of_the_trace(
    spark: SparkSession, written: WrittenLogs, tmp_path: Path
) -> None:
    damaged = Path(shutil.copytree(written.path, tmp_path / "damaged"))
    file = min((damaged / "plain-0").glob("*.log"))
    data = bytearray(file.read_bytes())
    data[70] ^= 1
    file.write_bytes(data)
    with pytest.raises(PipelineError) as failed, translated():
        spark.read.format("kraftlog").load(str(damaged)).collect()
    assert str(failed.value).startswith(f"{file} position 0 (node 1): ")
    assert "set onCorrupt to skip or report" in str(failed.value)


def test_other_failures_become_one_line_too() -> None:
    with pytest.raises(PipelineError, match=r"^/full: No space left on device$"), translated():
        raise OSError(28, "No space left on device", "/full")
    trace = "Job aborted due to stage failure\n\tat org.apache.Foo\nTraceback (most recent"
    with pytest.raises(PipelineError, match=r"^Job aborted due to stage failure$"), translated():
        raise PySparkException(trace)
