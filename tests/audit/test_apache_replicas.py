"""What three Apache Kafka nodes leave in their directories: clean, and damage in it is found.

The cluster writes five codecs, transactions, a compacted and a trimmed topic, and loses a node to
`kill -9` in between; see `tests.spark.apache_dirs`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from kraft_wire.audit.collector import plan_audit, read_ledger_file, run_audit
from tests.apache.tools import run_tool
from tests.audit.campaign import Campaign, Verdict
from tests.spark.apache_dirs import write_everything

pytestmark = [pytest.mark.java, pytest.mark.slow]

RECORDS = 12_000
PARTITIONS = 1_500
SEEDS = 36


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three directories below one, and the ledger."""
    directory = tmp_path_factory.mktemp("apache")
    write_everything(directory, RECORDS, partitions=PARTITIONS, snapshot_bytes=30_000)
    return directory


def directories(output: Path) -> list[Path]:
    return [output / f"node-{number}" / "data" for number in (1, 2, 3)]


def test_directories_of_apache_are_clean_and_hold_what_was_acknowledged(output: Path) -> None:
    ledger = read_ledger_file(output / "acks.jsonl")
    paths = [str(path) for path in directories(output)]
    result = run_audit(plan_audit(paths, ledger=ledger), processes=1)
    assert [each for each in result.findings if each.severity == "error"] == []
    assert len(result.nodes) == 3
    assert sum(len(each.offsets) for each in ledger.values()) > RECORDS / 2


def test_metadata_log_says_which_topics_are_compacted_and_who_leads(output: Path) -> None:
    plan = plan_audit([str(path) for path in directories(output)])
    tasks = {(task.source.topic, task.source.partition): task for task in plan.tasks}
    assert {topic for (topic, _), task in tasks.items() if task.is_compacted} == {
        "compacted",
        "__transaction_state",
    }
    described = run_tool(
        "kafka-dump-log",
        [
            "--cluster-metadata-decoder",
            "--files",
            str(directories(output)[0] / "__cluster_metadata-0" / f"{0:020d}.log"),
        ],
    ).stdout
    assert described.count('"type":"PARTITION_RECORD"') >= PARTITIONS
    for key, task in tasks.items():
        if key[0] != "__cluster_metadata":
            assert task.facts.isr is not None
            assert task.facts.isr <= {"1", "2", "3"}


def test_damage_in_them_is_found_and_named_once(output: Path) -> None:
    campaign = Campaign(directories(output))
    for seed in range(SEEDS):
        judged = campaign.run(seed)
        assert judged.verdict is Verdict.NAMED, judged
