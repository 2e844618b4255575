"""`python -m tests.audit.pictures`: take the pictures of both pages in docs; needs chromium.

Three clean replicas each time. In one set a bit is flipped, batches are missing, and the end of a
log has other content than the majority; the other set is that of docs/PIPELINE.md. The simulator's
page is that of docs/SIMULATION.md. A window of Chromium is not narrower than 500 pixels, so that
each page is in a frame.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from kraft_wire.audit.collector import plan_audit, run_audit
from kraft_wire.audit.report import write_report
from tests.audit.campaign import Campaign
from tests.audit.clean_set import write_clean_set
from tests.audit.faults import damaged
from tests.tidiness import CHECKOUT

KINDS = ("bit flip", "missing batches", "divergent suffix")
SIMULATED = 3
"""Seed of the simulator's page."""
VIEWS = {(390, 844): "light", (1280, 760): "dark", (1400, 800): "light"}
"""Sizes of the pages in docs/SCREENS.md, each with its color scheme."""
SCHEMES = {"light": 1, "dark": 0}
"""Chromium's numbers of color schemes."""
SEED = 4
"""Rewrites the end of orders-1 on node 1."""
FLIPPED = ("orders-1/00000000000000000000.log", 3_228 + 5, 0x02)
"""A bit of the offset of the batch at 42, which then claims 131,114."""


def main(folder: Path) -> int:
    """Write the pictures into a folder."""
    with TemporaryDirectory(prefix="kraft-wire-pictures-") as name:
        place = Path(name)
        three = _audited(place / "three", _three_kinds)
        for picture, size in (("audit", (1280, 760)), ("audit-phone", (500, 900))):
            _take(three, folder / f"{picture}.png", size)
        _take(_audited(place / "one", _of_the_pipeline), folder / "pipeline-audit.png", (1100, 620))
        simulated = place / "simulation.html"
        seed = ["sim", "--seed", str(SIMULATED), "--html", str(simulated)]
        command = [sys.executable, "-m", "kraft_wire", *seed]
        subprocess.run(command, capture_output=True, timeout=600, check=True)
        (folder / "pages").mkdir(exist_ok=True)
        for kind, page in (("audit", three), ("simulation", simulated)):
            for size, scheme in VIEWS.items():
                _take(page, folder / "pages" / f"{kind}-{size[0]}.png", size, scheme)
    return 0


def _audited(place: Path, damage: Callable[[Sequence[Path]], None]) -> Path:
    """Return the page of an audit of three replicas that `damage` has changed."""
    nodes = write_clean_set(place / "clean")
    damage(nodes)
    write_report(run_audit(plan_audit([str(node) for node in nodes]), processes=1), place)
    return place / "report.html"


def _take(page: Path, picture: Path, size: tuple[int, int], scheme: str = "light") -> None:
    """Take one picture: the page in a frame of that size, in the colors of that scheme."""
    width, height = size
    frame = page.with_suffix(".frame.html")
    style = f"border: 0; display: block; width: {width}px; height: {height}px"
    body = f'<body style="margin: 0"><iframe src="{page.as_uri()}" style="{style}"></iframe>'
    frame.write_text(body, encoding="utf-8")
    command = [
        *("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"),
        *(f"--window-size={width},{height}", f"--user-data-dir={page.parent / 'profile'}"),
        f"--blink-settings=preferredColorScheme={SCHEMES[scheme]}",
        *("--virtual-time-budget=6000", f"--screenshot={picture}", frame.as_uri()),
    ]
    subprocess.run(command, capture_output=True, timeout=240, check=True)


def _of_the_pipeline(nodes: Sequence[Path]) -> None:
    damaged(Campaign(nodes).replicas, SEED)
    name, position, bit = FLIPPED
    (file,) = (node / name for node in nodes if node.name.endswith("1"))
    content = bytearray(file.read_bytes())
    content[position] ^= bit
    file.write_bytes(content)


def _three_kinds(nodes: Sequence[Path]) -> None:
    """Damage a partition in each of the ways, each in the first seed that does it."""
    campaign = Campaign(nodes)
    wanted, places = set(KINDS), set[str]()
    for seed in range(400):
        with campaign.damaged(seed) as damage:
            found = run_audit(campaign.plan_for(damage), processes=1).findings
        place = f"{damage.topic}-{damage.partition}"
        if damage.kind in wanted and damage.topic != "state" and place not in places and found:
            wanted.discard(damage.kind)
            places.add(place)
            damaged(campaign.replicas, seed)
        if not wanted:
            return
    raise AssertionError(f"no seed damages: {sorted(wanted)}")


if __name__ == "__main__":
    sys.exit(main(CHECKOUT / "docs"))
