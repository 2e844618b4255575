"""`python -m tests.audit.pictures`: take the pictures of the audit page in docs; needs chromium.

Three clean replicas each time. In one set a bit is flipped, batches are missing, and the end of a
log has other content than the majority; the other set is that of docs/PIPELINE.md.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from kraft_wire.audit.collector import plan_audit, run_audit
from kraft_wire.audit.report import write_report
from tests.audit.campaign import Campaign
from tests.audit.clean_set import write_clean_set
from tests.audit.faults import damaged
from tests.tidiness import CHECKOUT

KINDS = ("bit flip", "missing batches", "divergent suffix")
SEED = 4
"""Rewrites the end of orders-1 on node 1."""
FLIPPED = ("orders-1/00000000000000000000.log", 3_228 + 5, 0x02)
"""A bit of the offset of the batch at 42, which then claims 131,114."""


def main(folder: Path) -> int:
    """Write the pictures into a folder; a window of Chromium is not narrower than 500 pixels."""
    _take(folder, _three_kinds, {"audit": (1280, 760), "audit-phone": (500, 900)})
    _take(folder, _of_the_pipeline, {"pipeline-audit": (1100, 620)})
    return 0


def _take(
    folder: Path, damage: Callable[[Sequence[Path]], None], pictures: Mapping[str, tuple[int, int]]
) -> None:
    with TemporaryDirectory(prefix="kraft-wire-pictures-") as name:
        place = Path(name)
        nodes = write_clean_set(place / "clean")
        damage(nodes)
        write_report(run_audit(plan_audit([str(node) for node in nodes]), processes=1), place)
        for picture, (width, height) in pictures.items():
            command = [
                *("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"),
                f"--window-size={width},{height}",
                *("--virtual-time-budget=6000", f"--user-data-dir={place / 'profile'}"),
                f"--screenshot={folder / f'{picture}.png'}",
                (place / "report.html").as_uri(),
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
