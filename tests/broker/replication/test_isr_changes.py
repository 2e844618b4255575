"""The ISR shrinks and grows by AlterPartition, error by error: KIP-497, KIP-841, KIP-903."""

import pytest

from kraft_wire.model import Uuid
from kraft_wire.wire.generated.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerState,
    ResponsePartitionData,
    ResponseTopicData,
)
from kraft_wire.wire.generated.error_code import ErrorCode as E
from kraft_wire.wire.generated.fetch import EpochEndOffset
from tests.broker.replication.leading import LAG_MAX_MS, Leading
from tests.broker.small_broker import broker_image, id_of, partition_image

TWO = partition_image(0, replicas=(1, 2))
THREE = partition_image(0, replicas=(1, 2, 3))
ALONE = partition_image(0, replicas=(1, 2), isr=(1,))
CHECK_MS = LAG_MAX_MS // 2


def pass_lag(leading: Leading) -> None:
    """Let so much time pass that whoever is silent has lagged for too long."""
    for _ in range(3):
        leading.pass_time(CHECK_MS)


def isr_of(leading: Leading) -> tuple[int, ...]:
    leadership = leading.partition().leadership
    assert leadership is not None
    return leadership.isr


# -- leaving -------------------------------------------------------------------------------------


def test_a_silent_follower_is_left_out_and_what_waited_for_it_is_committed() -> None:
    leading = Leading(TWO)
    waiting = leading.produce(timeout_ms=1 << 30)
    leading.pass_time(LAG_MAX_MS)
    assert leading.asked == []
    leading.pass_time(CHECK_MS)
    (request,) = leading.asked
    assert (request.broker_id, request.broker_epoch) == (1, 11)
    assert request.topics[0].topic_id == id_of("t")
    (asked,) = request.topics[0].partitions
    assert (asked.leader_epoch, asked.partition_epoch, asked.leader_recovery_state) == (0, 0, 0)
    assert leading.isrs_asked() == [{0: [(1, 11)]}]
    assert (waiting.is_parked, leading.high_watermark) == (True, 0)
    leading.answer()
    assert (waiting.produced.error_code, leading.high_watermark) == (E.NONE, 1)
    assert isr_of(leading) == (1,)


def test_until_the_controller_has_agreed_the_one_who_is_to_leave_still_counts() -> None:
    leading = Leading(THREE)
    for _ in range(2):
        leading.produce()
    leading.pass_time(CHECK_MS)
    leading.fetch(2, replica=2)
    pass_lag(leading)
    assert leading.isrs_asked() == [{0: [(1, 11), (2, 12)]}]
    assert leading.high_watermark == 0
    leading.fetch(1, replica=3)
    assert leading.high_watermark == 1


def test_who_has_everything_stays_however_long_it_is_silent() -> None:
    leading = Leading(TWO)
    leading.produce()
    leading.fetch(1)
    pass_lag(leading)
    assert leading.asked == []


def test_who_is_always_a_little_behind_stays() -> None:
    leading = Leading(TWO)
    end = 0
    for _ in range(10):
        leading.produce(acks=1)
        leading.fetch(end)
        end += 1
        leading.produce(acks=1)
        leading.pass_time(CHECK_MS)
        assert leading.asked == []
        leading.fetch(end)
        end += 1


def test_a_follower_that_falls_ever_further_behind_is_left_out() -> None:
    leading = Leading(TWO)
    for offset in range(4):
        leading.produce(10, acks=1)
        leading.fetch(offset)
        leading.pass_time(CHECK_MS)
    assert leading.isrs_asked() == [{0: [(1, 11)]}]


def test_partitions_share_a_request_and_one_request_is_under_way() -> None:
    leading = Leading(TWO, partition_image(1, replicas=(1, 3)))
    leading.produce(acks=1)
    leading.produce(acks=1, number=1)
    pass_lag(leading)
    assert leading.isrs_asked() == [{0: [(1, 11)], 1: [(1, 11)]}]
    pass_lag(leading)
    assert len(leading.asked) == 1


# -- lines of followers that lag -----------------------------------------------------------------


def test_follower_that_lags_is_logged_once_it_does_for_longer_than_the_limit() -> None:
    for early_ms, is_logged in ((0, False), (1, True)):
        leading = Leading(TWO)
        leading.produce(3, acks=1)
        leading.pass_time(CHECK_MS + early_ms)
        leading.pass_time(CHECK_MS)
        assert [name for name, _ in leading.lines] == ["follower_out_of_sync"] * is_logged
    leading.pass_time(CHECK_MS)
    assert len(leading.lines) == 1, "the change is requested already"
    leading.answer()
    pass_lag(leading)
    assert len(leading.lines) == 1, "it is not in the ISR"


def test_line_of_a_follower_has_its_own_state_and_that_of_the_log() -> None:
    """One lags more than the other; the third has everything."""
    leading = Leading(partition_image(0, replicas=(1, 2, 3, 4)))
    leading.produce(acks=1)
    leading.fetch(1, replica=3)
    leading.pass_time(1_000)
    leading.produce(acks=1)
    leading.fetch(2, replica=2)
    leading.produce(3, acks=1)
    leading.fetch(5, replica=4)
    assert leading.high_watermark == 1
    leading.pass_time(2 * LAG_MAX_MS)
    common = {
        "partition": ("t", 0),
        "leader_log_end_offset": 5,
        "high_watermark": 1,
        "lag_max_ms": LAG_MAX_MS,
    }
    own = [
        {"follower": 2, "log_end_offset": 2, "caught_up_ms_ago": 2 * LAG_MAX_MS},
        {"follower": 3, "log_end_offset": 1, "caught_up_ms_ago": 2 * LAG_MAX_MS + 1_000},
    ]
    assert leading.lines == [("follower_out_of_sync", common | each) for each in own]
    assert leading.isrs_asked() == [{0: [(1, 11), (4, 14)]}]


def test_line_of_a_follower_shows_what_is_not_known_as_a_dash() -> None:
    """2 fetched nothing since this broker leads, 3 joined by metadata, 4 is no replica any more."""
    leading = Leading(partition_image(0, replicas=(1, 2, 3), isr=(1, 2)))
    leading.produce(acks=1)
    leading.change(isr=(1, 2, 3, 4))
    leading.pass_time(LAG_MAX_MS + 1)
    found = [
        (fields["follower"], fields["log_end_offset"], fields["caught_up_ms_ago"])
        for _, fields in leading.lines
    ]
    assert found == [(2, "-", LAG_MAX_MS + 1), (3, "-", "-"), (4, "-", "-")]


def test_follower_that_lags_everywhere_is_twenty_lines_and_a_count() -> None:
    leading = Leading(*(partition_image(number, replicas=(1, 2)) for number in range(23)))
    for number in range(23):
        leading.produce(acks=1, number=number)
    pass_lag(leading)
    assert [name for name, _ in leading.lines[:20]] == ["follower_out_of_sync"] * 20
    assert leading.lines[20:] == [("lines_omitted", {"lines": "follower_out_of_sync", "count": 3})]


# -- joining -------------------------------------------------------------------------------------


def test_a_follower_with_all_that_is_committed_joins_and_counts_from_the_request_on() -> None:
    leading = Leading(ALONE, written={0: 5})
    leading.fetch(4)
    assert leading.asked == []
    leading.fetch(5)
    assert leading.isrs_asked() == [{0: [(1, 11), (2, 12)]}]
    waiting = leading.produce()
    assert waiting.is_parked
    leading.answer()
    assert isr_of(leading) == (1, 2)
    assert waiting.is_parked
    leading.fetch(6)
    assert not waiting.is_parked


def test_nobody_joins_below_the_beginning_of_the_leader_epoch() -> None:
    """An earlier leader may have committed all of that (KAFKA-7128)."""
    small = partition_image(0, replicas=(1, 2), isr=(1,))
    leading = Leading(
        small, written={0: 5}, high_watermarks={0: 1}, config={"min.insync.replicas": "2"}
    )
    assert leading.high_watermark == 1
    leading.fetch(4)
    assert leading.asked == []
    leading.fetch(5)
    assert len(leading.asked) == 1


@pytest.mark.parametrize("why", ["fenced", "stopping", "another life", "unknown"])
def test_a_broker_that_may_not_be_in_an_isr_is_not_asked_for(why: str) -> None:
    leading = Leading(ALONE)
    broker = broker_image(2, fenced=why == "fenced")
    if why == "stopping":
        object.__setattr__(broker, "in_controlled_shutdown", True)
    leading.brokers[2] = broker
    leading.publish()
    if why == "unknown":
        leading.fetch(0, broker_epoch=99)
    elif why == "another life":
        assert leading.fetch(0, broker_epoch=5).fetched.error_code == E.NOT_LEADER_OR_FOLLOWER
    else:
        leading.fetch(0)
    assert leading.asked == []


def test_a_follower_that_tells_no_epoch_may_join() -> None:
    leading = Leading(ALONE)
    leading.fetch(0, version=14)
    assert leading.isrs_asked() == [{0: [(1, 11), (2, -1)]}]


def test_of_two_who_may_join_the_second_waits_for_the_first() -> None:
    leading = Leading(partition_image(0, replicas=(1, 2, 3), isr=(1,)))
    leading.fetch(0, replica=3)
    leading.fetch(0, replica=2)
    assert leading.isrs_asked() == [{0: [(1, 11), (3, 13)]}]
    leading.answer()
    leading.fetch(0, replica=2)
    assert leading.isrs_asked() == [{0: [(1, 11), (3, 13), (2, 12)]}]


def test_a_member_that_has_not_fetched_here_yet_is_named_without_its_epoch() -> None:
    leading = Leading(partition_image(0, replicas=(1, 2, 3), isr=(1, 2)))
    leading.fetch(0, replica=3)
    assert leading.isrs_asked() == [{0: [(1, 11), (2, -1), (3, 13)]}]


# -- answers -------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [E.INELIGIBLE_REPLICA, E.OPERATION_NOT_ATTEMPTED])
def test_what_the_controller_has_not_done_is_over(error: E) -> None:
    leading = Leading(ALONE)
    leading.fetch(0)
    leading.answer(error)
    leadership = leading.partition().leadership
    assert leadership is not None
    assert leadership.maximal_isr == (1,)
    leading.pass_time(1_000)
    assert leading.asked == []


@pytest.mark.parametrize(
    "error",
    [
        E.FENCED_LEADER_EPOCH,
        E.INVALID_UPDATE_VERSION,
        E.INVALID_REQUEST,
        E.UNKNOWN_TOPIC_ID,
        E.UNKNOWN_TOPIC_OR_PARTITION,
        E.NEW_LEADER_ELECTED,
    ],
)
def test_where_the_controller_knows_more_the_larger_isr_counts_until_the_metadata_come(
    error: E,
) -> None:
    leading = Leading(ALONE)
    leading.fetch(0)
    leading.answer(error)
    waiting = leading.produce(timeout_ms=1 << 30)
    leading.pass_time(1_000)
    assert leading.asked == []
    assert waiting.is_parked
    leading.brokers[2] = broker_image(2, fenced=True)
    leading.publish()
    leading.produce(acks=1)
    assert (waiting.is_parked, leading.high_watermark) == (True, 0)
    leading.change(partition_epoch=7)
    assert not waiting.is_parked


@pytest.mark.parametrize("error", [E.NOT_CONTROLLER, E.UNKNOWN_SERVER_ERROR, E.REQUEST_TIMED_OUT])
@pytest.mark.parametrize("is_top_level", [False, True])
def test_what_was_not_decided_is_asked_again(error: E, is_top_level: bool) -> None:
    leading = Leading(ALONE)
    leading.fetch(0)
    first = leading.isrs_asked()
    leading.answer(top_level=error) if is_top_level else leading.answer(error)
    assert leading.asked == []
    leading.pass_time(50)
    assert leading.isrs_asked() == first
    leading.answer()
    assert isr_of(leading) == (1, 2)


def test_a_stale_broker_epoch_is_asked_again_with_the_new_one() -> None:
    leading = Leading(ALONE)
    leading.fetch(0)
    leading.answer(top_level=E.STALE_BROKER_EPOCH)
    leading.broker_epoch = 111
    leading.pass_time(50)
    assert leading.asked[0].broker_epoch == 111
    assert leading.isrs_asked() == [{0: [(1, 11), (2, 12)]}]


def test_a_process_whose_replacement_is_registered_asks_for_nothing_in_its_name() -> None:
    """KIP-903: its ISR would be taken for that of the other life."""
    leading = Leading(TWO)
    leading.produce(acks=1)
    object.__setattr__(leading.brokers[1], "broker_epoch", 111)
    leading.publish()
    pass_lag(leading)
    assert leading.asked[0].broker_epoch == 11
    assert leading.isrs_asked() == [{0: [(1, 11)]}]
    leading.answer(top_level=E.STALE_BROKER_EPOCH)
    leading.pass_time(50)
    assert leading.asked[0].broker_epoch == 11


def test_a_request_that_is_never_answered_is_asked_again() -> None:
    leading = Leading(ALONE)
    leading.fetch(0)
    leading.pass_time(120_000)
    leading.pass_time(50)
    assert len(leading.asked) == 2
    leading.controller.asked.pop()
    leading.answer()
    assert isr_of(leading) == (1,)  # that was the answer to the first


def test_metadata_that_tell_nothing_new_leave_a_change_under_way_alone() -> None:
    leading = Leading(ALONE, partition_image(1))
    leading.fetch(0)
    leading.change(1, leader_epoch=1)
    waiting = leading.produce()
    assert waiting.is_parked
    leading.change(0, partition_epoch=0)
    assert waiting.is_parked
    leading.answer()
    assert isr_of(leading) == (1, 2)


def test_newer_metadata_overtake_an_answer() -> None:
    leading = Leading(ALONE)
    leading.fetch(0)
    leading.change(isr=(1,), partition_epoch=5)
    leading.answer()
    assert isr_of(leading) == (1,)
    leading.fetch(0)
    assert leading.asked[0].topics[0].partitions[0].partition_epoch == 5


def test_older_metadata_do_not_take_an_answer_back() -> None:
    leading = Leading(ALONE)
    leading.fetch(0)
    leading.answer()
    leading.change(isr=(1,), partition_epoch=0)
    assert isr_of(leading) == (1, 2)
    leading.change(isr=(1, 2), partition_epoch=1)
    assert isr_of(leading) == (1, 2)


def test_a_change_that_waits_is_dropped_with_the_leadership() -> None:
    leading = Leading(ALONE, partition_image(1, replicas=(1, 3), isr=(1,)))
    leading.fetch(0)
    leading.fetch(0, replica=3, number=1)
    assert len(leading.asked) == 1
    leading.change(1, leader=3, leader_epoch=1)
    leading.answer()
    assert leading.asked == []


def test_a_change_found_meanwhile_leaves_with_the_answer() -> None:
    leading = Leading(ALONE, partition_image(1, replicas=(1, 3), isr=(1,)))
    leading.fetch(0)
    leading.fetch(0, replica=3, number=1)
    leading.answer()
    assert leading.isrs_asked() == [{1: [(1, 11), (3, 13)]}]


def test_an_answer_of_nonsense_changes_nothing() -> None:
    """A controller's mistakes are data."""
    leading = Leading(ALONE)
    leading.fetch(0)
    request = leading.asked[0]
    request.topics[0].partitions[0].new_isr_with_epochs = []
    leading.answer()
    assert isr_of(leading) == (1,)


@pytest.mark.parametrize("members", [(1, 1), (1, 2, 1), (2,), (1, 4)])
def test_an_isr_that_cannot_be_is_not_taken_from_an_answer(members: tuple[int, ...]) -> None:
    """Least of all one that names a member twice: min.insync.replicas would count it twice."""
    leading = Leading(ALONE)
    leading.fetch(0)
    request = leading.asked[0]
    named = [BrokerState(broker_id=each) for each in members]
    request.topics[0].partitions[0].new_isr_with_epochs = named
    leading.answer()
    assert isr_of(leading) == (1,)


# -- forged and stale fetches --------------------------------------------------------------------


def test_who_is_no_replica_is_told_to_ask_again_and_moves_nothing() -> None:
    leading = Leading(TWO)
    waiting = leading.produce()
    assert leading.fetch(1, replica=4).fetched.error_code == E.UNKNOWN_LEADER_EPOCH
    old = leading.fetch(1, replica=4, leader_epoch=-1)
    assert old.fetched.error_code == E.NOT_LEADER_OR_FOLLOWER
    assert (waiting.is_parked, leading.high_watermark) == (True, 0)


def test_a_fetch_of_a_former_life_or_of_a_broker_that_is_not_registered_moves_nothing() -> None:
    leading = Leading(TWO)
    waiting = leading.produce()
    assert leading.fetch(1, broker_epoch=11).fetched.error_code == E.NOT_LEADER_OR_FOLLOWER
    del leading.brokers[2]
    leading.publish()
    for version in (14, 18):
        refused = leading.fetch(1, version=version)
        assert refused.fetched.error_code == E.NOT_LEADER_OR_FOLLOWER
    assert (waiting.is_parked, leading.high_watermark) == (True, 0)


@pytest.mark.parametrize(
    ("leader_epoch", "error"),
    [(2, E.FENCED_LEADER_EPOCH), (4, E.UNKNOWN_LEADER_EPOCH), (3, E.NONE), (-1, E.NONE)],
)
def test_a_fetch_under_another_leader_epoch_moves_nothing(leader_epoch: int, error: E) -> None:
    leading = Leading(partition_image(0, replicas=(1, 2), leader_epoch=3))
    leading.produce()
    assert leading.fetch(1, leader_epoch=leader_epoch).fetched.error_code == error
    assert leading.high_watermark == (1 if error is E.NONE else 0)


def test_a_fetch_beyond_the_end_or_that_diverges_moves_nothing() -> None:
    leading = Leading(partition_image(0, replicas=(1, 2), leader_epoch=3), written={0: 5})
    assert leading.fetch(6).fetched.error_code == E.OFFSET_OUT_OF_RANGE
    leading.produce(acks=1)
    diverging = leading.fetch(6, last_fetched_epoch=0).fetched
    assert diverging.diverging_epoch is not None
    assert (diverging.diverging_epoch.epoch, diverging.diverging_epoch.end_offset) == (0, 5)
    assert leading.high_watermark == 0
    leading.fetch(5, last_fetched_epoch=0)
    assert leading.high_watermark == 5


@pytest.mark.parametrize("leader_epoch", [-1, 3])
@pytest.mark.parametrize("replica", [-1, 2])
def test_the_epoch_of_the_last_record_alone_asks_for_a_look_at_divergence(
    leader_epoch: int, replica: int
) -> None:
    """KIP-595: consumers and followers that do not know the leader's epoch are compared too."""
    leading = Leading(partition_image(0, replicas=(1, 2), leader_epoch=3), written={0: 5})
    leading.produce(acks=1)
    found = [
        leading.fetch(
            6, replica=replica, leader_epoch=leader_epoch, last_fetched_epoch=last, rack="r"
        ).fetched.diverging_epoch
        for last in (0, -1)
    ]
    assert found == [EpochEndOffset(epoch=0, end_offset=5), None]


def test_broker_0_is_a_follower_as_any_other() -> None:
    """Ids of brokers begin with 0, and clients that are none say -1."""
    leading = Leading(partition_image(0, replicas=(1, 0)))
    leading.brokers[0] = broker_image(0)
    leading.publish()
    leading.produce(acks=1)
    found = leading.fetch(0, replica=0).fetched
    assert found.records, "it reads beyond the high watermark"
    assert (found.high_watermark, leading.high_watermark) == (0, 0)
    leading.fetch(1, replica=0)
    assert leading.high_watermark == 1


def test_answer_about_a_partition_that_nobody_asked_about_is_passed_over() -> None:
    leading = Leading(TWO)
    leading.produce()
    pass_lag(leading)
    tag, request = leading.controller.asked[0]
    assert isinstance(request, AlterPartitionRequest)
    strangers = [
        ResponseTopicData(
            topic_id=topic_id,
            partitions=[ResponsePartitionData(partition_index=7, leader_id=1, isr=[1])],
        )
        for topic_id in (id_of("t"), Uuid(bytes(15) + b"\x63"))
    ]
    answer = AlterPartitionResponse(topics=strangers)
    leading.broker.controller_answered(tag, answer, leading.now_ms)
    leading.controller.asked.clear()
    assert isr_of(leading) == (1, 2)
    pass_lag(leading)
    assert leading.isrs_asked() == [{0: [(1, 11)]}], "what was not answered is asked for again"
    leading.answer()
    assert isr_of(leading) == (1,)
