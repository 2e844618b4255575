"""What is planted in the lines of members is found."""

from __future__ import annotations

import pytest

from tests.group_kinds.verdict import Verdict

READ = ("p g 0 0", "r g 0 0 5", "c g 0 5", "p g 0 5", "r g 0 5 8", "c g 0 8")


def judged(*lines: str) -> Verdict:
    verdict = Verdict()
    verdict.take(lines)
    return verdict


def test_members_that_follow_each_other_are_right() -> None:
    verdict = judged(*READ, "x member")
    verdict.compare({("g", 0): 8}, {("g", 0): 8})
    assert verdict.wrong == []
    assert verdict.unread(["g"], {0: 8}) == []
    assert verdict.twice(["g"]) == 0
    assert verdict.left == {"member"}


@pytest.mark.parametrize(
    ("lines", "wrong"),
    [
        (("p g 0 4",), "begins at 4; 5 was committed"),
        (("p g 0 9",), "begins at 9; 5 was committed, 5 read"),
        (("e g m java.lang.Error: why",), "a member ended by itself: g m java.lang.Error: why"),
    ],
)
def test_what_is_wrong_is_named(lines: tuple[str, ...], wrong: str) -> None:
    [found] = judged(*READ[:3], *lines).wrong
    assert wrong in found


def test_position_of_a_member_without_processor_time_is_counted() -> None:
    verdict = judged(*READ[:3], "l g 0 0")
    assert verdict.wrong == []
    assert verdict.late_beginnings == 1


def test_offset_where_a_member_begins_was_committed() -> None:
    """A commit whose answer is lost is sent again, and may be refused then although it counts."""
    verdict = judged(*READ[:2], "u g CommitFailedException", "p g 0 5")
    assert verdict.unread(["g"], {0: 5}) == []
    assert verdict.confirmed() == {("g", 0): 5}
    verdict.take(["p g 0 4"])
    assert len(verdict.wrong) == 1


def test_shared_records_are_done_once_their_acceptance_may_count() -> None:
    verdict = judged("d s 1 1", "a s 1 1", "d s 2 1", "u s 2 1", "d s 3 1", "n s 3 1", "d s 2 2")
    assert verdict.shared["s"].done == {1}
    verdict.take(["v s 2 2", "d s 1 2", "u s 3 1"])
    assert verdict.shared["s"].done == {1, 3}
    assert verdict.late == 1
    assert verdict.counts() == {1: 1, 2: 2}


def test_a_commit_that_is_lost_or_falls_back_is_named() -> None:
    verdict = judged(*READ)
    verdict.compare({("g", 0): 8}, {("g", 0): 5})
    verdict.compare({("g", 0): 8}, {})
    assert [each.rpartition("now ")[2] for each in verdict.wrong] == ["5", "None"]


def test_records_that_are_skipped_or_read_twice_are_counted() -> None:
    verdict = judged("r g 0 0 5", "r g 0 3 7", "r g 0 9 10", "c g 0 10", "u g TimeoutException")
    assert verdict.twice(["g"]) == 2
    [missing] = verdict.unread(["g"], {0: 10})
    assert "skipped 2" in missing
    assert verdict.refused_commits == {"TimeoutException": 1}
