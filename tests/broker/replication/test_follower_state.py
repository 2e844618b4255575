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


def test_all_that_a_fetch_tells_is_noted() -> None:
    follower = FollowerState(2)
    unknown = (-1, -1, -1, NEVER_MS, NEVER_MS, None, False)
    assert state(follower) == unknown
    follower.fetched(4, 3, 9, 12, 1_000)
    assert state(follower) == (4, 3, 9, 1_000, NEVER_MS, 12, False)
    follower.fetched(3, 2, 8, -1, 2_000)
    assert state(follower) == (3, 2, 9, 2_000, NEVER_MS, -1, False), "the end is the largest"
    follower.fetched(8, 2, 9, 13, 2_500)
    assert state(follower) == (8, 2, 9, 2_500, NEVER_MS, 13, False)
    follower.fetched(9, 2, 11, 13, 3_000)
    assert state(follower) == (9, 2, 11, 3_000, 2_500, 13, False)
    follower.fetched(12, 2, 11, 13, 2_000)
    assert state(follower) == (12, 2, 11, 2_000, 2_500, 13, False), "no time goes back"


def test_member_of_the_isr_that_asks_again_still_has_everything() -> None:
    follower = FollowerState(2)
    follower.fetched(5, 0, 5, 12, 1_000)
    assert not follower.still_has_everything(12, 2_000), "it may be let into the ISR"
    follower.is_in_isr = True
    assert not follower.still_has_everything(13, 2_000), "another life"
    assert state(follower) == (5, 0, 5, 1_000, 1_000, 12, True)
    assert follower.still_has_everything(12, 2_000)
    assert state(follower) == (5, 0, 5, 2_000, 2_000, 12, True)


def state(follower: FollowerState) -> tuple[object, ...]:
    return (
        follower.log_end_offset,
        follower.log_start_offset,
        follower.leader_end_at_fetch,
        follower.fetched_ms,
        follower.caught_up_ms,
        follower.broker_epoch,
        follower.is_in_isr,
    )
