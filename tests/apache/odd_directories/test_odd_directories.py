"""Both makes start on copies of one directory with odd files, and have to show the same.

Each partition has a change of its own, so that one start of each make judges all of them. Where the
makes differ, `known` says how: ours shows what is there, or refuses to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.apache.odd_directories.catalogue import CHANGES, stopping
from tests.apache.odd_directories.comparing import (
    Outcome,
    Start,
    both_starts,
    differences,
    outcome,
    start,
)
from tests.apache.odd_directories.file_changes import Change, together
from tests.apache.odd_directories.known import KILLED, STOPPED, expected
from tests.apache.odd_directories.making import DELETED, OTHERS, TOPIC, Made, make
from tests.apache.odd_directories.node_changes import REFUSED_BY_BOTH, TAKEN_BY_BOTH
from tests.apache.odd_directories.pair import APACHE, OURS, copied, copied_without_logs

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """The directories, with a partition for each change and one that stays as it is."""
    return make(tmp_path_factory.mktemp("odd"), len(CHANGES[STOPPED]) + 1)


def changed(changes: Mapping[str, Change]) -> Callable[[Path], None]:
    """Make the nth change in partition n."""

    def change(folder: Path) -> None:
        for number, each in enumerate(changes.values()):
            (directory,) = folder.glob(f"*/{TOPIC}-{number}")
            each(directory)

    return change


def as_expected(both: dict[str, Start], end: str) -> dict[str, tuple[Outcome, list[str]]]:
    """Return the changes that were not treated as expected, with what differs."""
    names = list(CHANGES[end])
    unchanged = f"{TOPIC}-{len(names)}"
    found = {
        name: (outcome(both, f"{TOPIC}-{number}", unchanged), f"{TOPIC}-{number}")
        for number, name in enumerate(names)
    }
    return {
        name: (each, differences(both, partition))
        for name, (each, partition) in found.items()
        if each is not expected(name, end)
    }


@pytest.mark.parametrize("end", [STOPPED, KILLED])
def test_partitions_with_odd_files_are_treated_alike(made: Made, tmp_path: Path, end: str) -> None:
    changes = CHANGES[end]
    made = made._replace(partitions=len(changes) + 1)
    both = both_starts(getattr(made, end), tmp_path, made, changed(changes))
    assert [both[make].refusal for make in (APACHE, OURS)] == ["", ""]
    assert as_expected(both, end) == {}
    assert both[APACHE].offsets == both[OURS].offsets
    for partition in (f"{TOPIC}-{len(changes)}", *(f"{DELETED}-{n}" for n in range(OTHERS))):
        assert differences(both, partition) == [], partition


def test_a_partition_that_stops_apache_does_not_stop_us(made: Made, tmp_path: Path) -> None:
    changes = stopping()
    folder = copied(made.stopped, tmp_path / OURS)
    changed(changes)(folder)
    made = made._replace(partitions=len(changes) + 1)
    ours = start(OURS, folder, made)
    assert ours.refusal == ""
    whole = ours.partitions[f"{TOPIC}-{len(changes)}"]
    assert whole["end afterwards"] == {"error": 0, "offset": 21, "epoch": 4, "time": -1}


def test_files_of_a_node_that_both_take_as_they_are(made: Made, tmp_path: Path) -> None:
    made = made._replace(partitions=4)
    both = both_starts(made.stopped, tmp_path, made, together(*TAKEN_BY_BOTH.values()))
    assert [both[make].refusal for make in (APACHE, OURS)] == ["", ""]
    for partition in both[OURS].partitions:
        assert differences(both, partition) == [], partition
    assert both[APACHE].offsets == both[OURS].offsets


@pytest.mark.parametrize("name", list(REFUSED_BY_BOTH)[:2])
def test_files_of_a_node_that_apache_refuses(made: Made, tmp_path: Path, name: str) -> None:
    folder = copied_without_logs(made.stopped, tmp_path)
    REFUSED_BY_BOTH[name][0](folder)
    assert start(APACHE, folder, made).refusal


@pytest.mark.parametrize("name", list(REFUSED_BY_BOTH))
def test_files_of_a_node_that_we_refuse_as_apache_does(
    made: Made, tmp_path: Path, name: str
) -> None:
    folder = copied_without_logs(made.stopped, tmp_path)
    change, words = REFUSED_BY_BOTH[name]
    change(folder)
    assert words in start(OURS, folder, made).refusal
