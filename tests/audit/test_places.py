"""Where the map of a report shows a finding: at the damage, whatever the damaged batch claims."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kraft_wire.audit.collector.tasks import Extent
from kraft_wire.audit.finding import CHECKS, NO_OFFSET, NOWHERE, Finding
from kraft_wire.audit.places import places_of
from kraft_wire.audit.report import page_of
from tests.browser import reported

LANE = Extent("1", "orders", 1, 0, 0, 250, 7_600, (0, 50, 200), (3_800, 2_000, 1_800))
FIRST = "orders-1/00000000000000000000.log"


def finding(check: str, offset: int, file: str, position: int, severity: str = "error") -> Finding:
    return Finding(check, severity, "1", "orders", 1, offset, file, position, "")  # type: ignore[arg-type]  # a literal


@pytest.mark.parametrize(
    ("offset", "file", "position", "place"),
    [
        (42, FIRST, 3_228, 42),
        (131_114, FIRST, 3_228, 42),
        (131_114, FIRST, 0, 0),
        (240, FIRST, 0, 0),
        (NO_OFFSET, FIRST, 1_900, 25),
        (7, "orders-1/00000000000000000200.log", 900, 225),
        (131_114, "orders-1/00000000000000000050.index", 8, 50),
        (60, "orders-1/00000000000000000050.index", 8, 60),
        (207, "", NOWHERE, 207),
        (300, "", NOWHERE, 300),
        (1 << 40, "", NOWHERE, None),
        (NO_OFFSET, "", NOWHERE, None),
        (NO_OFFSET, "partition.metadata", NOWHERE, None),
        (1 << 40, "orders-1/00000000000000000999.log", 0, None),
    ],
)
def test_place_is_in_the_segment_that_is_named(
    offset: int, file: str, position: int, place: int | None
) -> None:
    expected = {} if place is None else {"1": place}
    assert places_of([finding("crc", offset, file, position)], [LANE]) == [expected]


def test_each_node_has_its_own_place_and_a_missing_replica_none() -> None:
    other = Extent("2", "orders", 1, 100, 100, 250, 1, (100,), (1,))
    both = Finding("divergence", "error", "1,2,3", "orders", 1, 207, "", NOWHERE, "")
    assert places_of([both], [LANE, other]) == [{"1": 207, "2": 207}]
    elsewhere = Finding("crc", "error", "1", "orders", 2, 207, "", NOWHERE, "")
    assert places_of([elsewhere], [LANE]) == [{}]


PROBE = """
<script>
setTimeout(() => {
  const report = {};
  const [low, high] = [scale(lanes[0])(0), scale(lanes[0])(250)];
  report.marks = hits.filter(h => h.finding)
    .map(h => [h.finding.check, (h.left + 4 - low) / (high - low)]);
  report.verdict = $("verdict").textContent;
  report.isBad = $("verdict").classList.contains("bad");
  report.labels = [...document.querySelectorAll("#legend span")].map(e => e.textContent);
  document.body.innerHTML = "<pre id=report></pre>";
  $("report").textContent = JSON.stringify(report);
}, 300);
</script>
"""


@pytest.mark.chromium
def test_browser_draws_every_check_where_the_damage_is(tmp_path: Path) -> None:
    findings = [finding(check, 131_114, FIRST, 3_228, "warn") for check in CHECKS]
    findings.append(finding("crc", 131_114, FIRST, 0, "info"))
    summary = {"nodes": 1, "partitions": 1, "batches": 1, "bytes": 1, "errors": 0}
    report = reported(page_of(findings, [LANE], summary), PROBE, tmp_path)
    assert [check for check, _ in report["marks"]] == [*CHECKS, "crc"]
    *places, at_the_start = [place for _, place in report["marks"]]
    assert places == pytest.approx([42 / 250] * len(CHECKS), abs=0.005)
    assert at_the_start == pytest.approx(0, abs=0.005)
    assert report["verdict"] == f"no error, {len(CHECKS)} warnings, 1 note"
    assert not report["isBad"]
    assert "transaction" in report["labels"]


def test_counts_are_of_all_findings_and_the_time_is_given() -> None:
    page = page_of([finding("gap", 1, "", NOWHERE)], [LANE], {}, {"cluster": "c", "time_ms": 5})
    content = json.loads(page.partition('id="data">')[2].partition("</script>")[0])
    assert content["counts"] == {"error": 1}
    assert content["about"] == {"cluster": "c", "time_ms": 5}
    assert content["places"] == [{"1": 1}]
