"""The page of a run, in a real browser: it draws, finds, and shows a decoded RPC on a click."""

import json
import re
from pathlib import Path

import pytest

from kraft_wire.sim.plans.plan import drawn_plan
from kraft_wire.sim.runs.page import page_of
from kraft_wire.sim.runs.run import Run
from tests.browser import reported

PROBE = """
<script>
const report = {};
document.fonts.ready.then(() => setTimeout(() => {
  report.elections = elections.length;
  report.lanes = places.length;
  report.facts = $("facts").textContent;
  report.clipped = ["facts", "verdict", "search", "all"].filter(id => {
    const e = $(id), box = e.getBoundingClientRect();
    const isCut = e.clientWidth && e.scrollWidth > e.clientWidth + 1;
    return isCut || box.right > innerWidth || box.left < 0;
  });
  const items = () => [...document.querySelectorAll("ol.events li")].map(e => e.textContent);
  report.told = items();
  $("every").click();
  report.everything = items();
  $("every").click();
  $("search").value = "VoteRequest"; $("search").dispatchEvent(new Event("input"));
  report.found = matches.length;
  $("next").click();
  report.first = document.querySelector("aside h2").textContent;
  setTimeout(() => {
    const whole = [from, until];
    [from, until] = [chosen.us - 10000, chosen.us + 40000];
    drawChart();  // now, and not with a frame that may come later
    report.labels = placed.length;
    const meet = (one, other) => one[0] < other[2] && one[2] > other[0] && one[1] < other[3]
      && one[3] > other[1];
    report.piled = placed.filter((one, at) =>
      placed.slice(0, at).some(other => meet(one.box, other.box))).length;
    [from, until] = whole;
    drawChart();
    const hit = hits.find(h => h.line && h.entry === chosen);
    const [a, b, c, d] = hit.line, box = chart.getBoundingClientRect();
    choose(null);
    const at = { clientX: box.left + (a + c) / 2, clientY: box.top + (b + d) / 2, pointerId: 1,
      bubbles: true };
    chart.setPointerCapture = () => {};
    for (const kind of ["pointerdown", "pointerup"])
      chart.dispatchEvent(new PointerEvent(kind, at));
    const span = until - from;
    chart.dispatchEvent(new WheelEvent("wheel", { deltaY: -200, clientX: box.left + 400,
      clientY: box.top + 100, cancelable: true }));
    report.zoomed = until - from < span;
    report.decoded = document.getElementById("decoded")?.textContent;
    const pixels = chart.getContext("2d").getImageData(0, 0, chart.width, chart.height).data;
    report.colors = new Set(new Uint32Array(pixels.buffer)).size;
    document.body.innerHTML = "<pre id=report></pre>";
    $("report").textContent = JSON.stringify(report);
  }, 300);
}, 300));
</script>
"""


@pytest.fixture(scope="module")
def page() -> str:
    run = Run(drawn_plan(14), keeps_trace=True)
    result = run.result()
    assert result.failure is None
    return page_of(run.world, result)


def test_page_loads_nothing_from_anywhere(page: str) -> None:
    assert not re.search(r"""(?:src|href)\s*=|@import|url\(|fetch\(|XMLHttpRequest""", page)


def test_page_holds_the_run_as_json(page: str) -> None:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    assert found is not None
    content = json.loads(found.group(1))
    kinds = {entry["kind"] for entry in content["entries"]}
    assert content["seed"] == 14
    assert {"message", "state", "fault"} <= kinds


@pytest.mark.chromium
def test_browser_draws_searches_and_decodes(page: str, tmp_path: Path) -> None:
    report = reported(page, PROBE, tmp_path)
    assert report["elections"] >= 1
    assert report["lanes"] >= 4
    assert "seed 14" in report["facts"]
    assert report["found"] >= 1
    assert report["first"] == "VoteRequest"
    assert '"candidate' in report["decoded"] or '"replicaEpoch"' in report["decoded"]
    assert report["zoomed"]
    assert report["clipped"] == []
    assert report["labels"] > 0
    assert report["piled"] == 0
    assert len(report["told"]) < len(report["everything"])
    assert all(re.match(r"[\d.]+ m?s(node \d+|all|client \d+) ", line) for line in report["told"])
    assert not any("metadata_snapshot" in line for line in report["told"])
    assert report["colors"] > 20
