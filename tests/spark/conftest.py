"""One Spark session for all tests of the pipeline: starting one takes five to ten seconds."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.apache.jars import JarsMissing
from tests.spark.connector_jars import connector_jars
from tests.spark.log_directories import WrittenLogs, write_many_kinds

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONF = {
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.python.filterPushdown.enabled": "true",
}


def jars_at_hand() -> list[str]:
    """Spark's own Kafka connector; without it what compares with it says why."""
    try:
        return connector_jars()
    except JarsMissing:
        return []


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The session; mark the test ``java``."""
    from kraft_wire.spark import session

    work = tmp_path_factory.mktemp("spark")
    conf = CONF | {"spark.local.dir": str(work), "spark.sql.warehouse.dir": str(work / "tables")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        started = session("local[2]", conf=conf, jars=jars_at_hand(), app_name="tests")
        yield started
        started.stop()


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> WrittenLogs:
    """One node's log directory, stopped cleanly."""
    logs = write_many_kinds(tmp_path_factory.mktemp("logs") / "node-1")
    logs.close()
    return logs
