"""No test leaves a file open below the directory of the tests: a fixture for whole folders."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.waiting import until

CLOSING_S = 10.0


@pytest.fixture(autouse=True)
def closed_files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Compare the open files below the directory of the tests before and after.

    Threads of Arrow close what they have read a moment after the caller has it.
    """
    place = tmp_path_factory.getbasetemp()
    before = _open_below(place)
    yield
    until(
        lambda: _open_below(place) <= before,
        lambda: f"left open: {sorted(_open_below(place) - before)}",
        seconds_max=CLOSING_S,
    )


def _open_below(place: Path) -> set[tuple[str, str]]:
    found = set()
    for descriptor in os.listdir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else ():
        with suppress(OSError):
            target = os.readlink(f"/proc/self/fd/{descriptor}")
            if target.startswith(str(place)):
                found.add((descriptor, target))
    return found
