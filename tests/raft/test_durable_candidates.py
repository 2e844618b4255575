"""A candidate names only records that survive loss of power.

A voter repeats its vote to the same candidate without another look at the candidate's log. If that
log was shorter after a restart, the candidate could win without a record that is committed.
"""

from kraft_wire.raft.events import LogFlushed, RecordsAppended, ResponseReceived, TimerFired
from kraft_wire.raft.roles import Candidate
from kraft_wire.wire.generated.fetch import FetchRequest
from kraft_wire.wire.generated.vote import VoteRequest
from tests.kips.test_kip_595 import fetch_response, fetching
from tests.raft.small import TIMING, Small, vote_response


def candidate_with_a_slow_disk() -> Small:
    """Replica 1 stands in epoch 4; record 8 is in its log, and not on its disk."""
    small = fetching()
    batch = small.shelf.new_batch(8, 3, (b"x",))
    sent = small.sent(FetchRequest)[-1]
    answer = fetch_response(records=batch.bytes, high_watermark=-1)
    small.replica.step(ResponseReceived(sent.request_id, answer), small.now_ms)
    small.disk.log.append(batch)
    small.replica.step(RecordsAppended(), small.now_ms)
    small.pass_ms(TIMING.fetch_timeout_ms)
    asked = small.sent(VoteRequest)[0]
    small.answer(asked, vote_response(small.quorum.epoch, granted=True))
    assert isinstance(small.role, Candidate)
    return small


def test_candidate_asks_for_no_vote_while_a_record_is_not_on_its_disk() -> None:
    small = candidate_with_a_slow_disk()
    assert small.sent(VoteRequest) == []
    small.step(TimerFired())
    assert small.sent(VoteRequest) == []


def test_candidate_asks_for_votes_as_soon_as_its_log_is_on_its_disk() -> None:
    small = candidate_with_a_slow_disk()
    small.disk.log.flush()
    small.step(LogFlushed())
    asked = [each.request.topics[0].partitions[0] for each in small.sent(VoteRequest)]
    assert [(one.last_offset, one.last_offset_epoch, one.pre_vote) for one in asked] == [
        (9, 3, False),
        (9, 3, False),
    ]
