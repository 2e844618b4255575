"""Scenarios of Apache's Java share consumers, run against one broker."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.apache import jars
from tests.apache.java_process import LEAN_FLAGS, archive_flags, compiled

__all__ = ["SCENARIOS", "SETTINGS", "seen_by_scenario"]

SOURCES = Path(__file__).parent / "java"
HEAP_MB = 192
SECONDS_MAX = 600

SETTINGS = {
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.heartbeat.interval.ms": "1000",
    "group.share.min.heartbeat.interval.ms": "1000",
}
"""What a broker needs for locks that end within a test."""

SCENARIOS = (
    "implicit",
    "explicit",
    "limit",
    "closed",
    "lock-ends",
    "renewed",
    "record-limit",
    "read-committed",
    "latest",
    "described",
    "reset",
    "deleted",
)


def seen_by_scenario(bootstrap: str, scenarios: Sequence[str] = SCENARIOS) -> dict[str, Any]:
    """Return what the consumers of each scenario saw, or how it failed."""
    path = jars.classpath()
    classes = compiled((SOURCES,), path, jars.RELEASE)
    done = subprocess.run(
        ["java", *LEAN_FLAGS, *archive_flags(), f"-Xmx{HEAP_MB}m", "-cp",
         os.pathsep.join([path, str(classes)]), "judge.ShareScenarios", bootstrap, *scenarios],
        capture_output=True, text=True, check=False, timeout=SECONDS_MAX,
    )  # fmt: skip
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(lines) == len(scenarios), done.stderr
    return {line["scenario"]: line.get("seen", line.get("failure")) for line in lines}
