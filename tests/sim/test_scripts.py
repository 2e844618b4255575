"""Every story of whole nodes still ends as it is recorded."""

import pytest

from kraft_wire.sim.runs.script import StoryError
from kraft_wire.sim.runs.story import Story
from tests.sim.scripts.__main__ import SCRIPTS


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_story_happens_as_recorded(path) -> None:  # type: ignore[no-untyped-def]  # a Path
    recorded = path.read_text(encoding="utf-8")
    assert Story(recorded).text == recorded, (
        "python -m tests.sim.scripts --rewrite, then read the diff"
    )


@pytest.mark.parametrize("line", ["> dance", "> crash 1", "> cluster voters=one", "> cluster x=1"])
def test_line_that_is_no_command_is_refused_by_name(line: str) -> None:
    with pytest.raises(StoryError):
        Story(line + "\n")


def test_every_story_begins_with_prose() -> None:
    assert all(path.read_text(encoding="utf-8").startswith("# ") for path in SCRIPTS)


def test_story_without_a_record_is_right_while_every_invariant_holds() -> None:
    assert Story("# One voter.\n> cluster voters=1\n> until settled\n").is_right


def test_story_that_happens_otherwise_than_recorded_is_wrong() -> None:
    assert not Story("> cluster voters=1\n      0 node 1 is Follower in epoch 7\n").is_right
