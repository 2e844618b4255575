"""DescribeQuorum to a leader that has committed nothing yet, and which observers it still knows."""

import pytest

from kraft_wire.model import Uuid
from kraft_wire.raft.events import AppendRequested
from kraft_wire.raft.timing import RaftTiming
from kraft_wire.wire.generated.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    PartitionData,
    TopicData,
)
from tests.raft.small import TOPIC, Small, fetch_request


def described(small: Small) -> DescribeQuorumResponse:
    topics = [TopicData(topic_name=TOPIC, partitions=[PartitionData(partition_index=0)])]
    response = small.reply(DescribeQuorumRequest(topics=topics))
    assert isinstance(response, DescribeQuorumResponse)
    return response


def test_high_watermark_that_is_not_known_is_minus_1() -> None:
    leading = Small((1, 5), (2, 3)).leader()
    (partition,) = described(leading).topics[0].partitions
    assert (partition.leader_id, partition.high_watermark) == (1, -1)
    ends = {each.replica_id: each.log_end_offset for each in partition.current_voters}
    assert ends[1] == leading.disk.log.log_end_offset, "also of what is not committed"
    established = Small((1, 5), (2, 3)).established()
    (partition,) = described(established).topics[0].partitions
    assert partition.high_watermark == established.disk.log.log_end_offset


def test_a_voter_on_a_new_disk_is_an_observer_until_it_is_added() -> None:
    """KIP-853: a replica is its id and its directory."""
    leading = Small((1, 5), (2, 3), is_dynamic=True).established()
    log = leading.disk.log
    request = fetch_request(leading.quorum.epoch, log.log_end_offset, log.last_epoch, node_id=2)
    request.topics[0].partitions[0].replica_directory_id = Uuid(b"a new directory!")
    leading.ask(request)
    (partition,) = described(leading).topics[0].partitions
    found = [(each.replica_id, each.replica_directory_id) for each in partition.observers]
    assert found == [(2, b"a new directory!")]


def test_a_leader_shows_its_own_records_before_they_are_on_its_disk() -> None:
    """`KafkaRaftClient.flushLeaderLog`: the end is noted first, so that fetches see it sooner."""
    leading = Small((1, 5), (2, 3)).established()
    log = leading.disk.log
    flushed = log.flushed_end_offset
    log.append(leading.shelf.new_batch(log.log_end_offset, leading.quorum.epoch, (b"", b"")))
    (partition,) = described(leading).topics[0].partitions
    ends = {each.replica_id: each.log_end_offset for each in partition.current_voters}
    assert (ends[1], partition.high_watermark, log.flushed_end_offset) == (
        flushed + 2,
        flushed,
        flushed,
    )


@pytest.mark.parametrize(("node_id", "observers"), [(0, [0]), (9, [9]), (-1, [])])
def test_whoever_fetches_under_an_id_is_an_observer(node_id: int, observers: list[int]) -> None:
    """Ids of nodes begin with 0; a client that is none says -1."""
    leading = Small((1, 5), (2, 3)).established()
    log = leading.disk.log
    leading.ask(
        fetch_request(leading.quorum.epoch, log.log_end_offset, log.last_epoch, node_id=node_id)
    )
    (partition,) = described(leading).topics[0].partitions
    assert [each.replica_id for each in partition.observers] == observers


def test_an_observer_that_is_silent_for_five_minutes_is_described_no_more() -> None:
    """`LeaderState`: OBSERVER_SESSION_TIMEOUT_MS; one that has fetched meanwhile stays."""
    leading = Small((1, 5), (2, 3), is_dynamic=True).established()
    log, began_ms = leading.disk.log, leading.now_ms
    forgotten_ms = RaftTiming().observer_forgotten_ms

    def fetches(*nodes: int) -> None:
        epoch = leading.quorum.epoch
        for each in nodes:
            leading.ask(fetch_request(epoch, log.log_end_offset, log.last_epoch, node_id=each))

    def observers() -> list[int]:
        (partition,) = described(leading).topics[0].partitions
        return [each.replica_id for each in partition.observers]

    fetches(4, 5)
    while leading.now_ms + 100 < began_ms + forgotten_ms:
        leading.pass_ms(100)
        fetches(2, 3)
    assert observers() == [4, 5]
    fetches(5)
    leading.pass_ms(100)
    fetches(2, 3)
    leading.pass_ms(100)
    assert observers() == [5]


def test_a_replica_behind_was_last_caught_up_when_it_had_what_the_leader_had_then() -> None:
    """`LeaderState.updateFollowerState`: the time of the fetch before, or none at all."""
    leading = Small((1, 5), (2, 3)).established()
    log = leading.disk.log

    def fetches_to(end: int) -> None:
        request = fetch_request(leading.quorum.epoch, end, log.last_epoch, node_id=9)
        request.max_wait_ms = 0
        leading.ask(request)
        leading.step(AppendRequested("more", (b"",), leading.quorum.epoch))

    def caught_up() -> list[int]:
        """The time of day, which is 0 now; -1: never."""
        (partition,) = described(leading).topics[0].partitions
        return [each.last_caught_up_timestamp for each in partition.observers]

    fetches_to(log.log_end_offset - 1)
    assert caught_up() == [-1]
    leading.now_ms += 10
    fetches_to(log.log_end_offset - 1)
    assert caught_up() == [-10], "it has what the leader had at the fetch before"
    leading.now_ms += 10
    fetches_to(log.log_end_offset - 2)
    assert caught_up() == [-20]
    leading.now_ms += 10
    fetches_to(log.log_end_offset)
    assert caught_up() == [0]
