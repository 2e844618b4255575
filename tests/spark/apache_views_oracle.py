"""What Apache's own classes read in a node's log directory, by way of `judge.ViewDigests`."""

from __future__ import annotations

import json
import subprocess
from collections import defaultdict
from pathlib import Path

from tests.apache.java_process import JavaFailed, java_command
from tests.spark.apache_views_digests import Digest, Digests

HEAP_MB = 768
SECONDS_MAX = 1800
"""For one directory: two million records take half a minute."""


def apache_views(directory: Path) -> dict[str, Digests]:
    """Return every view of a directory by its name; JavaFailed where Apache's classes refuse."""
    done = subprocess.run(
        java_command("judge.ViewDigests", [str(directory)], heap_mb=HEAP_MB),
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS_MAX,
    )
    if done.returncode != 0:
        raise JavaFailed(done.stderr)
    found: dict[str, dict[str, Digest]] = defaultdict(dict)
    for line in done.stdout.splitlines():
        row = json.loads(line)
        found[row["view"]][row["group"]] = Digest(row["rows"], tuple(row["sums"]))
    return dict(found)


def write_apache_rows(directory: Path, view: str, group: str, output: Path) -> None:
    """Write place and digest of each row of one group into a file, a line each."""
    command = java_command("judge.ViewDigests", [str(directory), view, group], heap_mb=HEAP_MB)
    with output.open("wb") as file:
        done = subprocess.run(
            command, stdout=file, stderr=subprocess.PIPE, check=False, timeout=SECONDS_MAX
        )
    if done.returncode != 0:
        raise JavaFailed(done.stderr.decode(errors="replace"))
