"""Groups with Apache's targets: `python -m tests.broker.groups.assignors --write` records them."""

from __future__ import annotations

import json
from pathlib import Path

from tests.broker.groups.assignors.groups import Group, Targets

RECORDED = Path(__file__).parent / "targets.jsonl"


def recorded() -> list[tuple[Group, Targets | None]]:
    """Return each group with its targets; None: the assignor fails."""
    pairs = map(json.loads, RECORDED.read_text().splitlines())
    return [(group, targets) for group, targets in pairs]
