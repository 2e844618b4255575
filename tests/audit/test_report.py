"""What an audit leaves: Parquet that tells what JSON tells, and a page that a browser draws."""

from __future__ import annotations

import errno
import json
import os
import re
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as parquet
import pytest

from kraft_wire.audit.collector import AuditResult, plan_audit, run_audit
from kraft_wire.audit.report import page_of, write_report
from tests.audit.campaign import Campaign
from tests.audit.clean_set import write_clean_set
from tests.audit.faults import damaged
from tests.browser import reported

PROBE = """
<script>
const report = {};
setTimeout(() => {
  report.verdict = $("verdict").textContent;
  report.facts = $("facts").textContent;
  report.rows = document.querySelectorAll("#rows tr").length;
  report.legend = document.querySelectorAll("#legend span").length;
  const colours = () => {
    const pixels = pen.getImageData(0, 0, chart.width, chart.height).data;
    return new Set(new Uint32Array(pixels.buffer));
  };
  const of = name => {
    const [r, g, b] = colour(name).slice(1).match(/../g).map(x => parseInt(x, 16));
    return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
  };
  const seen = colours();
  report.damage = seen.has(of("damage"));
  report.gap = seen.has(of("gap"));
  report.differs = seen.has(of("differs"));
  report.log = seen.has(of("log"));
  report.axis = [1, 2].filter(at => step(250 * at, 7) === 50 * at).length;
  report.isWide = document.documentElement.scrollWidth > innerWidth;
  const box = chart.getBoundingClientRect();
  const at = hit => ({ clientX: box.left + (hit.left + hit.right) / 2,
    clientY: box.top + (hit.top + hit.bottom) / 2, bubbles: true });
  const mark = hits.find(h => h.finding && h.finding.check === "crc");
  chart.dispatchEvent(new MouseEvent("mousemove", at(mark)));
  report.tip = $("tip").textContent;
  const lane = hits.find(h => h.lane && h.right > h.left + 50);
  const middle = { ...at(lane), clientX: box.left + lane.left + 30 };
  chart.dispatchEvent(new MouseEvent("mousemove", middle));
  report.laneTip = $("tip").textContent;
  chart.dispatchEvent(new MouseEvent("click", at(mark)));
  report.chosen = document.querySelector("tr.chosen")?.textContent;
  $("search").value = "gap"; $("search").dispatchEvent(new Event("input"));
  report.filtered = document.querySelectorAll("#rows tr").length;
  report.lanes = lanes.length;
  document.body.innerHTML = "<pre id=report></pre>";
  $("report").textContent = JSON.stringify(report);
}, 300);
</script>
"""


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> AuditResult:
    """An audit that found a flipped bit, a hole and other content."""
    nodes = write_clean_set(tmp_path_factory.mktemp("audit") / "clean")
    campaign = Campaign(nodes)
    wanted = {"bit flip": "crc", "missing batches": "gap", "divergent suffix": "log-matching"}
    places: set[str] = set()
    for seed in range(400):
        with campaign.damaged(seed) as damage:
            found = run_audit(campaign.plan_for(damage), processes=1).findings
        place = f"{damage.topic}-{damage.partition}"
        is_data = damage.topic in ("orders", "payments") and place not in places
        if is_data and found and found[0].check == wanted.get(damage.kind):
            del wanted[damage.kind]
            places.add(place)
            damaged(campaign.replicas, seed)
        if not wanted:
            break
    assert not wanted
    return run_audit(plan_audit([str(node) for node in nodes]), processes=1)


@pytest.fixture(scope="module")
def page(result: AuditResult) -> str:
    about = {"cluster": result.cluster_id, "time_ms": 1_769_860_800_000}
    return page_of(result.findings, result.outcome.extents, result.summary(), about)


def test_parquet_holds_what_json_tells(result: AuditResult, tmp_path: Path) -> None:
    write_report(result, tmp_path / "out")
    rows = parquet.read_table(tmp_path / "out" / "findings.parquet").to_pylist()
    assert rows == [each.to_json() for each in result.findings]
    assert len(rows) == 3
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "findings.parquet",
        "report.html",
    ]


def test_report_that_cannot_be_written_leaves_nothing_of_itself(
    result: AuditResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = tmp_path / "old"
    write_report(result, old)
    before = {path.name: path.stat().st_ino for path in old.iterdir()}

    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_text", fail)  # the page, when the table is written already
    for directory in (old, tmp_path / "new"):
        with pytest.raises(OSError, match="No space left"):
            write_report(result, directory)
    assert {path.name: path.stat().st_ino for path in old.iterdir()} == before
    assert [path.name for path in tmp_path.iterdir()] == ["old"]


def test_text_that_looks_like_markup_does_not_end_the_data(result: AuditResult) -> None:
    finding = replace(result.findings[0], detail="<!--<script></script>")
    page = page_of([finding], result.outcome.extents, result.summary())
    assert page.count("<!--") == page_of([], [], result.summary()).count("<!--")
    found = re.search(r'id="data">(.*?)</script>', page, re.S)
    assert found is not None
    assert json.loads(found.group(1))["findings"] == [finding.to_json()]


def test_page_loads_nothing_from_anywhere(page: str) -> None:
    assert not re.search(r"""(?:src|href)\s*=|@import|url\(|fetch\(|XMLHttpRequest""", page)


def test_page_holds_findings_and_replicas_as_json(page: str, result: AuditResult) -> None:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    assert found is not None
    content = json.loads(found.group(1))
    assert content["summary"] == result.summary()
    assert content["findings"] == [each.to_json() for each in result.findings]
    assert len(content["lanes"]) == 15
    assert content["hidden"] == {"lanes": 0, "findings": 0}


@pytest.mark.chromium
def test_browser_draws_tells_and_filters(page: str, tmp_path: Path) -> None:
    report = reported(page, PROBE, tmp_path)
    assert report["verdict"] == "3 errors"
    assert "3 nodes, 5 partitions" in report["facts"]
    assert report["rows"] == 3
    assert report["legend"] == 15
    assert "cluster " in report["facts"]
    assert "2026-01-31 12:00 UTC" in report["facts"]
    assert report["axis"] == 2
    assert report["isWide"] is False
    assert all(report[colour] for colour in ("damage", "gap", "differs", "log"))
    assert report["tip"].startswith("error: crc on node")
    assert "log start 0" in report["laneTip"]
    assert "crc" in report["chosen"]
    assert report["filtered"] == 1
    assert report["lanes"] == 3


NAMES_PROBE = """
<script>
setTimeout(() => {
  document.body.style.width = "1280px";
  const lines = {};
  for (const row of document.querySelectorAll("#rows tr")) {
    for (const cell of [row.children[3], row.children[5]]) {
      const range = document.createRange();
      range.selectNodeContents(cell);
      lines[cell.textContent] = new Set([...range.getClientRects()].map(each => each.top)).size;
    }
  }
  const wide = document.querySelector("table").scrollWidth;
  document.body.innerHTML = "<pre id=report></pre>";
  document.getElementById("report").textContent = JSON.stringify({ lines, wide });
}, 100);
</script>
"""


@pytest.mark.chromium
@pytest.mark.parametrize(("topic", "is_whole"), [("__cluster_metadata", True), ("t" * 249, False)])
def test_partition_of_usual_length_is_one_line_at_1280_pixels(
    result: AuditResult, tmp_path: Path, topic: str, is_whole: bool
) -> None:
    """A topic of Kafka's longest name is broken, so that the page is not wider than its window."""
    first = replace(result.findings[0], detail="leader epochs differ; " * 5)
    file = "00000000000000000200.log"
    first = replace(first, partition=0, file=file, position=-1)
    findings = [replace(first, topic=each) for each in (topic, "orders")]
    page = page_of(findings, result.outcome.extents, result.summary())
    found = reported(page, NAMES_PROBE, tmp_path)
    assert (found["lines"][f"{topic}-0"] == 1) is is_whole
    assert found["lines"]["orders-0"] == 1
    assert found["lines"][file] == 1 or not is_whole
    assert found["wide"] <= 1280
