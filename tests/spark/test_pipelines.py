"""The example specs for Spark Declarative Pipelines are ones that Spark takes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tidiness import CHECKOUT

SPECS = sorted((CHECKOUT / "examples" / "pipelines").glob("*/spark-pipeline.yml"))
SECONDS_MAX = 300


@pytest.mark.java
@pytest.mark.slow
@pytest.mark.parametrize("spec", SPECS, ids=lambda path: path.parent.name)
def test_spec_is_analysed_without_an_error(spec: Path, tmp_path: Path) -> None:
    command = [Path(sys.executable).with_name("spark-pipelines"), "dry-run", "--spec", spec]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(
        [*map(str, command), "--conf", f"spark.sql.warehouse.dir={tmp_path}"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Run is COMPLETED" in done.stdout + done.stderr


def test_there_are_two_specs() -> None:
    assert [spec.parent.name for spec in SPECS] == ["replicas", "topic"]
