"""A broker with more partitions than one batch of the metadata log may have changes of."""

from typing import Any

import pytest

from kraft_wire.controller.refusal import BATCH_RECORDS_MAX
from kraft_wire.metadata.image import NO_LEADER
from kraft_wire.model import Offset
from kraft_wire.node.controller import host
from kraft_wire.node.quorum.raft_disk import PendingAppend
from kraft_wire.node.quorum.raft_io import RaftIo
from kraft_wire.wire.generated.broker_heartbeat import BrokerHeartbeatRequest
from kraft_wire.wire.generated.create_topics import CreatableTopic, CreateTopicsRequest
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.unregister_broker import UnregisterBrokerRequest
from kraft_wire.wire.message import Message
from tests.controller.broker_cluster import registration
from tests.node.quorum import NodeQuorum

PER_TOPIC = 6_000
BROKER = 9


def test_broker_of_many_partitions_is_fenced_and_leads_them_all_again() -> None:
    quorum = NodeQuorum((1,))
    quorum.elect()
    node = quorum.members[1].running

    def asked(request: Message) -> Message:
        answer = quorum.ask(1, request, request.MAX_VERSION)
        quorum.until(lambda: answer.response is not None)
        assert isinstance(answer.response, Message)
        return answer.response

    registered = asked(registration(BROKER, cluster_id=node.cluster_id))
    heartbeat = BrokerHeartbeatRequest(
        broker_id=BROKER,
        broker_epoch=getattr(registered, "broker_epoch", -1),
        current_metadata_offset=1 << 40,
    )
    asked(heartbeat)
    for name in ("a", "b"):
        topic = CreatableTopic(name=name, num_partitions=PER_TOPIC, replication_factor=1)
        answer = asked(CreateTopicsRequest(topics=[topic], timeout_ms=10_000))
        assert [each.error_code for each in getattr(answer, "topics", [])] == [ErrorCode.NONE]
        asked(heartbeat)

    def leaders() -> set[int]:
        topics = node.raft.committed.image.topics_by_name.values()
        return {each.leader for topic in topics for each in topic.partitions.values()}

    assert 2 * PER_TOPIC > BATCH_RECORDS_MAX
    assert leaders() == {BROKER}
    quorum.advance(9_500)
    assert leaders() == {NO_LEADER}
    assert node.raft.committed.image.brokers[BROKER].fenced
    asked(heartbeat)
    assert leaders() == {BROKER}
    assert not node.raft.committed.image.brokers[BROKER].fenced
    log = node.raft.quorum_log
    sizes = [len(one.records) for one in log.batches(Offset(0), log.log_end_offset)]
    assert max(sizes) == BATCH_RECORDS_MAX


def test_change_ends_with_the_first_of_its_batches_that_is_not_appended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Behind a batch that is missing, the others would be another change than was decided."""
    quorum = NodeQuorum((1,))
    quorum.elect()
    node = quorum.members[1].running

    def asked(request: Message) -> Message:
        answer = quorum.ask(1, request, request.MAX_VERSION)
        quorum.until(lambda: answer.response is not None)
        assert isinstance(answer.response, Message)
        return answer.response

    registered = asked(registration(BROKER, cluster_id=node.cluster_id))
    epoch = getattr(registered, "broker_epoch", -1)
    asked(BrokerHeartbeatRequest(broker_id=BROKER, broker_epoch=epoch, current_metadata_offset=99))
    topic = CreatableTopic(name="a", num_partitions=5, replication_factor=1)
    asked(CreateTopicsRequest(topics=[topic], timeout_ms=10_000))
    end = node.raft.quorum_log.log_end_offset
    write, sizes = RaftIo.write, []

    def write_one(self: RaftIo, pending: PendingAppend, *more: Any) -> None:
        sizes.append(len(pending.records))
        if len(sizes) != 2:
            write(self, pending, *more)

    monkeypatch.setattr(host, "BATCH_RECORDS_MAX", 2)
    monkeypatch.setattr(RaftIo, "write", write_one)
    quorum.ask(1, UnregisterBrokerRequest(broker_id=BROKER), 0)
    assert sizes == [2, 2]
    assert node.raft.quorum_log.log_end_offset == end + 2
