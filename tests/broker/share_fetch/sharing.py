"""A broker with one topic whose partitions share groups read, and members as raw requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.handlers import share_acknowledge, share_fetch
from kraft_wire.broker.share_fetch.share_partition import SharePartition
from kraft_wire.broker.share_fetch.share_partitions import SharePartitions, share_partitions_of
from kraft_wire.broker.share_persister import SharePartitionKey
from kraft_wire.metadata.image import GROUP_RESOURCE, MetadataImage, PartitionImage
from kraft_wire.model import FileSlice, Uuid
from kraft_wire.wire.generated import share_acknowledge as acknowledge_messages
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.share_acknowledge import (
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
)
from kraft_wire.wire.generated.share_fetch import (
    AcknowledgementBatch,
    FetchPartition,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
    ShareFetchRequest,
    ShareFetchResponse,
)
from kraft_wire.wire.records.record_batch import parse_batches
from tests.broker.replication.leading import TOPIC, Leading, Waiting
from tests.broker.share_fetch.recording_persister import RecordingPersister
from tests.broker.small_broker import id_of, image_of, partition_image, publish

GROUP, MEMBER = "g", "m1"
TOPIC_ID = id_of(TOPIC)

Acknowledged = tuple[int, int, Sequence[int]]


def key_of(number: int = 0, group: str = GROUP) -> SharePartitionKey:
    return SharePartitionKey(group, TOPIC_ID, number)


class Sharing(Leading):
    """The topic `t`, whose share partitions begin at 0 unless a test says otherwise."""

    def __init__(
        self,
        *partitions: PartitionImage,
        group_config: Mapping[str, str] | None = None,
        starts: int | None = 0,
        share_level: int = 1,
        **settings: Any,
    ) -> None:
        self.persister = RecordingPersister()
        self.group_config = dict(group_config or {})
        self.share_level = share_level
        self.wall_ms = 0
        super().__init__(*(partitions or (partition_image(0),)), **settings)
        shares = SharePartitions(self.broker, self.persister)
        self.broker.share_partitions = shares
        self.broker.followers.append(shares)
        if starts is not None:
            for number in self.partitions:
                self.persister.start(key_of(number), starts)

    def publish(self) -> None:
        topics = {TOPIC: self.partitions.values()} if self.partitions else {}
        image = image_of(topics, self.brokers.values())
        publish(self.broker, self._with_groups(image), self.now_ms)

    def _with_groups(self, image: MetadataImage) -> MetadataImage:
        configs = {(2, TOPIC): dict(self.config), (GROUP_RESOURCE, GROUP): self.group_config}
        features = {**image.finalized_features, "share.version": self.share_level}
        return replace(image, configs=configs, finalized_features=features)

    @property
    def at(self) -> ClockReading:
        return ClockReading(self.now_ms, 0)

    @property
    def shares(self) -> SharePartitions:
        """The broker's share partitions."""
        return share_partitions_of(self.broker)

    def share(self, number: int = 0, group: str = GROUP) -> SharePartition:
        """A share partition that is in memory."""
        found = self.shares.get(key_of(number, group))
        assert found is not None, number
        return found

    def ask(
        self,
        epoch: int,
        *numbers: int,
        member: str | None = MEMBER,
        group: str | None = GROUP,
        version: int = 2,
        acknowledges: Mapping[int, Sequence[Acknowledged]] | None = None,
        forgets: Sequence[int] = (),
        topic_id: Uuid = TOPIC_ID,
        connection: int | None = None,
        **fields: Any,
    ) -> ShareWaiting:
        """Send one ShareFetch."""
        acknowledged = acknowledges or {}
        partitions = [
            FetchPartition(
                partition_index=number,
                acknowledgement_batches=[
                    AcknowledgementBatch(
                        first_offset=first, last_offset=last, acknowledge_types=list(types)
                    )
                    for first, last, types in acknowledged.get(number, ())
                ],
            )
            for number in dict.fromkeys((*numbers, *acknowledged))
        ]
        limits = {"min_bytes": 1, "max_bytes": 1 << 20, "max_records": 500, "batch_size": 500}
        request = ShareFetchRequest(
            group_id=group,
            member_id=member,
            share_session_epoch=epoch,
            topics=[FetchTopic(topic_id=topic_id, partitions=partitions)] if partitions else [],
            **{**limits, **fields},
        )
        if forgets:
            request.forgotten_topics_data = [
                ForgottenTopic(topic_id=topic_id, partitions=list(forgets))
            ]
        context = replace(self.context(version), wall_ms=self.wall_ms)
        if connection is not None:
            context = replace(context, connection_id=connection)
        return ShareWaiting(self, context, share_fetch.handle(self.broker, context, request))

    def acknowledge(
        self,
        epoch: int,
        *batches: Acknowledged,
        number: int = 0,
        member: str | None = MEMBER,
        group: str | None = GROUP,
        version: int = 2,
        renews: bool = False,
        topic_id: Uuid = TOPIC_ID,
    ) -> ShareWaiting:
        """Send one ShareAcknowledge about one partition."""
        partition = acknowledge_messages.AcknowledgePartition(
            partition_index=number,
            acknowledgement_batches=[
                acknowledge_messages.AcknowledgementBatch(
                    first_offset=first, last_offset=last, acknowledge_types=list(types)
                )
                for first, last, types in batches
            ],
        )
        topic = acknowledge_messages.AcknowledgeTopic(topic_id=topic_id, partitions=[partition])
        request = ShareAcknowledgeRequest(
            group_id=group,
            member_id=member,
            share_session_epoch=epoch,
            is_renew_ack=renews,
            topics=[topic],
        )
        context = self.context(version)
        answer = share_acknowledge.handle(self.broker, context, request)
        return ShareWaiting(self, context, answer)


class ShareWaiting(Waiting):
    """A ShareFetch or ShareAcknowledge and its answer, now or later."""

    @property
    def response(self) -> ShareFetchResponse:
        assert isinstance(self.answer, ShareFetchResponse), self.answer
        return self.answer

    @property
    def error(self) -> ErrorCode:
        """Of the whole answer."""
        answer = self.answer
        assert isinstance(answer, ShareFetchResponse | ShareAcknowledgeResponse), answer
        return ErrorCode(answer.error_code)

    @property
    def parts(self) -> dict[int, PartitionData]:
        """The partitions of the answer to a fetch."""
        assert self.error == ErrorCode.NONE, self.error
        return {
            data.partition_index: data
            for topic in self.response.responses
            for data in topic.partitions
        }

    def acquired(self, number: int = 0) -> list[tuple[int, int, int]]:
        """First and last offset and delivery count, for each range."""
        data = self.parts.get(number)
        return [
            (each.first_offset, each.last_offset, each.delivery_count)
            for each in (data.acquired_records if data else ())
        ]

    def batches(self, number: int = 0) -> list[tuple[int, int]]:
        """First and last offset of each batch that the answer has."""
        records = self.parts[number].records
        raw = records.read() if isinstance(records, FileSlice) else bytes(records or b"")
        return [(each.base_offset, each.last_offset) for each in parse_batches(raw)]

    @property
    def result(self) -> tuple[ErrorCode, str | None]:
        """Of the one partition of an answer to ShareAcknowledge."""
        answer = self.answer
        assert isinstance(answer, ShareAcknowledgeResponse), answer
        assert answer.error_code == ErrorCode.NONE, answer
        ((data,),) = [topic.partitions for topic in answer.responses]
        return ErrorCode(data.error_code), data.error_message
