"""Short stories of one share partition, with the answers that Apache's rules give, by hand.

The lines are those of `stories.py`; the long ones of `test_against_apache.py` are drawn.
"""

from __future__ import annotations

import pytest

from tests.broker.share_fetch.stories import Told

STORIES = {
    "ranges are parts of one batch with equal counts": """
        begin 200 10 20000 0 -
            load 0 | 0 0 complete 0 next 0 free |
        acquire a 0 5 500 0 0-4,5-9 -
            acquired 10 0-4:1,5-9:1 | 0 9 complete 0 next 10 free | 0-4:1x1a 5-9:1x1a
        acknowledge 1 a 1-2:2,4-5:2
            write 5 3 0 0 1-1:0x1,2-2:0x1,4-4:0x1,5-5:0x1 | 0 9 complete 0 next 10 free |
            [ 0:1x1a 1:0x1* 2:0x1* 3:1x1a 4:0x1* ] [ 5:0x1* 6:1x1a 7:1x1a 8:1x1a 9:1x1a ]
        written 0
            1 0 | 0 9 complete 0 next 1 free |
            [ 0:1x1a 1:0x1 2:0x1 3:1x1a 4:0x1 ] [ 5:0x1 6:1x1a 7:1x1a 8:1x1a 9:1x1a ]
        acquire b 0 500 500 1 0-4,5-9 -
            acquired 4 1-2:2,4-4:2,5-5:2 | 0 9 complete 0 next 10 free |
            [ 0:1x1a 1:1x2b 2:1x2b 3:1x1a 4:1x2b ] [ 5:1x2b 6:1x1a 7:1x1a 8:1x1a 9:1x1a ]
        acknowledge 2 b 2-2:2
            write 5 3 0 0 2-2:0x2 | 0 9 complete 0 next 10 free |
            [ 0:1x1a 1:1x2b 2:0x2* 3:1x1a 4:1x2b ] [ 5:1x2b 6:1x1a 7:1x1a 8:1x1a 9:1x1a ]
        written 0
            2 0 | 0 9 complete 0 next 2 free |
            [ 0:1x1a 1:1x2b 2:0x2 3:1x1a 4:1x2b ] [ 5:1x2b 6:1x1a 7:1x1a 8:1x1a 9:1x1a ]
        acknowledge 3 a 0-0:2,3-3:2
            write 5 3 0 0 0-0:0x1,3-3:0x1 | 0 9 complete 0 next 2 free |
            [ 0:0x1* 1:1x2b 2:0x2 3:0x1* 4:1x2b ] [ 5:1x2b 6:1x1a 7:1x1a 8:1x1a 9:1x1a ]
        written 0
            3 0 | 0 9 complete 0 next 0 free |
            [ 0:0x1 1:1x2b 2:0x2 3:0x1 4:1x2b ] [ 5:1x2b 6:1x1a 7:1x1a 8:1x1a 9:1x1a ]
        acquire c 0 500 500 0 0-4,5-9 -
            acquired 3 0-0:2,2-2:3,3-3:2 | 0 9 complete 0 next 10 free |
            [ 0:1x2c 1:1x2b 2:1x3c 3:1x2c 4:1x2b ] [ 5:1x2b 6:1x1a 7:1x1a 8:1x1a 9:1x1a ]
    """,
    "what is available and compacted away is archived from the fetch's offset on": """
        begin 200 10 20000 0 -
            load 0 | 0 0 complete 0 next 0 free |
        acquire a 0 500 500 0 0-4 -
            acquired 5 0-4:1 | 0 4 complete 0 next 5 free | 0-4:1x1a
        acknowledge 1 a 3-4:2
            write 5 3 0 0 3-3:0x1,4-4:0x1 | 0 4 complete 0 next 5 free |
            [ 0:1x1a 1:1x1a 2:1x1a 3:0x1* 4:0x1* ]
        written 0
            1 0 | 0 4 complete 0 next 3 free | [ 0:1x1a 1:1x1a 2:1x1a 3:0x1 4:0x1 ]
        acquire b 0 500 500 3 4-4,7-8 -
            acquired 5 4-4:2,5-8:1 | 0 8 complete 1 next 9 free |
            [ 0:1x1a 1:1x1a 2:1x1a 3:4x1 4:1x2b ] 5-8:1x1b
        acknowledge 2 b 4-4:2
            write 5 3 0 1 4-4:0x2 | 0 8 complete 1 next 9 free |
            [ 0:1x1a 1:1x1a 2:1x1a 3:4x1 4:0x2* ] 5-8:1x1b
        written 0
            2 0 | 0 8 complete 1 next 4 free |
            [ 0:1x1a 1:1x1a 2:1x1a 3:4x1 4:0x2 ] 5-8:1x1b
        acquire b 0 500 500 4 9-9 -
            acquired 1 9-9:1 | 0 9 complete 2 next 10 free |
            [ 0:1x1a 1:1x1a 2:1x1a 3:4x1 4:4x2 ] 5-8:1x1b 9-9:1x1b
    """,
    "a split of a batch keeps its lock for each record": """
        begin 200 10 20000 0 -
            load 0 | 0 0 complete 0 next 0 free |
        acquire a 0 500 500 0 0-2 -
            acquired 3 0-2:1 | 0 2 complete 0 next 3 free | 0-2:1x1a
        time 11000
            | 0 2 complete 0 next 3 free | 0-2:1x1a
        acknowledge 1 a 1-1:4
            1 0 | 0 2 complete 0 next 3 free | [ 0:1x1a 1:1x1a 2:1x1a ]
        time 20999
            | 0 2 complete 0 next 3 free | [ 0:1x1a 1:1x1a 2:1x1a ]
        time 21000
            write 5 3 0 0 0-0:0x1; write 5 3 0 0 2-2:0x1 | 0 2 complete 0 next 0 free |
            [ 0:0x1 1:1x1a 2:0x1 ]
        time 30999
            | 0 2 complete 0 next 0 free | [ 0:0x1 1:1x1a 2:0x1 ]
        time 31000
            write 5 3 0 0 1-1:0x1 | 0 2 complete 0 next 0 free | [ 0:0x1 1:0x1 2:0x1 ]
    """,
    "what is below the log's start is archived when its lock ends": """
        begin 200 10 20000 0 -
            load 0 | 0 0 complete 0 next 0 free |
        acquire a 0 500 500 0 0-3 -
            acquired 4 0-3:1 | 0 3 complete 0 next 4 free | 0-3:1x1a
        start 2
            | 2 3 complete 0 next 4 free | 0-3:1x1a
        time 21000
            write 5 3 2 0 0-0:4x1,1-1:4x1,2-2:0x1,3-3:0x1 | 2 3 complete 0 next 2 free |
            [ 0:4x1 1:4x1 2:0x1 3:0x1 ]
    """,
    "what is below the log's start is archived when its member goes": """
        begin 200 10 20000 0 -
            load 0 | 0 0 complete 0 next 0 free |
        acquire a 0 500 500 0 0-3 -
            acquired 4 0-3:1 | 0 3 complete 0 next 4 free | 0-3:1x1a
        start 2
            | 2 3 complete 0 next 4 free | 0-3:1x1a
        release 1 b
            1 0 | 2 3 complete 0 next 4 free | 0-3:1x1a
        release 2 a
            write 5 3 2 0 0-0:4x1,1-1:4x1,2-2:0x1,3-3:0x1 | 2 3 complete 0 next 4 free |
            [ 0:4x1* 1:4x1* 2:0x1* 3:0x1* ]
        written 0
            2 0 | 2 3 complete 0 next 2 free | [ 0:4x1 1:4x1 2:0x1 3:0x1 ]
    """,
    "a batch that begins at the start stays whole": """
        begin 200 10 20000 0 -
            load 0 | 0 0 complete 0 next 0 free |
        acquire a 0 2 500 0 0-1,2-3 -
            acquired 4 0-1:1,2-3:1 | 0 3 complete 0 next 4 free | 0-1:1x1a 2-3:1x1a
        start 2
            | 2 3 complete 0 next 4 free | 0-1:1x1a 2-3:1x1a
        release 1 a
            write 5 3 2 0 0-1:4x1,2-3:0x1 | 2 3 complete 0 next 4 free | 0-1:4x1* 2-3:0x1*
        written 16
            1 15 null | 2 3 complete 0 next 4 free | 0-1:1x1a 2-3:1x1a
        time 21000
            write 5 3 2 0 0-1:4x1; write 5 3 2 0 2-3:0x1 | 2 3 complete 0 next 2 free |
            0-1:4x1 2-3:0x1
    """,
    "the start follows that of the log": """
        begin 200 10 20000 3 -
            load 0 | 3 3 complete 0 next 3 free |
        start 2
            | 3 3 complete 0 next 3 free |
        start 5
            | 5 5 complete 0 next 5 free |
        acquire a 0 500 500 5 5-6,7-8 -
            acquired 4 5-8:1 | 5 8 complete 0 next 9 free | 5-8:1x1a
        start 4
            | 5 8 complete 0 next 9 free | 5-8:1x1a
        acknowledge 1 a 6-6:2,8-8:1
            write 5 3 5 1 6-6:0x1,8-8:2x1 | 5 8 complete 1 next 9 free |
            [ 5:1x1a 6:0x1* 7:1x1a 8:2x1* ]
        written 0
            1 0 | 5 8 complete 1 next 6 free | [ 5:1x1a 6:0x1 7:1x1a 8:2x1 ]
        start 6
            | 6 8 complete 1 next 6 free | [ 5:1x1a 6:0x1 7:1x1a 8:2x1 ]
        start 7
            | 7 8 complete 1 next 9 free | [ 5:1x1a 6:4x1 7:1x1a 8:2x1 ]
        start 20
            | 20 20 complete 0 next 20 free | [ 5:1x1a 6:4x1 7:1x1a 8:2x1 ]
        time 21000
            write 5 3 20 0 5-5:4x1; write 5 3 20 0 7-7:4x1 | 20 20 complete 0 next 20 free |
            [ 5:4x1 6:4x1 7:4x1 8:2x1 ]
    """,
    "what was delivered often goes alone, in halves": """
        begin 200 4 20000 0 0-1:0x1,2-3:0x2
            load 0 | 0 3 complete 0 next 0 free | 0-1:0x1 2-3:0x2
        acquire a 0 500 500 0 0-1,2-3,4-5 -
            acquired 2 0-1:2 | 0 3 complete 0 next 2 free | 0-1:1x2a 2-3:0x2
        acquire a 0 500 500 2 2-3,4-5 -
            acquired 1 2-2:3 | 0 3 complete 0 next 3 free | 0-1:1x2a [ 2:1x3a 3:0x2 ]
        acquire a 0 500 500 3 2-3,4-5 -
            acquired 1 3-3:3 | 0 3 complete 0 next 4 free | 0-1:1x2a [ 2:1x3a 3:1x3a ]
    """,
    "a gap is fetched up to the next stored batch, whole": """
        begin 200 10 20000 0 0-1:0x1,5-6:0x1
            load 0 | 0 6 complete 0 next 0 free | 0-1:0x1 5-6:0x1
        acquire a 0 500 3 0 0-6 -
            acquired 5 0-1:2,2-4:1 | 0 6 complete 0 next 5 free | 0-1:1x2a 2-4:1x1a 5-6:0x1
    """,
    "without room only what is in flight is acquired": """
        begin 4 10 20000 0 -
            load 0 | 0 0 complete 0 next 0 free |
        acquire a 0 500 500 0 0-3 -
            acquired 4 0-3:1 | 0 3 complete 0 next 4 full | 0-3:1x1a
        acquire b 0 500 500 4 4-7 -
            acquired 0  | 0 3 complete 0 next 4 full | 0-3:1x1a
        acknowledge 1 a 2-3:2
            write 5 3 0 0 2-2:0x1,3-3:0x1 | 0 3 complete 0 next 4 full |
            [ 0:1x1a 1:1x1a 2:0x1* 3:0x1* ]
        written 0
            1 0 | 0 3 complete 0 next 2 free | [ 0:1x1a 1:1x1a 2:0x1 3:0x1 ]
        acquire b 1 500 500 2 0-3,4-7 -
            acquired 2 2-3:2 | 0 3 complete 0 next 4 full | [ 0:1x1a 1:1x1a 2:1x2b 3:1x2b ]
        acknowledge 2 a 0-0:1
            write 5 3 0 1 0-0:2x1 | 0 3 complete 1 next 4 full |
            [ 0:2x1* 1:1x1a 2:1x2b 3:1x2b ]
        written 0
            2 0 | 1 3 complete 0 next 4 free | [ 0:2x1 1:1x1a 2:1x2b 3:1x2b ]
        acquire b 1 500 500 4 4-7 -
            acquired 1 4-4:1 | 1 7 complete 0 next 5 free |
            [ 0:2x1 1:1x1a 2:1x2b 3:1x2b ] [ 4:1x1b 5:0x0 6:0x0 7:0x0 ]
    """,
}
"""By what they show: a line, and the answer to it, which may take several lines."""


def lines_of(story: str) -> list[tuple[str, str]]:
    """Return each line with its answer."""
    found: list[tuple[str, str]] = []
    margin = " " * 8
    for text in story.strip("\n").splitlines():
        if not text.strip():
            continue
        line = text.removeprefix(margin)
        if not line.startswith(" "):
            found.append((line, ""))
        else:
            asked, answer = found[-1]
            found[-1] = asked, f"{answer} {line.strip()}".lstrip() if answer else line.strip()
    return found


@pytest.mark.parametrize("name", STORIES)
def test_story_has_its_answers(name: str) -> None:
    told = Told()
    for line, answer in lines_of(STORIES[name]):
        told.tell(line)
        assert told.answers[-1].strip() == answer, line


def test_start_does_not_move_over_final_records_behind_others() -> None:
    """Also where the start itself is at a final one, because that of the log has moved."""
    told = Told()
    name = "the start follows that of the log"
    for line, _ in lines_of(STORIES[name])[:-2]:
        told.tell(line)
    told.tell("start 8")
    assert told.partition.advance_start() is False
    assert (told.partition.start_offset, len(told.partition.in_flight)) == (8, 1)
