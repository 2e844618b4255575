"""Raising kraft.version: a refusal is the answer, and appends nothing."""

import pytest

from kraft_wire.raft.effects import VersionUpgradeAnswered
from kraft_wire.raft.events import VersionUpgradeRequested
from kraft_wire.wire.generated.error_code import ErrorCode as E
from tests.raft.small import Small


def upgraded(small: Small, level: int, epoch: int, *, validate_only: bool = False) -> E:
    """Ask for a level; return the answer. Nothing is appended unless it is a level to come."""
    end = small.disk.log.log_end_offset
    event = VersionUpgradeRequested("ticket", level, epoch, validate_only)
    effects = small.step(event)
    (answer,) = [each for each in effects if isinstance(each, VersionUpgradeAnswered)]
    assert answer.ticket == "ticket"
    assert small.disk.log.log_end_offset == end
    assert small.quorum.voters.kraft_version == 0
    return answer.error_code


@pytest.mark.parametrize(
    ("level", "epoch_behind", "error"),
    [
        (1, 1, E.NOT_LEADER_OR_FOLLOWER),
        (2, 0, E.INVALID_UPDATE_VERSION),
        (0, 0, E.NONE),
        (1, 0, E.INVALID_UPDATE_VERSION),
    ],
)
def test_leader_refuses_what_cannot_be(level: int, epoch_behind: int, error: E) -> None:
    """The last one: the other voter has not said that it knows the level."""
    small = Small((1, 2)).established()
    assert upgraded(small, level, small.quorum.epoch - epoch_behind) == error


def test_leader_without_a_high_watermark_is_not_ready() -> None:
    small = Small((1, 2)).leader()
    assert upgraded(small, 1, small.quorum.epoch) == E.REQUEST_TIMED_OUT


def test_follower_upgrades_nothing() -> None:
    small = Small((1, 2)).follower()
    assert upgraded(small, 1, small.quorum.epoch) == E.NOT_LEADER_OR_FOLLOWER
