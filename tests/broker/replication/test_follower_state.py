"""When a follower counts as caught up: the words of `replica.lag.time.max.ms`, case by case."""

from kraft_wire.broker.replication.follower_state import NEVER_MS, FollowerState

LAG_MAX_MS = 30_000


def fetched(follower: FollowerState, offset: int, leader_end: int, now_ms: int) -> None:
    follower.fetched(offset, 0, leader_end, 12, now_ms)


def test_a_fetch_from_the_leaders_end_is_caught_up_now() -> None:
    follower = FollowerState(2)
    fetched(follower, 5, 5, 1_000)
    assert follower.caught_up_ms == 1_000
    assert (follower.log_end_offset, follower.broker_epoch) == (5, 12)


def test_a_fetch_from_where_the_leader_ended_last_time_is_caught_up_since_then() -> None:
    follower = FollowerState(2)
    fetched(follower, 0, 5, 1_000)
    assert follower.caught_up_ms == NEVER_MS
    fetched(follower, 5, 9, 2_000)
    assert follower.caught_up_ms == 1_000
    fetched(follower, 9, 14, 3_000)
    assert follower.caught_up_ms == 2_000


def test_a_fetch_from_further_back_moves_nothing() -> None:
    follower = FollowerState(2)
    fetched(follower, 0, 5, 1_000)
    fetched(follower, 4, 9, 2_000)
    assert follower.caught_up_ms == NEVER_MS
    fetched(follower, 8, 9, 3_000)
    assert follower.caught_up_ms == NEVER_MS
    fetched(follower, 9, 9, 4_000)
    assert follower.caught_up_ms == 4_000


def test_who_has_everything_is_caught_up_however_long_ago_it_fetched() -> None:
    follower = FollowerState(2)
    fetched(follower, 5, 5, 1_000)
    assert follower.is_caught_up(5, 1_000_000, LAG_MAX_MS)
    assert follower.is_caught_up(6, 31_000, LAG_MAX_MS)
    assert not follower.is_caught_up(6, 31_001, LAG_MAX_MS)


def test_who_was_never_heard_of_lags_from_the_first_moment_on() -> None:
    assert not FollowerState(2).is_caught_up(0, 0, LAG_MAX_MS)
    member = FollowerState(2, caught_up_ms=0)
    assert member.is_caught_up(0, 30_000, LAG_MAX_MS)
    assert not member.is_caught_up(0, 30_001, LAG_MAX_MS)
