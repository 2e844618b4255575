"""A part of a benchmark that fails takes no figure of another with it, and leaves its logs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import cast

import pytest
from confluent_kafka import KafkaException

from benchmarks.cluster_sides import ClusterSide
from benchmarks.cluster_turns import ClusterTurns, Figures
from benchmarks.clusters_in_tests import APART, HERE, PEER, SECTION, table, written
from benchmarks.parts import Parts, Row, row, run_parts


def figure(name: str) -> Row:
    """A row of some figure."""
    return row(name, "s", {"ours": [1.0], "apache": [2.0]})


def test_figures_of_a_failed_run_are_one_json_object_and_the_logs_stay(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def measure(home: Path, parts: Parts, rows: list[Row]) -> None:
        (home / "ours").mkdir()
        (home / "ours" / "node-1.log").write_text("told")
        with parts.part("first", 1):
            rows.append(figure("one"))
        for problem in (KafkaException("no"), ZeroDivisionError(), KeyError("no")):
            with parts.part(type(problem).__name__, 1):
                raise problem
        with parts.part("last", 1):
            rows.append(figure("two"))

    assert run_parts("test", measure, as_json=True) == 1
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert [each["name"] for each in found["rows"]] == ["one", "two"]
    assert found["failed"] == ["KafkaException", "ZeroDivisionError", "KeyError"]
    assert "one: 1.0 and 2.0 s, 2.00x" in err, "told at once"
    (kept,) = (Path(each.removeprefix("logs: ")) for each in found["notes"])
    assert (kept / "ours" / "node-1.log").read_text() == "told"
    shutil.rmtree(kept)


def test_run_that_is_interrupted_tells_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    def measure(home: Path, parts: Parts, rows: list[Row]) -> None:
        with parts.part("first", 1):
            rows.append(figure("one"))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_parts("test", measure, as_json=True)
    found = json.loads(capsys.readouterr().out)
    assert [each["name"] for each in found["rows"]] == ["one"]
    assert found["failed"] == ["what was left"]
    (kept,) = (Path(each.removeprefix("logs: ")) for each in found["notes"])
    shutil.rmtree(kept)


class OneSide:
    """A side of which every third question fails."""

    def __init__(self) -> None:
        self.asked = 0
        self.made_whole = 0

    def make_whole(self) -> None:
        """Count."""
        self.made_whole += 1

    def figures(self) -> Figures:
        """How often it was asked."""
        self.asked += 1
        assert self.asked < 3, "nobody answers"
        return {"asked": float(self.asked)}


def test_rounds_before_a_failed_one_count_and_the_clusters_are_made_whole(
    capsys: pytest.CaptureFixture[str],
) -> None:
    both = {"ours": OneSide(), "apache": OneSide()}

    def measure(_: Path, parts: Parts, rows: list[Row]) -> None:
        turns = ClusterTurns(cast(dict[str, ClusterSide], both), parts)
        with parts.part("rounds", 10):
            found = turns.measure(5, lambda side: cast(OneSide, side).figures())
            rows.append(row("asked", "s", found["asked"]))

    assert run_parts("test", measure, as_json=True) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["rows"][0]["ours"], found["rows"][0]["apache"]) == (1.5, 1.5)
    assert [each.made_whole for each in both.values()] == [1, 1]
    assert found["failed"] == ["a round, which does not count"]
    (kept,) = (Path(each.removeprefix("logs: ")) for each in found["notes"])
    shutil.rmtree(kept)


def test_table_of_clusters_in_tests_has_medians_and_ratios_to_apache() -> None:
    figures = {
        "start": {HERE: [0.1, 0.2, 0.9], APART: [2.0], PEER: [4.0]},
        "memory": {HERE: [40.0], PEER: [400.0]},
    }
    lines = table(figures).splitlines()
    assert lines[2] == "| start | 200 ms (20x) | 2.00 s (2.0x) | 4.00 s |"
    assert lines[3] == "| memory | 40 MiB (10x) |  | 400 MiB |"
    page = f"before\n\n{SECTION}\ntext\n\n| | old |\n|---|---|\n| x | y |\n\nafter\n"
    assert written(page, "| | new |\n") == f"before\n\n{SECTION}\ntext\n\n| | new |\n\nafter\n"
