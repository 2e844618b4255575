"""`python -m tests.dashboard_picture [SECONDS]`: docs/dashboard.png, from real nodes under load.

Three nodes with producers and a group are scraped each second; one is killed at a third of the
time and started again at two thirds. The panels of docs/dashboard.json are drawn as a page, not by
Grafana, and Chromium takes the picture.
"""

import json
import subprocess
import sys
import tempfile
import threading
import time
from html import escape
from pathlib import Path
from typing import Any, Final

from prometheus_client.parser import text_string_to_metric_families

from kraft_wire.wire.generated.produce import ProduceResponse
from tests.dashboard_expressions import Scrape, evaluate
from tests.incidents import QUICK, exposition, isr_size
from tests.process import KRAFT_WIRE
from tests.quorum_processes import QuorumProcesses
from tests.server.wire_client import WireClient, one_batch, produce_request
from tests.tidiness import CHECKOUT
from tests.waiting import until

DASHBOARD: Final = CHECKOUT / "docs" / "dashboard.json"
PICTURE: Final = CHECKOUT / "docs" / "dashboard.png"
WIDTH, HEIGHT = 440, 190
COLORS = ("#3274d9", "#e0b400", "#37872d", "#c4162a", "#8f3bb8", "#fa6400", "#1f9e89", "#6e7687")
_PREFIXES = ("", "k", "M", "G", "T")
_UNITS = {"bytes": (1024.0, "B"), "Bps": (1024.0, "B/s"), "s": (1e9, "s"), "ms": (0.0, "ms")}


def load(quorum: QuorumProcesses, over: threading.Event) -> None:
    """Produce to the partition's leader, whoever that is, until it is over."""
    batch = one_batch(*[bytes(200)] * 50)
    while not over.is_set():
        for node_id in quorum.running:
            try:
                with WireClient(quorum.client(node_id)) as client:
                    topic = client.topic("orders")
                    error = 0
                    while error == 0 and not over.is_set():
                        answer = client.call(produce_request(topic, batch), 9, ProduceResponse)
                        error = answer.responses[0].partition_responses[0].error_code
                        over.wait(0.02)
            except (OSError, AssertionError):
                over.wait(0.2)


def scrape(quorum: QuorumProcesses, seconds: float) -> Scrape:
    """Read the metrics of every node that runs."""
    samples: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
    for node_id in quorum.running:
        try:
            text = exposition(quorum.log(node_id))
        except (OSError, IndexError):
            continue
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                labels = {**sample.labels, "instance": f"node-{node_id}"}
                samples.setdefault(sample.name, {})[tuple(sorted(labels.items()))] = sample.value
    return Scrape(seconds, samples)


def recorded(directory: Path, seconds: float) -> list[Scrape]:
    """Run the nodes, and return their scrapes."""
    settings = {**QUICK, "broker.session.timeout.ms": "6000", "default.replication.factor": "3"}
    settings["offsets.topic.num.partitions"] = "3"
    scrapes: list[Scrape] = []
    with QuorumProcesses(directory, is_combined=True, overrides=settings) as quorum:
        survivor = next(each for each in quorum.node_ids if each != quorum.leader())
        with WireClient(quorum.client(survivor)) as client:
            client.topic("orders")
        until(lambda: isr_size(quorum.client(survivor)) == 3)
        over, victim = threading.Event(), quorum.leader()
        thread = threading.Thread(target=load, args=(quorum, over))
        thread.start()
        command = [KRAFT_WIRE, "consume", "orders", "--group", "billing", "--follow"]
        reader = subprocess.Popen(
            [*command, "--bootstrap-server", quorum.client(survivor)], stdout=subprocess.DEVNULL
        )
        began, was_killed, was_started = time.monotonic(), False, False
        while (now := time.monotonic() - began) < seconds:
            if now > seconds / 3 and not was_killed:
                was_killed = True
                quorum.kill(victim)
            if now > seconds * 2 / 3 and not was_started:
                was_started = True
                quorum.nodes[victim].begin()
            scrapes.append(scrape(quorum, now))
            time.sleep(1)
        over.set()
        thread.join()
        reader.terminate()
        reader.wait()
    return scrapes


def page(scrapes: list[Scrape]) -> str:
    """Return the dashboard as HTML."""
    dashboard = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    parts = [
        '<!doctype html><meta charset="utf-8"><style>'
        "body{font:13px sans-serif;margin:16px;width:1392px;background:#f4f5f5;color:#24292e}"
        "h2{margin:14px 0 6px;font-size:16px;clear:both}"
        ".panel{float:left;width:440px;background:#fff;border:1px solid #dcdfe3;margin:0 8px 8px 0;"
        "padding:6px}.panel b{display:block}.legend span{margin-right:10px;white-space:nowrap}"
        ".legend{font-size:11px;height:28px;overflow:hidden}</style>"
        "<b style='font-size:18px'>kraft-wire</b> &nbsp; three nodes under load; the leader of the "
        "quorum is killed at a third of the time and started again at two thirds"
    ]
    for panel in dashboard["panels"]:
        if panel["type"] == "row":
            parts.append(f"<h2>{escape(panel['title'])}</h2>")
        else:
            parts.append(_panel(panel, scrapes))
    return "".join(parts)


def _panel(panel: dict[str, Any], scrapes: list[Scrape]) -> str:
    curves: list[tuple[str, list[tuple[float, float]]]] = []
    for target in panel["targets"]:
        for labels, curve in sorted(evaluate(target["expr"], scrapes).items()):
            name = target["legendFormat"]
            for key, value in labels:
                name = name.replace("{{" + key + "}}", value)
            curves.append((name, curve))
    curves = sorted(curves, key=lambda each: -max(value for _, value in each[1]))[: len(COLORS)]
    unit = panel["fieldConfig"]["defaults"]["unit"]
    top = max([value for _, curve in curves for _, value in curve], default=0.0) * 1.1 or 1.0
    last = scrapes[-1].seconds
    lines = "".join(
        _line(curve, color, top, last) for (_, curve), color in zip(curves, COLORS, strict=False)
    )
    axis = "".join(
        f'<line x1="52" x2="{WIDTH}" y1="{y}" y2="{y}" stroke="#e6e8eb"/>'
        f'<text x="48" y="{y + 4}" text-anchor="end" font-size="10">{_shown(value, unit)}</text>'
        for value in (0.0, top / 2, top)
        for y in [_y(value, top)]
    )
    times = "".join(
        f'<text x="{_x(each, last)}" y="{HEIGHT - 2}" text-anchor="middle" font-size="10">'
        f"{each:.0f} s</text>"
        for each in (last / 3, last * 2 / 3)
    )
    names = "".join(
        f'<span><i style="color:{color}">&#9632;</i> {escape(name)}</span>'
        for (name, _), color in zip(curves, COLORS, strict=False)
    )
    return (
        f'<div class="panel"><b>{escape(panel["title"])}</b>'
        f'<svg width="{WIDTH}" height="{HEIGHT}">{axis}{times}{lines}</svg>'
        f'<div class="legend">{names}</div></div>'
    )


def _line(curve: list[tuple[float, float]], color: str, top: float, last: float) -> str:
    """Return a curve, broken where scrapes are missing."""
    parts, before = [], None
    for seconds, value in curve:
        is_apart = before is None or seconds - before > 4
        parts.append(f"{'M' if is_apart else 'L'}{_x(seconds, last):.1f} {_y(value, top):.1f}")
        before = seconds
    return f'<path d="{"".join(parts)}" fill="none" stroke="{color}" stroke-width="1.6"/>'


def _x(seconds: float, last: float) -> float:
    return 56 + (WIDTH - 62) * seconds / last


def _y(value: float, top: float) -> float:
    return HEIGHT - 18 - (HEIGHT - 26) * value / top


def _shown(value: float, unit: str) -> str:
    """Return a value as an axis shows it."""
    if unit == "percentunit":
        return f"{value:.0%}"
    base, name = _UNITS.get(unit, (1000.0, ""))
    power = 0
    while base and value >= base and power < len(_PREFIXES) - 1:
        value, power = value / base, power + 1
    number = f"{value:.3g}" if base or value < 1 else f"{value:.0f}"
    return f"{number} {_PREFIXES[power]}{name}"


def main() -> int:
    """Record, draw, and take the picture."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 90.0
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "dashboard.html")
        file.write_text(page(recorded(Path(folder, "nodes"), seconds)), encoding="utf-8")
        command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu"]
        command += ["--hide-scrollbars", f"--user-data-dir={folder}/profile"]
        command += ["--window-size=1424,2080", f"--screenshot={PICTURE}", file.as_uri()]
        subprocess.run(command, check=True, capture_output=True, timeout=120)
    print(PICTURE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
