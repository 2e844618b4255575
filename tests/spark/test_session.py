"""A verb starts a session for itself, and leaves alone the one that its process has."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from kraft_wire.spark import running

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.java


def count_in_a_verb() -> int:
    with running("local[2]") as session:
        return session.range(3).count()


def test_session_stays_that_is_not_active_in_the_thread_of_a_verb(spark: SparkSession) -> None:
    """Spark's active session belongs to a thread; stopping one ends those of all threads."""
    with ThreadPoolExecutor(1) as other:
        assert other.submit(count_in_a_verb).result() == 3
    assert spark.range(4).count() == 4
