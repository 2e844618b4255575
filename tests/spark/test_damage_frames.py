"""Damage of every kind through Spark: named as by the plain audit, and read around as without it.

Two turns of the faults here; `python -m tests.audit --spark` runs as many seeds as wanted.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kraft_wire.spark.verbs.audit import run_prepared
from tests.audit.campaign import Campaign, Verdict
from tests.audit.clean_set import write_clean_set
from tests.audit.faults import FAULTS
from tests.spark import damage_frames
from tests.spark.damage_frames import run_by_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kraft_wire.audit.collector import AuditResult

pytestmark = pytest.mark.java

SEEDS = range(2 * len(FAULTS))


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    """Three clean replicas."""
    return Campaign(write_clean_set(tmp_path_factory.mktemp("replicas") / "clean"))


def test_each_fault_is_named_once_and_what_is_whole_is_read(
    spark: SparkSession, campaign: Campaign, tmp_path: Path
) -> None:
    judged = list(run_by_spark(spark, campaign, SEEDS, tmp_path))
    assert [each.seed for each in judged] == list(SEEDS)
    assert [each for each in judged if each.verdict is not Verdict.NAMED] == []
    assert len({each.damage.kind for each in judged}) == len(set(FAULTS))


def test_audit_and_frames_that_differ_are_seen(
    spark: SparkSession, campaign: Campaign, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The judge must be able to say no."""

    def counting_otherwise(*given: Any) -> AuditResult:
        result = run_prepared(*given)
        result.outcome.batches += 1
        return result

    with monkeypatch.context() as patched:
        patched.setattr(damage_frames, "run_prepared", counting_otherwise)
        (judged,) = run_by_spark(spark, campaign, [0], tmp_path)
    assert judged.verdict is Verdict.UNLIKE
    monkeypatch.setattr("tests.audit.whole.rows_of", lambda _: [])
    (judged,) = run_by_spark(spark, campaign, [0], tmp_path)
    assert judged.verdict is Verdict.MISREAD
    assert "too many" in judged.reason
