"""A partition of others: who has no replica says so, and names the leader (KIP-951).

Kafka's list of errors says of NOT_LEADER_OR_FOLLOWER that "the broker is not the current leader",
or, where any replica would do, "is not a replica of the topic partition".
"""

from kraft_wire.wire.generated.error_code import ErrorCode as E
from kraft_wire.wire.generated.fetch import FetchResponse
from tests.broker.replication.leading import TOPIC, Leading
from tests.broker.small_broker import partition_image

FAR = partition_image(0, leader=2, replicas=(2, 3), leader_epoch=4)


def test_a_fetch_of_a_partition_of_others_is_answered_at_once_with_its_leader() -> None:
    leading = Leading(FAR)
    waiting = leading.fetch(0, replica=-1, max_wait_ms=500)
    fetched = waiting.fetched
    assert (fetched.error_code, fetched.high_watermark) == (E.NOT_LEADER_OR_FOLLOWER, -1)
    assert fetched.current_leader is not None
    assert (fetched.current_leader.leader_id, fetched.current_leader.leader_epoch) == (2, 4)
    assert isinstance(waiting.answer, FetchResponse)
    assert [each.node_id for each in waiting.answer.node_endpoints] == [2]


def test_a_produce_to_a_partition_of_others_is_answered_with_its_leader() -> None:
    produced = Leading(FAR).produce().produced
    assert produced.error_code == E.NOT_LEADER_OR_FOLLOWER
    assert produced.current_leader is not None
    assert (produced.current_leader.leader_id, produced.current_leader.leader_epoch) == (2, 4)


def test_offsets_of_a_partition_of_others_are_asked_of_the_leader() -> None:
    assert Leading(FAR).list_offset(-1).error_code == E.NOT_LEADER_OR_FOLLOWER


def test_what_waits_for_a_partition_that_was_given_to_others_is_told_who_leads_it() -> None:
    leading = Leading(partition_image(0, replicas=(1, 2)))
    produced, consumer = leading.produce(), leading.fetch(0, replica=-1, max_wait_ms=500)
    assert produced.is_parked
    assert consumer.is_parked
    leading.change(replicas=(2, 3), isr=(2, 3), leader=2, leader_epoch=1)
    assert (TOPIC, 0) not in leading.broker.partitions
    for answer in (produced.produced, consumer.fetched):
        assert answer.error_code == E.NOT_LEADER_OR_FOLLOWER
        assert answer.current_leader is not None
        assert answer.current_leader.leader_id == 2


def test_what_nobody_has_is_unknown() -> None:
    leading = Leading(FAR)
    assert leading.produce(number=7).produced.error_code == E.UNKNOWN_TOPIC_OR_PARTITION
    unknown = leading.fetch(0, replica=-1, number=7, leader_epoch=-1).fetched
    assert unknown.error_code == E.UNKNOWN_TOPIC_OR_PARTITION


def test_a_produce_parked_on_a_topic_that_is_deleted_is_told_that_it_is_unknown() -> None:
    leading = Leading(partition_image(0, replicas=(1, 2)))
    produced = leading.produce()
    assert produced.is_parked
    leading.partitions = {}
    leading.publish()
    assert produced.produced.error_code == E.UNKNOWN_TOPIC_OR_PARTITION
