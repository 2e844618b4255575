"""The same fetches to Apache Kafka and to us, over sockets and in every version: same answers.

One story: a session is opened over partitions with and without records, moves on, forgets, adds,
goes wrong in every way that has an error, and is closed. Record bytes are compared as they are.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from kraft_wire.client import BrokerConnection
from kraft_wire.model import ZERO_UUID, Uuid
from kraft_wire.wire.generated.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kraft_wire.wire.generated.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
)
from kraft_wire.wire.generated.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from kraft_wire.wire.json_form import message_to_json
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record
from tests.apache.node import ApacheNode
from tests.server_process import ServerProcess
from tests.waiting import HANG_S

pytestmark = pytest.mark.java

TOPICS = ("fetch-a", "fetch-b")
PARTITIONS = 2
WRITTEN = {("fetch-a", 0): 5, ("fetch-a", 1): 3, ("fetch-b", 0): 1}
"""Records per partition, one batch each; the fourth partition stays empty."""

UNKNOWN_ID = Uuid(bytes(range(16)))
SECONDS_MAX = HANG_S

Name = tuple[str, int]


@dataclass
class Side:
    """One broker, and the session that the story has with it."""

    connection: BrokerConnection
    ids: dict[str, Uuid] = field(default_factory=dict)
    session_id: int = 0

    def prepare(self) -> None:
        """Create the topics and write the records."""
        request = CreateTopicsRequest(
            topics=[
                CreatableTopic(name=name, num_partitions=PARTITIONS, replication_factor=1)
                for name in TOPICS
            ],
            timeout_ms=30_000,
        )
        for topic in self.connection.send(request, CreateTopicsResponse).topics:
            assert topic.error_code == 0, topic
            assert topic.name is not None
            self.ids[topic.name] = topic.topic_id
        for (name, index), count in WRITTEN.items():
            self._produce(name, index, count)

    def _produce(self, name: str, index: int, count: int) -> None:
        records = [
            Record(offset=n, timestamp=1_000 + n, key=b"key", value=b"v" * 50, headers=[])
            for n in range(count)
        ]
        data = PartitionProduceData(index=index, records=bytes(build_batch(records)))
        topic = TopicProduceData(name=name, partition_data=[data])
        request = ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[topic])
        deadline = time.monotonic() + SECONDS_MAX
        while True:  # Apache serves a new partition a little after it has created it
            answer = self.connection.send(request, ProduceResponse, version=11)
            if answer.responses[0].partition_responses[0].error_code == 0:
                return
            assert time.monotonic() < deadline, answer
            time.sleep(0.1)

    def fetch(self, step: "Step", version: int) -> Any:
        """Send a step's request; return the answer's JSON without what is drawn."""
        by_id = version >= 13
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=1,
            max_bytes=step.max_bytes,
            session_id=self._session(step),
            session_epoch=step.epoch,
            isolation_level=step.isolation_level,
            topics=[
                FetchTopic(
                    topic="" if by_id else name,
                    topic_id=self._id(name) if by_id else ZERO_UUID,
                    partitions=[
                        FetchPartition(
                            partition=index,
                            fetch_offset=offset,
                            partition_max_bytes=1 << 20,
                            current_leader_epoch=step.current_leader_epoch if version >= 9 else -1,
                        )
                        for (topic, index), offset in step.wanted.items()
                        if topic == name
                    ],
                )
                for name in dict.fromkeys(topic for topic, _ in step.wanted)
            ],
            forgotten_topics_data=[
                ForgottenTopic(
                    topic="" if by_id else name,
                    topic_id=self._id(name) if by_id else ZERO_UUID,
                    partitions=[index],
                )
                for name, index in step.forget
            ],
        )
        if version < 7:
            request.session_id, request.session_epoch = 0, -1
            request.forgotten_topics_data = []
        response = self.connection.send(request, FetchResponse, version=version)
        if response.session_id:
            self.session_id = response.session_id
        return self._without_drawn(message_to_json(response, version))

    def _session(self, step: "Step") -> int:
        return self.session_id if step.session is None else step.session

    def _id(self, name: str) -> Uuid:
        return self.ids.get(name, UNKNOWN_ID)

    def _without_drawn(self, answer: Any) -> Any:
        names = {str(topic_id): name for name, topic_id in self.ids.items()}
        if isinstance(answer, dict):
            return {key: self._replaced(key, value, names) for key, value in sorted(answer.items())}
        if isinstance(answer, list):
            return [self._without_drawn(each) for each in answer]
        return answer

    def _replaced(self, key: str, value: Any, names: dict[str, str]) -> Any:
        if key == "sessionId":
            return bool(value)
        if key in ("topicId", "host", "port"):
            return key
        return self._without_drawn(value)


@dataclass
class Step:
    """One fetch of the story."""

    epoch: int
    wanted: dict[Name, int] = field(default_factory=dict)
    forget: tuple[Name, ...] = ()
    session: int | None = None
    """A session id to name instead of the story's own."""
    max_bytes: int = 1 << 25
    current_leader_epoch: int = -1
    isolation_level: int = 0


A0, A1, B0, B1 = ("fetch-a", 0), ("fetch-a", 1), ("fetch-b", 0), ("fetch-b", 1)
START = dict.fromkeys((A0, A1, B0, B1), 0)

STORY: dict[str, Step] = {
    "sessionless": Step(-1, START, session=0),
    "sessionless, read committed": Step(-1, START, session=0, isolation_level=1),
    "sessionless, one byte": Step(-1, START, session=0, max_bytes=1),
    "sessionless, in the middle of a batch": Step(-1, {A0: 2}, session=0),
    "sessionless, at the end": Step(-1, {A0: 5}, session=0),
    "sessionless, beyond the end": Step(-1, {A0: 6, A1: 3}, session=0),
    "sessionless, negative": Step(-1, {A0: -7}, session=0),
    "sessionless, unknown": Step(-1, {("fetch-a", 9): 0, ("missing", 0): 0, B0: 0}, session=0),
    "sessionless, epoch of the leader": Step(-1, {A0: 5}, session=0, current_leader_epoch=0),
    "sessionless, epoch too new": Step(-1, {A0: 0}, session=0, current_leader_epoch=900),
    "open": Step(0, START, session=0),
    "nothing moved": Step(1),
    "moved to the ends": Step(2, {A0: 5, A1: 3, B0: 1}),
    "nothing new": Step(3),
    "epoch repeated": Step(3),
    "epoch ahead": Step(9),
    "one goes back": Step(4, {A1: 1}),
    "forget two": Step(5, forget=(A0, B1)),
    "add one again": Step(6, {A0: 0}),
    "add an unknown one": Step(7, {("missing", 0): 0}),
    "unknown one stays": Step(8),
    "forget what is not there": Step(9, forget=(("fetch-b", 77),)),
    "unknown session": Step(1, session=123),
    "session zero with an epoch": Step(4, session=0),
    "replace it": Step(0, {B0: 0}),
    "empty it": Step(1, forget=(B0,)),
    "it is gone": Step(2),
    "open for closing": Step(0, {B0: 1}, session=0),
    "close": Step(-1, {B0: 0}),
    "it is gone too": Step(1),
}


@pytest.fixture(scope="module")
def sides(
    apache_node: ApacheNode, module_server: ServerProcess
) -> Iterator[Callable[[], tuple[Side, Side]]]:
    """Both brokers with the same topics; each call is a fresh story."""
    with (
        BrokerConnection(apache_node.bootstrap) as apache,
        BrokerConnection(module_server.bootstrap) as own,
    ):
        theirs, ours = Side(apache), Side(own)
        theirs.prepare()
        ours.prepare()
        yield lambda: (Side(apache, theirs.ids), Side(own, ours.ids))


@pytest.mark.parametrize("version", range(4, 19))
def test_story_is_answered_as_by_apache(
    sides: Callable[[], tuple[Side, Side]], version: int
) -> None:
    theirs, ours = sides()
    for title, step in STORY.items():
        expected = theirs.fetch(step, version)
        assert ours.fetch(step, version) == expected, title
