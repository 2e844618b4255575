"""docs/walkthroughs/*.md, executed: what they say is printed is printed, what they name exists."""

import re
from pathlib import Path

import pytest

from tests.tidiness import CHECKOUT
from tests.walkthroughs import PAGES, PICTURE, played, scratch

LINES_MAX = 150
BYTES_MAX = 150_000


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_blocks_print_what_the_page_shows(path: Path) -> None:
    recorded = path.read_text(encoding="utf-8")
    with scratch() as place:
        assert played(recorded, place) == recorded, "make walkthroughs, then read the diff"


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_page_fails_first_is_short_and_has_a_small_picture(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    first = re.search(r"^```sh\n.*?^```\n\n```text\n(.*?)^```", text, re.M | re.S)
    assert first is not None
    assert "VIOLATION of S" in first[1]
    assert len(text.splitlines()) <= LINES_MAX
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


def test_there_are_the_four_that_the_simulator_s_page_names() -> None:
    text = (CHECKOUT / "docs" / "SIMULATION.md").read_text(encoding="utf-8")
    assert re.findall(r"\(walkthroughs/([\w-]+)\.md\)", text) == [
        "election",
        "divergence",
        "snapshot-catch-up",
        "adding-a-voter",
    ]
    assert len(PAGES) == 4
