"""A user with a login and without a right, who asks every broker again and again.

Whatever she is answered must be an error; a broker that has only just come back, and does not know
the entries yet, must not serve her either.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from kraft_wire.client.connection import BrokerConnection, BrokerConnectionError
from kraft_wire.login.client_config import Security
from kraft_wire.wire.generated.create_topics import CreatableTopic, CreateTopicsRequest
from kraft_wire.wire.generated.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kraft_wire.wire.generated.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.fetch import FetchPartition, FetchRequest, FetchTopic
from kraft_wire.wire.generated.init_producer_id import InitProducerIdRequest
from kraft_wire.wire.generated.metadata import MetadataRequest, MetadataRequestTopic
from kraft_wire.wire.generated.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kraft_wire.wire.generated.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kraft_wire.wire.message import Message
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record

__all__ = ["Eve"]

_TOPIC_RESOURCE = 2
_PAUSE_S = 0.05
_PATIENCE_S = 5.0

Codes = Callable[[Any], list[int]]
"""The error codes of an answer."""


def _questions(topic: str, topic_id: bytes, group: str) -> Iterator[tuple[Message, Codes]]:
    """Yield requests for what she may not have, with where their errors are."""
    yield (
        MetadataRequest(topics=[MetadataRequestTopic(name=topic)]),
        lambda answer: [each.error_code for each in answer.topics],
    )
    batch = bytes(build_batch([Record(value=b"of eve", timestamp=0)]))
    written = PartitionProduceData(index=0, records=batch)
    yield (
        ProduceRequest(
            acks=-1,
            timeout_ms=5_000,
            topic_data=[TopicProduceData(name=topic, topic_id=topic_id, partition_data=[written])],
        ),
        lambda answer: [
            each.error_code for found in answer.responses for each in found.partition_responses
        ],
    )
    read = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    yield (
        FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=1 << 20,
            topics=[FetchTopic(topic=topic, topic_id=topic_id, partitions=[read])],
        ),
        lambda answer: [
            answer.error_code,
            *(each.error_code for found in answer.responses for each in found.partitions),
        ][-1:],
    )
    asked = OffsetFetchRequestTopics(name=topic, topic_id=topic_id, partition_indexes=[0])
    yield (
        OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=[asked])]),
        lambda answer: [each.error_code for each in answer.groups],
    )
    yield (
        CreateTopicsRequest(
            topics=[CreatableTopic(name="of-eve", num_partitions=1, replication_factor=1)],
            timeout_ms=5_000,
        ),
        lambda answer: [each.error_code for each in answer.topics],
    )
    yield (
        DeleteTopicsRequest(topics=[DeleteTopicState(name=topic)], timeout_ms=5_000),
        lambda answer: [each.error_code for each in answer.responses],
    )
    yield (
        DescribeConfigsRequest(
            resources=[DescribeConfigsResource(resource_type=_TOPIC_RESOURCE, resource_name=topic)]
        ),
        lambda answer: [each.error_code for each in answer.results],
    )
    yield (
        InitProducerIdRequest(transactional_id="of-eve", transaction_timeout_ms=5_000),
        lambda answer: [answer.error_code],
    )


class Eve(threading.Thread):
    """Asks all brokers in turn until `finish`; `got` is what she should not have got."""

    def __init__(
        self,
        addresses: Sequence[str],
        security: Security,
        topic: str,
        topic_id: bytes,
        group: str,
    ) -> None:
        super().__init__(daemon=True)
        self.refused: Counter[str] = Counter()
        self.got: list[str] = []
        self.away = 0
        """Times at which a broker could not be asked."""
        self._addresses, self._security = addresses, security
        self._questions = list(_questions(topic, topic_id, group))
        self._ends = threading.Event()

    def run(self) -> None:
        """Ask each broker everything, over a new connection."""
        while not self._ends.is_set():
            for address in self._addresses:
                try:
                    self._ask(address)
                except BrokerConnectionError:
                    self.away += 1
                time.sleep(_PAUSE_S)

    def _ask(self, address: str) -> None:
        connection = BrokerConnection(
            address, timeout_s=_PATIENCE_S, client_id="eve", security=self._security
        )
        with connection:
            for request, codes_of in self._questions:
                answer = connection.send(request, Message)
                codes = codes_of(answer)
                name = type(request).__name__
                if ErrorCode.NONE in codes or not codes:
                    self.got.append(f"{name} at {address}: {answer}")
                self.refused.update(f"{name} {ErrorCode(code).name}" for code in codes)

    def finish(self) -> None:
        """Stop after the broker that is being asked."""
        self._ends.set()
        self.join(60)
        assert not self.is_alive(), "a question has no end"
