"""A file system of a chosen size, which a test can fill: a tmpfs, mounted while it runs."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

__all__ = ["small_disk"]


@contextmanager
def small_disk(place: Path, *, mebibytes: int) -> Iterator[Path]:
    """Mount an empty file system; where that is not allowed, the test is skipped."""
    place.mkdir(parents=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={mebibytes}M", "tmpfs", str(place)]
    try:
        done = subprocess.run(command, capture_output=True, check=False)
    except OSError as error:
        pytest.skip(f"mounting needs mount: {error}")
    if done.returncode:
        pytest.skip("mounting needs root")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)
