"""Every story still ends as it is recorded; a difference is read, then rewritten or mended."""

from pathlib import Path

import pytest

from tests.raft.scripts.story import SCRIPTS, played


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_story_happens_as_recorded(path: Path) -> None:
    recorded = path.read_text(encoding="utf-8")
    assert played(recorded) == recorded, (
        "python -m tests.raft.scripts --rewrite, then read the diff"
    )


def test_there_are_twenty_stories_at_least() -> None:
    assert len(SCRIPTS) >= 20
