"""docs/walkthroughs/*.md, executed: what they say is printed is printed, what they name exists."""

import re
from contextlib import suppress
from pathlib import Path

import pytest

from tests.tidiness import CHECKOUT
from tests.waiting import until
from tests.walkthroughs import PAGES, PICTURE, played, scratch

LINES_MAX = 150
BYTES_MAX = 150_000
OF_PROCESSES = {
    "a-broker-dies": ("Delivery failed", ["kcat", "slow", "alone"]),
    "a-reassignment": ("INVALID_REPLICA_ASSIGNMENT", ["kcat", "slow", "alone"]),
    "a-torn-transaction": ("3 half", ["kcat", "client", "slow", "alone"]),
    "joining-apache": ("DUPLICATE_BROKER_REGISTRATION", ["kcat", "java", "slow", "alone"]),
}
"""Pages that run a cluster: how they fail first, and the marks that they need."""
SIMULATED = [path for path in PAGES if path.stem not in OF_PROCESSES]


def _marked(path: Path) -> object:
    marks = OF_PROCESSES[path.stem][1] if path.stem in OF_PROCESSES else []
    named = [getattr(pytest.mark, each) for each in marks]
    return pytest.param(path, marks=[*named], id=path.stem)


@pytest.mark.parametrize("path", [_marked(path) for path in PAGES])
def test_blocks_print_what_the_page_shows(path: Path) -> None:
    recorded = path.read_text(encoding="utf-8")
    with scratch() as place:
        assert played(recorded, place) == recorded, "make walkthroughs, then read the diff"


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_page_fails_first_and_is_short(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    printed = re.findall(r"^```sh\n.*?^```\n\n```text\n(.*?)^```", text, re.M | re.S)
    assert re.search(OF_PROCESSES.get(path.stem, ("VIOLATION of S", []))[0], printed[0])
    assert len(text.splitlines()) <= LINES_MAX


@pytest.mark.parametrize("path", SIMULATED, ids=lambda path: path.stem)
def test_page_of_the_simulator_has_a_small_picture(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    pictures = [path.parent / found["file"] for found in PICTURE.finditer(text)]
    assert pictures
    assert all(0 < picture.stat().st_size < BYTES_MAX for picture in pictures)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_paths_and_links_of_a_page_exist(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    named = re.findall(r"`((?:kraft_wire|mutants|tests|docs)/[\w./-]+)`", text)
    links = re.findall(r"\]\((?!https?://)([^)#]+)", text)
    assert [name for name in named if not (CHECKOUT / name).exists()] == []
    assert [link for link in links if not (path.parent / link).exists()] == []


def test_pages_are_the_four_of_the_simulator_and_those_of_clusters() -> None:
    assert _named("SIMULATION.md") == [
        "election",
        "divergence",
        "snapshot-catch-up",
        "adding-a-voter",
    ]
    assert _named("QUORUM.md") == list(OF_PROCESSES)
    assert {path.stem for path in PAGES} == {*_named("SIMULATION.md"), *OF_PROCESSES}


def test_what_a_page_left_running_ends_with_it() -> None:
    with scratch() as place:
        printed = played("```sh\nsleep 100 >/dev/null 2>&1 & echo $!\n```\n", place)
        (pid,) = re.findall(r"^\d+$", printed, re.M)
        until(lambda: runs(pid))  # while it becomes `sleep` it has no command line
    until(lambda: not runs(pid))


def runs(pid: str) -> bool:
    """Whether a process works; one that nobody has asked how it ended does not."""
    with suppress(OSError):
        return Path("/proc", pid, "cmdline").read_bytes() != b""
    return False


def _named(page: str) -> list[str]:
    """The walkthroughs that a page of docs names, in order."""
    text = (CHECKOUT / "docs" / page).read_text(encoding="utf-8")
    return re.findall(r"\(walkthroughs/([\w-]+)\.md\)", text)
