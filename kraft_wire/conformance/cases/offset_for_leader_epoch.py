"""OffsetForLeaderEpoch, API key 23: where a leader epoch ends (KIP-101, KIP-320)."""

from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import case
from kraft_wire.conformance.requests import CONSUMER, batch, written
from kraft_wire.conformance.subject import Subject
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

_CODE: Final = "topics[0].partitions[0].error_code"
_END: Final = "topics[0].partitions[0].end_offset"
_EPOCH: Final = "topics[0].partitions[0].leader_epoch"


def _ask(
    broker: Subject,
    version: int,
    name: str,
    leader_epoch: int,
    *,
    partition: int = 0,
    current_leader_epoch: int = -1,
) -> OffsetForLeaderEpochResponse:
    wanted = OffsetForLeaderPartition(
        partition=partition, current_leader_epoch=current_leader_epoch, leader_epoch=leader_epoch
    )
    topics = [OffsetForLeaderTopic(topic=name, partitions=[wanted])]
    request = OffsetForLeaderEpochRequest(replica_id=CONSUMER, topics=topics)
    return broker.ask(request, version, OffsetForLeaderEpochResponse)


@case("OffsetForLeaderEpoch", "KIP-101")
def current_epoch(broker: Subject, version: int) -> None:
    """The current epoch ends at the log's end.

    Produce two records in epoch 0, ask for epoch 0.
    """
    topic = broker.topic()
    written(broker, topic, batch(b"a", b"b"))
    answer = _ask(broker, version, topic.name, 0)
    expect.error(answer, _CODE, ErrorCode.NONE)
    expect.equal(answer, _EPOCH, 0)
    expect.equal(answer, _END, 2)


@case("OffsetForLeaderEpoch", "KIP-101")
def later_epoch(broker: Subject, version: int) -> None:
    """An unknown epoch returns epoch -1 and offset -1.

    Ask for epoch 1000.
    """
    answer = _ask(broker, version, broker.topic().name, 1000)
    expect.error(answer, _CODE, ErrorCode.NONE)
    expect.equal(answer, _EPOCH, -1)
    expect.equal(answer, _END, -1)


@case("OffsetForLeaderEpoch", "kafka.server.KafkaApis, handleOffsetForLeaderEpochRequest")
def unknown_partition(broker: Subject, version: int) -> None:
    """A partition that the topic does not have gets UNKNOWN_TOPIC_OR_PARTITION.

    Ask for partition 7 of a topic with one.
    """
    answer = _ask(broker, version, broker.topic().name, 0, partition=7)
    expect.error(answer, _CODE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


@case("OffsetForLeaderEpoch", "KIP-320, Fencing")
def newer_leader_epoch(broker: Subject, version: int) -> None:
    """A current leader epoch above the leader's gets UNKNOWN_LEADER_EPOCH.

    Ask with current_leader_epoch=1000.
    """
    answer = _ask(broker, version, broker.topic().name, 0, current_leader_epoch=1000)
    expect.error(answer, _CODE, ErrorCode.UNKNOWN_LEADER_EPOCH)


@case("OffsetForLeaderEpoch", "KIP-320, OffsetForLeaderEpoch")
def epoch_of_an_empty_log(broker: Subject, version: int) -> None:
    """The leader's epoch ends at offset 0 in an empty log; no epoch has no end.

    Ask an empty partition for epochs 0 and -1.
    """
    topic = broker.topic()
    for epoch, found, end in ((0, 0, 0), (-1, -1, -1)):
        answer = _ask(broker, version, topic.name, epoch)
        expect.error(answer, _CODE, ErrorCode.NONE)
        expect.equal(answer, _EPOCH, found)
        expect.equal(answer, _END, end)
